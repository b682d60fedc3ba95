"""Nights: one for each date that is due, whatever clocks, beats and restarts do."""

import re
from datetime import UTC, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import UsageError
from orchestrator.domain.night import (
    Decision,
    Night,
    NightRecord,
    NightState,
    Slot,
    decide,
    due_nights,
    missed_before,
    parse_schedule,
    parse_time,
)
from orchestrator.domain.results import MissedNight

NIGHTLY = parse_schedule("nightly@01:00")
LATE = timedelta(hours=6)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ids(nights: list[Night]) -> list[str]:
    return [n.night_id for n in nights]


def look(since: str, now: str, known: set[str] | None = None) -> tuple[list[str], list[str]]:
    decided = decide(NIGHTLY, at(since), known or set(), at(now), LATE)
    return ids(decided.start), ids(decided.missed)


def test_a_schedule_names_suites_and_times() -> None:
    assert parse_schedule(" nightly@01:00 , speed@sun 03:30,") == (
        Slot("nightly", time(1)),
        Slot("speed", time(3, 30), 6),
    )
    assert parse_schedule("") == ()
    assert [str(s) for s in parse_schedule("a.b-c@Mon 00:00,x@23:59")] == ["a.b-c@Mon 00:00", "x@23:59"]


@pytest.mark.parametrize(
    "text", ["nightly", "nightly@1:00", "nightly@24:00", "nightly@01:60", "nightly@Day 01:00", "a/b@01:00"]
)
def test_another_form_is_refused_with_the_right_one(text: str) -> None:
    with pytest.raises(UsageError, match="expected SUITE@HH:MM"):
        parse_schedule(text)


@pytest.mark.parametrize("text", ["n@01:00,n@13:00", "n@Sun 01:00,n@02:00", "n@Sun 01:00,n@Sun 02:00"])
def test_a_suite_has_one_night_a_day(text: str) -> None:
    with pytest.raises(UsageError, match="one night a day"):
        parse_schedule(text)


def test_two_days_of_one_suite_are_two_nights_a_week() -> None:
    slots = parse_schedule("speed@Sun 03:00,speed@Wed 04:00")
    found = due_nights(slots, at("2026-11-30T00:00"), at("2026-12-07T00:00"))
    assert ids(found) == ["2026-12-02-speed", "2026-12-06-speed"]


def test_the_run_of_a_night_has_one_id_whoever_starts_it() -> None:
    night = Night("nightly", at("2026-12-01T01:00"))
    assert (night.night_id, night.run_id) == ("2026-12-01-nightly", "20261201T010000Z-nightly-night")


def test_a_night_is_due_once_its_time_has_come() -> None:
    assert look("2026-12-01T00:55", "2026-12-01T00:59:59") == ([], [])
    assert look("2026-12-01T00:55", "2026-12-01T01:00") == (["2026-12-01-nightly"], [])


def test_a_second_beat_decides_nothing() -> None:
    started = {"2026-12-01-nightly"}
    assert look("2026-12-01T00:55", "2026-12-01T01:00", started) == ([], [])
    assert look("2026-12-01T01:00", "2026-12-01T01:05", started) == ([], [])


def test_a_late_start_is_a_start() -> None:
    assert look("2026-12-01T00:55", "2026-12-01T07:00") == (["2026-12-01-nightly"], [])


def test_a_night_that_is_too_late_was_missed() -> None:
    assert look("2026-12-01T00:55", "2026-12-01T07:01") == ([], ["2026-12-01-nightly"])


def test_down_for_three_days_misses_each_night_and_starts_the_newest_only() -> None:
    missed = [f"2026-12-0{n}-nightly" for n in (1, 2, 3)]
    assert look("2026-11-30T12:00", "2026-12-04T03:00") == (["2026-12-04-nightly"], missed)
    assert look("2026-11-30T12:00", "2026-12-04T12:00") == ([], [*missed, "2026-12-04-nightly"])


def test_suites_are_decided_apart() -> None:
    slots = parse_schedule("nightly@01:00,speed@02:00")
    decided = decide(slots, at("2026-11-30T12:00"), {"2026-12-01-nightly"}, at("2026-12-01T03:00"), LATE)
    assert ids(decided.start) == ["2026-12-01-speed"]
    assert decided.missed == []


def test_a_gap_before_a_night_that_ran_is_not_filled_afterwards() -> None:
    late = timedelta(hours=40)
    decided = decide(NIGHTLY, at("2026-11-30T12:00"), {"2026-12-02-nightly"}, at("2026-12-02T03:00"), late)
    assert decided == Decision([], [Night("nightly", at("2026-12-01T01:00"))])


def test_a_clock_that_goes_back_makes_no_second_night() -> None:
    """01:00 comes again, or the whole day does: the night's id is known."""
    known = {"2026-12-01-nightly"}
    assert look("2026-12-01T00:30", "2026-12-01T01:10", known) == ([], [])
    assert look("2026-11-30T22:00", "2026-12-01T01:10", known) == ([], [])


def test_a_clock_that_was_ahead_takes_no_night_away() -> None:
    """It started the 5th's night on the 2nd; set right again, the 3rd's is started when it is due."""
    assert look("2026-12-02T23:00", "2026-12-03T01:02", {"2026-12-05-nightly"}) == (
        ["2026-12-03-nightly"],
        [],
    )


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("Europe/Berlin", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-10-25T01:00"),
        ("America/New_York", "2026-11-01T06:00"),
        ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ],
)
def test_the_change_of_summer_time_makes_one_night_each_day(zone: str, change: str) -> None:
    """Looked at every five minutes in local time from a day before the change to a day after it."""
    moment, known = at(change) - timedelta(days=1), set[str]()
    started: list[Night] = []
    for _ in range(2 * 24 * 12):
        then, moment = moment, moment + timedelta(minutes=5)
        local = moment.astimezone(ZoneInfo(zone))
        decided = decide(NIGHTLY, then.astimezone(ZoneInfo(zone)), known, local, LATE)
        assert decided.missed == []
        known |= set(ids(decided.start))
        started += decided.start
    first = at(change) - timedelta(days=1)
    assert ids(started) == ids(due_nights(NIGHTLY, first, first + timedelta(days=2)))
    assert len(started) == 2


@given(
    minutes=st.lists(st.integers(0, 4 * 24 * 60), min_size=1, max_size=12),
    offset=st.integers(-12, 14),
)
def test_whenever_one_looks_each_night_is_started_or_missed_once(minutes: list[int], offset: int) -> None:
    """Looks at any times, out of order (a clock that jumps), from any zone; no night is decided twice."""
    zone = timezone(timedelta(hours=offset))
    begin = at("2026-12-01T00:00")
    since, known, decided = begin, set[str](), list[str]()
    for minute in minutes:
        now = (begin + timedelta(minutes=minute)).astimezone(zone)
        answer = decide(NIGHTLY, min(since, now), known, now, LATE)
        found = ids(answer.start) + ids(answer.missed)
        assert len(answer.start) <= 1
        decided += found
        known |= set(found)
        since = now
    assert len(decided) == len(set(decided))
    last = begin + timedelta(minutes=max(minutes))
    assert set(decided) == set(ids(due_nights(NIGHTLY, begin, last)))


def record(night: str, state: NightState, why: str = "", suite: str = "nightly") -> NightRecord:
    return NightRecord(
        night=f"{night}-{suite}", suite=suite, due=f"{night}T01:00:00+00:00", state=state, keeper="k",
        host="h", why=why,
    )  # fmt: skip


def test_nights_without_results_are_told_since_the_last_one_with_results() -> None:
    records = [
        record("2026-12-03", "missed", "nobody looked"),
        record("2026-11-29", "missed", "long ago"),
        record("2026-11-30", "finished"),
        record("2026-12-01", "failed", "matrix.yaml:5: wrong"),
        record("2026-12-02", "started"),
        record("2026-12-02", "missed", "another suite", suite="speed"),
        record("2026-12-05", "missed", "after it"),
    ]
    assert missed_before("2026-12-04-nightly", "nightly", records) == [
        MissedNight("2026-12-01-nightly", "matrix.yaml:5: wrong"),
        MissedNight("2026-12-02-nightly", "it has not ended yet"),
        MissedNight("2026-12-03-nightly", "nobody looked"),
    ]
    assert missed_before("2026-11-20-nightly", "nightly", records) == []


def test_times_of_records_are_utc() -> None:
    assert (
        parse_time("2026-12-01T01:00:00") == parse_time("2026-12-01T02:00:00+01:00") == at("2026-12-01T01:00")
    )
    for none in ("yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"):
        with pytest.raises(ValueError, match=re.escape(none)):
            parse_time(none)

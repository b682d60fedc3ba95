"""Health as a pure function: what each event makes of a device, and what is tried to get it back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.health import (
    LADDER,
    UNSEEN,
    Answered,
    Condition,
    Event,
    Failed,
    Gates,
    Health,
    Listed,
    Returned,
    Rung,
    Silent,
    Taken,
    Tick,
    Tried,
    Vitals,
    Vouched,
    step,
    wanted,
)


def after(*events: Event, start: Health = UNSEEN) -> Health:
    health = start
    for event in events:
        health = step(health, event)
    return health


ONLINE = after(Listed(1, "device"), Answered(2, booted=True), Vouched(3))


def test_a_phone_comes_up_and_is_trusted_after_its_canary() -> None:
    listed = after(Listed(1, "device"))
    assert (listed.condition, listed.why) == (Condition.BOOTING, "listed; has not answered yet")
    starting = step(listed, Answered(2, booted=False))
    assert (starting.condition, starting.why) == (Condition.BOOTING, "Android is still starting")
    up = step(starting, Answered(3, booted=True))
    assert up.usable
    assert not up.trusted
    assert step(up, Vouched(4)).trusted


@pytest.mark.parametrize(
    ("state", "condition"),
    [
        ("unauthorized", Condition.UNAUTHORIZED),
        ("authorizing", Condition.UNAUTHORIZED),
        ("no permissions", Condition.NO_PERMISSIONS),
        ("", Condition.OFFLINE),
    ],
)
def test_g2_08_what_only_a_person_can_mend_is_not_tried(state: str, condition: Condition) -> None:
    """G2-08: unauthorized raises an operator action; nothing is rebooted for it."""
    health = step(ONLINE, Listed(10, state, "because"))
    assert (health.condition, health.why, health.since) == (condition, "because", 10)
    assert wanted(health) is None
    assert not health.trusted
    assert step(health, Listed(11, "device")).condition is Condition.BOOTING


@pytest.mark.parametrize(
    ("vitals", "condition", "why"),
    [
        (Vitals(5, battery_percent=29, charging=True), Condition.LOW_BATTERY, "29 % < 30 %, charging"),
        (Vitals(5, battery_percent=30, battery_c=35.0), Condition.ONLINE, ""),
        (Vitals(5, battery_c=35.1), Condition.HOT, "35.1 °C > 35 °C"),
        (Vitals(5, free_bytes=100 << 20), Condition.FULL_DISK, "100 MiB free < 256 MiB"),
        (Vitals(5, battery_percent=3, battery_c=41.0), Condition.HOT, "41.0 °C > 35 °C"),
        (Vitals(5), Condition.ONLINE, ""),
    ],
)
def test_gates_name_both_numbers(vitals: Vitals, condition: Condition, why: str) -> None:
    health = step(ONLINE, vitals)
    assert (health.condition, health.why) == (condition, why)
    assert health.vitals == vitals
    assert health.trusted, "heat and charge do not change what a GPU computes"


def test_gates_do_not_flutter() -> None:
    hot = after(Vitals(5, battery_c=36.0), Vitals(6, battery_c=34.0), start=ONLINE)
    assert (hot.condition, hot.why, hot.since) == (Condition.HOT, "34.0 °C > 33 °C", 5)
    assert step(hot, Vitals(7, battery_c=33.0)).usable
    low = after(Vitals(5, battery_percent=20), Vitals(6, battery_percent=34), start=ONLINE)
    assert low.condition is Condition.LOW_BATTERY
    assert step(low, Vitals(7, battery_percent=35)).usable


def test_a_listed_phone_that_does_not_answer_is_found_after_three_questions() -> None:
    twice = after(Silent(10), Silent(20), start=ONLINE)
    assert twice.usable
    assert after(Answered(25, booted=True), Silent(30), start=twice).usable, "an answer starts the count anew"
    health = step(twice, Silent(30, "no answer within 10 s"))
    assert health.condition is Condition.RECOVERING
    assert health.why == "listed, but did not answer 3 times: no answer within 10 s"


def test_the_ladder_is_climbed_until_a_rung_helps() -> None:
    health, seen = step(ONLINE, Failed(10, "the link dropped")), list[Rung | None]()
    for at in range(4):
        seen.append(wanted(health))
        rung = wanted(health)
        assert rung is not None
        health = step(health, Tried(20 + at, rung, ok=at == 2, why="did not come back"))
        if health.condition is Condition.BOOTING:
            break
    assert seen == [Rung.RECONNECT, Rung.ADB_RECONNECT, Rung.REBOOT]
    assert health.why == "reboot done; has not answered yet"
    up = step(health, Answered(40, booted=True))
    assert up.usable
    assert not up.trusted
    again = step(up, Failed(41, "the link dropped"))
    assert wanted(again) is Rung.POWER_CYCLE, "without a trusted batch between, milder rungs are not repeated"
    assert wanted(after(Vouched(41), Failed(42, "x"), start=up)) is Rung.RECONNECT


def test_what_no_rung_helps_is_quarantined_for_longer_each_time() -> None:
    health, lengths = step(ONLINE, Failed(0, "gone")), list[float]()
    for at in (100.0, 10_000.0, 20_000.0):
        for rung in LADDER:
            health = step(health, Tried(at, rung, ok=False))
        assert health.condition is Condition.QUARANTINED
        assert health.why.endswith("reconnect, adb reconnect, reboot, power cycle did not help")
        assert health.until is not None
        assert wanted(health) is None
        assert step(health, Answered(at + 1, booted=True)) == health
        lengths.append(health.until - at)
        assert step(health, Tick(health.until - 1)) == health
        health = step(health, Tick(health.until))
        assert (health.condition, wanted(health)) == (Condition.RECOVERING, Rung.RECONNECT)
    assert lengths == [1800.0, 3600.0, 7200.0]


def test_a_quarantine_is_never_longer_than_a_day() -> None:
    old = Health(Condition.RECOVERING, "gone", 0, rung=len(LADDER) - 1, quarantines=40)
    health = step(old, Tried(0, Rung.POWER_CYCLE, ok=False))
    assert health.until == Gates().quarantine_at_most_s


def test_a_held_phone_is_left_alone_whatever_happens() -> None:
    held = step(ONLINE, Taken(10, "held by anna: new battery"))
    assert (held.condition, held.why) == (Condition.MAINTENANCE, "held by anna: new battery")
    for event in (Listed(11, ""), Silent(12), Failed(13, "x"), Tick(14), Answered(15, booted=True)):
        assert step(held, event) == held
    assert step(held, Vitals(16, battery_c=50.0)).condition is Condition.MAINTENANCE
    back = step(held, Returned(20))
    assert (back.condition, back.trusted) == (Condition.BOOTING, False)


def test_a_phone_that_comes_back_by_itself_is_not_tried_further() -> None:
    """G2-06: the server died and every phone of the host left the list; they return."""
    lost = step(ONLINE, Listed(10, "offline"))
    assert (lost.condition, wanted(lost)) == (Condition.RECOVERING, Rung.RECONNECT)
    back = after(Listed(11, "device"), Answered(12, booted=True), start=lost)
    assert back.usable
    assert not back.trusted


def test_an_unplugged_phone_is_not_tried_though_its_batch_failed() -> None:
    for events in ((Listed(10, ""), Failed(11, "x")), (Failed(10, "x"), Listed(11, ""))):
        health = after(*events, start=ONLINE)
        assert (health.condition, wanted(health)) == (Condition.OFFLINE, None)


def test_a_phone_that_a_rung_lost_is_tried_further() -> None:
    health = after(Failed(10, "x"), Tried(20, Rung.REBOOT, ok=False), Listed(21, ""), start=ONLINE)
    assert wanted(health) is Rung.POWER_CYCLE


@pytest.mark.parametrize(
    "state", ["recovery", "sideload", "rescue", "bootloader", "host", "detached", "unknown"]
)
def test_a_phone_that_is_not_in_android_is_a_persons(state: str) -> None:
    for start in (ONLINE, step(ONLINE, Failed(5, "x"))):
        health = step(start, Listed(10, state, "boot it into Android"))
        assert (health.condition, wanted(health)) == (Condition.NOT_ANDROID, None)
        assert step(health, Listed(11, "device")).condition is Condition.BOOTING


def test_a_phone_that_never_finishes_starting_is_recovered() -> None:
    """A boot loop, or a ROM that never says so; a phone that is asked rarely is not judged by time alone."""
    starting = after(Listed(10, "device"), Answered(20, booted=False), Tick(5000))
    assert starting.condition is Condition.BOOTING
    lost = after(Answered(600, booted=False), Answered(620, booted=False), start=starting)
    assert (lost.condition, lost.why) == (Condition.RECOVERING, "Android is still starting after 600 s")


def test_one_answer_that_was_cut_off_takes_no_worker_away() -> None:
    once = step(ONLINE, Answered(10, booted=False))
    assert once.usable
    assert step(once, Answered(20, booted=True)).silences == 0
    assert step(once, Answered(20, booted=False)).condition is Condition.BOOTING


def test_a_quarantine_ends_in_a_persons_hands() -> None:
    lost = Health(Condition.QUARANTINED, "x", 0, until=1800, rung=4, quarantines=2)
    for state, condition in (("", Condition.OFFLINE), ("unauthorized", Condition.UNAUTHORIZED)):
        gone = step(lost, Listed(10, state))
        assert (gone.condition, gone.rung, gone.quarantines, gone.until) == (condition, 0, 2, None)
        assert step(gone, Listed(20, "device")).condition is Condition.BOOTING
    for state in ("device", "offline"):
        assert step(lost, Listed(10, state)) == lost


def test_an_hour_without_trouble_makes_the_next_one_a_new_one() -> None:
    back = after(Failed(5, "x"), Tried(10, Rung.RECONNECT, ok=True), Answered(20, booted=True), start=ONLINE)
    assert wanted(after(Tick(3000), Failed(3001, "x"), start=back)) is Rung.ADB_RECONNECT
    assert wanted(after(Tick(3621), Failed(3622, "x"), start=back)) is Rung.RECONNECT


TIMES = st.floats(0, 1e6)
EVENTS = st.one_of(
    st.builds(
        Vitals,
        TIMES,
        battery_percent=st.none() | st.integers(0, 100),
        charging=st.none() | st.booleans(),
        battery_c=st.none() | st.floats(-20, 80),
        free_bytes=st.none() | st.integers(0, 1 << 40),
    ),
    st.builds(Listed, TIMES, st.sampled_from(["device", "offline", "unauthorized", "recovery", "", "?"])),
    st.builds(Answered, TIMES, st.booleans()),
    st.builds(Silent, TIMES),
    st.builds(Failed, TIMES, st.just("why")),
    st.builds(Tried, TIMES, st.sampled_from(Rung), st.booleans()),
    st.builds(Vouched, TIMES),
    st.builds(Taken, TIMES, st.just("held")),
    st.builds(Returned, TIMES),
    st.builds(Tick, TIMES),
)


@given(st.lists(EVENTS, max_size=40))
def test_whatever_happens_a_state_explains_itself(events: list[Event]) -> None:
    health, held = UNSEEN, False
    for event in events:
        health = step(health, event)
        held = (held or isinstance(event, Taken)) and not isinstance(event, Returned)
        assert (health.condition is Condition.MAINTENANCE) == held
        assert health.usable == (health.condition is Condition.ONLINE)
        assert bool(health.why) != health.usable
        assert (health.until is not None) == (health.condition is Condition.QUARANTINED)
        assert wanted(health) is None or health.condition is Condition.RECOVERING
        assert 0 <= health.rung <= len(LADDER)

"""Which runs are a suite's nights, and which series a run was to measure."""

from dataclasses import replace

import pytest

from orchestrator.domain.finding import EVERYTHING
from orchestrator.domain.results import RunResults
from orchestrator.history.database import StoredRun
from orchestrator.history.history import History
from orchestrator.verdicts.drifts import is_due
from orchestrator.verdicts.judge import first_look, judge_run
from orchestrator.verdicts.nights import chosen
from tests.unit.verdicts.small_farm import CASES, PHONES, SLOW, Slower, SmallFarm, of_case, run_id, verdict

FIRST, NIGHTLY, LATER, TONIGHT = (
    "20261201T010000Z-nightly-aaaa",
    "20261202T010000Z-nightly-bbbb",
    "20261202T150000Z-nightly-cccc",
    "20261203T010000Z-nightly-dddd",
)


def stored(run_id: str, *, night: bool, whole: bool = True) -> StoredRun:
    day = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}"
    started = f"{day}T{run_id[9:11]}:00:00+00:00"
    return StoredRun(
        run_id=run_id, night=f"{day}-nightly" if night else "", started_at=started, whole_suite=whole
    )


@pytest.mark.parametrize(("until", "ids"), [(TONIGHT, [FIRST, NIGHTLY, TONIGHT]), (LATER, [FIRST, LATER])])
def test_a_day_is_one_night_its_own_run_before_those_of_people(until: str, ids: list[str]) -> None:
    runs = [
        stored(FIRST, night=True),
        stored(NIGHTLY, night=True),
        stored(LATER, night=False),
        stored(TONIGHT, night=True),
    ]
    assert [run.run_id for run in chosen(runs, until)] == ids


def test_a_day_without_a_night_has_its_last_whole_run() -> None:
    runs = [
        stored(NIGHTLY, night=False),
        stored(LATER, night=False),
        stored("20261202T170000Z-nightly-eeee", night=False, whole=False),
        stored(TONIGHT, night=False),
    ]
    assert [run.run_id for run in chosen(runs, TONIGHT)] == [LATER, TONIGHT]


def only(results: RunResults, *, phones: tuple[str, ...] = PHONES, gone: str = "") -> RunResults:
    return replace(
        results,
        devices=[d for d in results.devices if d.device_id in phones],
        cases={i: info for i, info in results.cases.items() if i != gone},
        trials=[t for t in results.trials if t.device_id in phones and t.case_id != gone],
    )


def tonight(farm: SmallFarm, found: RunResults):
    farm.nights(1, 9)
    farm.history.store(found)
    return judge_run(farm.history, found)


def test_a_phone_that_nobody_asked_for_is_not_missing(history: History) -> None:
    farm = SmallFarm(history)
    asked = only(farm.results(10), phones=("one",))
    findings = tonight(farm, replace(asked, run=replace(asked.run, wanted=["one"])))
    assert [d.device_id for d in findings.devices] == ["one"]
    assert findings.not_measured == []


def of_named(farm: SmallFarm, night: int, *phones: str, of_night: str = "") -> RunResults:
    """A second run of the day, with ``--device``."""
    found = only(farm.results(night), phones=phones)
    name = f"202612{night:02d}T160000Z-nightly-bbbb"
    run = replace(
        found.run, run_id=name, wanted=list(phones), started_at=f"2026-12-{night:02d}T16:00:00+00:00"
    )
    return replace(
        found, run=replace(run, night=of_night), trials=[replace(t, run_id=name) for t in found.trials]
    )


@pytest.mark.parametrize(
    ("phones", "of_night", "counts"),
    [(("one",), "", False), (PHONES, "", True), (("one",), "2026-12-08-nightly", True)],
)
def test_a_run_of_named_devices_takes_no_day_from_the_others(
    history: History, phones: tuple[str, ...], of_night: str, counts: bool
) -> None:
    farm = SmallFarm(history)
    farm.nights(1, 8)
    later = of_named(farm, 8, *phones, of_night=of_night)
    history.store(later)
    assert judge_run(history, later).nights[-1] == later.run.run_id, "it is judged itself"
    assert farm.night(9).nights[-2] == (later.run.run_id if counts else run_id(8))


def test_a_suite_that_only_ever_names_its_device_has_nights(history: History) -> None:
    farm = SmallFarm(history)
    runs = [of_named(farm, night, "one") for night in range(1, 10)]
    for found in runs:
        history.store(found)
    assert {row.verdict for row in judge_run(history, runs[-1]).series} == {"same"}


def test_a_run_of_named_devices_does_not_take_the_weekly_scan(history: History) -> None:
    farm = SmallFarm(history)
    farm.nights(1, 6)  # 7 December 2026 is a Monday
    history.store(of_named(farm, 7, "one"))
    tuesday = farm.results(8)
    history.store(tuesday)
    assert is_due(first_look(history, tuesday))


def test_a_degraded_night_says_so_first_and_counts(history: History) -> None:
    farm = SmallFarm(history)
    found = only(farm.results(10), phones=("one", "two"))
    degraded = [f"one at 2026-12-10T01:{n:02d}:00+00:00: its worker took nothing" for n in range(9)]
    findings = tonight(farm, replace(found, run=replace(found.run, degraded=degraded)))
    assert findings.not_measured == [
        *(f"DEGRADED: {sentence}" for sentence in degraded[:3]),
        "DEGRADED: 6 more, in the run's report",
        "three: not measured since 9 Dec",
    ]
    assert {d.device_id: d.verdict for d in findings.devices}["one"] != "missing"


def test_a_phone_that_was_expected_and_is_gone_is_missing(history: History) -> None:
    farm = SmallFarm(history)
    findings = tonight(farm, only(farm.results(10), phones=("one", "two")))
    assert findings.not_measured == ["three: not measured since 9 Dec"]
    assert {d.device_id: d.verdict for d in findings.devices}["three"] == "missing"


def test_a_case_that_left_the_suite_is_not_missing_and_one_that_did_not_run_is(history: History) -> None:
    farm = SmallFarm(history)
    whole = farm.results(10)
    left = only(whole, gone=SLOW)
    findings = tonight(farm, left)
    assert findings.counts["missing"] == 0
    assert len(findings.series) == len(CASES) - 1
    skipped = replace(left, cases=whole.cases)
    history.store(skipped)
    assert judge_run(history, skipped).counts["missing"] == 1


def test_each_suite_has_sentinels_of_its_own_on_a_phone(history: History) -> None:
    """Those of the other suite are never measured in this one: they would watch nothing."""
    farm = SmallFarm(history)
    farm.nights(1, 9)
    of_nightly = set(history.sentinels()["one"])
    assert of_nightly
    others = {c.case_id for c in CASES} - of_nightly
    for night in range(10, 19):
        made = farm.results(night)
        smoke = replace(
            made,
            run=replace(made.run, suite="smoke"),
            cases={i: info for i, info in made.cases.items() if i in others},
            trials=[t for t in made.trials if t.case_id in others],
        )
        history.store(smoke)
        judge_run(history, smoke)
    assert set(history.sentinels()["one"]) == of_nightly | others


@pytest.mark.parametrize("what", ["trials", "verdicts", "gone"])
def test_a_damaged_old_file_costs_its_night_and_not_the_verdict(history: History, what: str) -> None:
    farm = SmallFarm(history)
    for night in range(1, 10):
        farm.night(night)
    old = history.runs()[3]
    path = history.verdict_path(old) if what == "verdicts" else history.path(old)
    if what == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-200] + b"?" * 200)
    found = farm.night(10)
    assert old.run_id not in found.nights
    assert len(found.nights) == 9
    assert {row.verdict for row in found.series} == {"same"}
    (said,) = [s for s in found.not_measured if "left out" in s]
    assert said.startswith("night 2026-12-04 is left out: ")


def slow_from(night: int) -> Slower:
    return lambda n, _, case: 0.05 if n >= night and case == SLOW else 0.0


def test_nights_that_were_never_judged_are_no_baseline(history: History) -> None:
    """Put in by hand, or their judging failed: nobody knows what they show."""
    farm = SmallFarm(history, slow_from(9))
    farm.nights(1, 8)
    for night in range(9, 16):
        history.store(farm.results(night))
    found = farm.night(16)
    assert verdict(found) == "regressed"
    said = "was never judged and does not count: `tilefarm report"
    assert found.not_measured == [
        f"night 2026-12-09 {said} {run_id(9)}`",
        f"night 2026-12-10 {said} {run_id(10)}`",
        f"night 2026-12-11 {said} {run_id(11)}`",
        "4 more nights up to 2026-12-15 likewise: judge the oldest first",
    ]
    for night in range(9, 16):
        judge_run(history, farm.results(night))
    assert judge_run(history, farm.results(16)).not_measured == []


def test_a_history_that_was_never_judged_counts_as_it_is(history: History) -> None:
    """The first start of a farm that has runs, and a store made again from run folders."""
    farm = SmallFarm(history, slow_from(16))
    for night in range(1, 16):
        history.store(farm.results(night))
    found = farm.night(16)
    assert (verdict(found), found.not_measured) == ("regressed", [])
    assert verdict(farm.night(17)) == "regressed"


def test_a_phone_as_a_whole_is_not_held_against_nights_that_were_never_judged(history: History) -> None:
    farm = SmallFarm(history, lambda n, _phone, _case: 0.06 if n >= 9 else 0.0)
    farm.nights(1, 8)
    for night in range(9, 16):
        history.store(farm.results(night))
    assert {f.what for f in of_case(farm.night(16), EVERYTHING)} == {"regressed"}

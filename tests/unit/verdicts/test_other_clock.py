"""Phones whose clock is another one than in their accepted nights: a governor may lower it."""

from dataclasses import replace
from math import log

import pytest

from orchestrator.domain.finding import EVERYTHING, Findings
from orchestrator.domain.trial import Sensors, Trial
from orchestrator.history.history import History
from orchestrator.triage.restarts import Restart, Restarts
from orchestrator.verdicts.decided import Decided
from orchestrator.verdicts.judge import judge_run
from tests.unit.verdicts.small_farm import PHONES, SOC, SmallFarm, run_id, verdict

FAST, SLOW_CLOCK = 800_000_000, 700_000_000
BEFORE = 11


def at(trial: Trial, hz: int) -> Trial:
    samples = len(trial.timing.samples_ns) if trial.timing else 0
    shown = Sensors(gpu_hz=[hz] * (samples + 1), temp_mc=[40_000] * (samples + 1), throttled=False)
    return replace(trial, sensors=shown if hz else None)


def night(
    farm: SmallFarm,
    number: int,
    slow: tuple[str, ...] = (),
    hz: int = SLOW_CLOCK,
    *,
    slower: bool = True,
    decided: Decided | None = None,
) -> Findings:
    """With phones ``slow`` at clock ``hz`` (0: they show none), and as much slower."""
    farm.slower = lambda _n, phone, _case: log(FAST / SLOW_CLOCK) if slower and phone in slow else 0.0
    made = farm.results(number)
    found = replace(made, trials=[at(t, hz if t.device_id in slow else FAST) for t in made.trials])
    farm.history.store(found)
    return judge_run(farm.history, found, decided)


@pytest.fixture
def farm(history: History) -> SmallFarm:
    made = SmallFarm(history)
    for number in range(1, BEFORE + 1):
        night(made, number)
    return made


def test_phones_at_a_lower_clock_say_that_they_are_compared_with_nothing(farm: SmallFarm) -> None:
    found = night(farm, 12, PHONES)
    said = "its GPU ran at 700 MHz, in its 11 accepted nights at 800: 10 cases are compared with nothing"
    assert found.not_measured == [f"{phone}: {said}" for phone in sorted(PHONES)]
    assert all(said in d.items for d in found.devices)
    assert {(r.verdict, r.why) for r in found.series} == {
        ("new", "at another clock than its 11 accepted nights; 0 of 7 at this one")
    }
    assert found.sentence.startswith(
        "No verdict on speed: the clock of 10 cases is not that of the accepted nights; all 10 variants on "
    )
    again = night(farm, 13, PHONES)
    assert again.not_measured[0].endswith("compared with nothing (1 of 7 nights so far)")


def test_a_clock_that_is_shown_no_more_is_told(farm: SmallFarm) -> None:
    found = night(farm, 12, PHONES, hz=0)
    said = "its GPU showed no clock, in its 11 accepted nights it did: 10 cases are compared with nothing"
    assert found.not_measured == [f"{phone}: {said}" for phone in sorted(PHONES)]
    assert {r.why for r in found.series} == {
        "without a clock, unlike its 11 accepted nights; 0 of 7 like this"
    }


def test_one_phone_at_a_lower_clock_is_told_in_its_second_night_and_its_soc_is_judged(
    farm: SmallFarm,
) -> None:
    for number in range(12, 16):
        night(farm, number)
    for number in (16, 17, 18):
        found = night(farm, number, ("two",))
        assert [s.split(":")[0] for s in found.not_measured] == ["two"]
        assert verdict(found) == "same"
        items = [(f.device_id, f.what, f.cause, f.since) for f in found.findings]
        assert items == ([("two", "regressed", "device", run_id(16))] if number > 16 else [])
        assert all("clock 800 → 700 MHz" in f.detail for f in found.findings)
    assert night(farm, 19).not_measured == [], "it is back at its clock"
    for number in (20, 21):
        found = night(farm, number, ("two",))
        assert (found.findings, len(found.not_measured)) == ([], 1), "a state of that phone"


def test_a_soc_that_is_slower_at_a_lower_clock_is_found_in_its_first_night_and_stays_so(
    farm: SmallFarm,
) -> None:
    """Once there are seven nights at that clock, each case is the same as in those."""
    for number in range(12, 21):
        found = night(farm, number, PHONES)
        (finding,) = found.findings
        assert (finding.case_id, finding.device_id) == (EVERYTHING, "")
        assert (finding.what, finding.cause, finding.since) == ("regressed", "environment", run_id(12))
        assert finding.effect == pytest.approx(log(8 / 7), abs=0.01)
        said = found.groups[0].sentence
        assert said.startswith("all 10 variants on SM8650 since 12 Dec: 14.")
        assert said.endswith(" % slower together (clock 800 → 700 MHz)")
        assert {r.verdict for r in found.series} == {"new" if number < 19 else "same"}
    assert night(farm, 21).findings == [], "they are back at their clock"


def test_an_accepted_clock_is_no_news(farm: SmallFarm) -> None:
    assert night(farm, 12, PHONES).findings
    restart = Restart(run_id(12), run_id(12))
    accepted = Decided(restarts=Restarts(of_socs={("speed", SOC, EVERYTHING): [restart]}))
    for number in (13, 14):
        assert night(farm, number, PHONES, decided=accepted).findings == []


def test_another_clock_alone_is_no_slow_down(farm: SmallFarm) -> None:
    assert night(farm, 12, PHONES, slower=False).findings == []

"""What errors and outputs are held against: nights that have some, and no race's chance."""

from dataclasses import replace

import pytest

from orchestrator.domain.finding import Findings
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.history.history import History
from orchestrator.triage.decision import Decision, subject_of
from orchestrator.triage.restarts import Restarts
from orchestrator.verdicts.decided import Decided
from orchestrator.verdicts.judge import judge_run
from tests.unit.verdicts.small_farm import SLOW, SmallFarm, of_case, run_id


def crashed(results: RunResults) -> RunResults:
    """``SLOW`` came to no output on any phone."""

    def ended(trial: Trial) -> Trial:
        if trial.case_id != SLOW:
            return trial
        return replace(trial, verdict=Verdict.CRASHED, reason="SIGSEGV", timing=None, outputs=[])

    return replace(results, trials=[ended(t) for t in results.trials])


def judged(history: History, results: RunResults) -> Findings:
    history.store(results)
    return judge_run(history, results)


def whats(findings: Findings) -> list[str]:
    return sorted(f.what for f in of_case(findings) if f.kind == "numerics")


def test_a_first_night_without_an_output_is_no_baseline(history: History) -> None:
    farm = SmallFarm(history, nmse={4: 9.0})
    judged(history, crashed(farm.results(1)))
    farm.nights(2, 3)
    assert whats(farm.night(4)) == ["hash_changed", "nmse_doubled"]


def test_an_output_that_changed_behind_a_night_without_one_is_told(history: History) -> None:
    farm = SmallFarm(history, nmse={4: 9.0})
    farm.nights(1, 2)
    judged(history, crashed(farm.results(3)))
    assert whats(farm.night(4)) == ["hash_changed", "nmse_doubled"]


def test_one_night_without_a_flake_is_no_better_than_chance(history: History) -> None:
    """Two of twelve executions differed: as many that do not are expected one time in nine."""
    farm = SmallFarm(history, flaky=frozenset({1}))
    farm.nights(1, 1)
    steady = farm.night(2)
    flags = next(row.flags for row in steady.series if row.case_id == SLOW)
    assert "improved" not in flags


def test_an_id_is_the_same_in_whatever_order_phones_ended(history: History) -> None:
    """Phones of one SoC with two drivers have two outputs."""

    def other_driver(trial: Trial) -> Trial:
        if trial.device_id != "two":
            return trial
        outputs = [replace(o, hash=o.hash[::-1], hashes={o.hash[::-1]: 12}) for o in trial.outputs]
        return replace(trial, outputs=outputs)

    farm = SmallFarm(history, nmse={4: 9.0})
    ids: set[str] = set()
    for night in range(1, 6):
        made = farm.results(night)
        trials = sorted(map(other_driver, made.trials), key=lambda t: t.device_id, reverse=night % 2 == 1)
        found = judged(history, replace(made, trials=trials))
        ids |= {f.finding_id for f in of_case(found) if f.what == "nmse_doubled"}
    assert len(ids) == 1


def test_a_young_history_hides_no_wrong_number(history: History) -> None:
    found = SmallFarm(history, nmse={3: 9.0}).nights(1, 3)
    assert found.sentence == (
        "No verdict on speed yet: 2 nights before this one, 7 accepted ones are needed; 1 variant with other "
        "numerics"
    )


def wrong(farm: SmallFarm, night: int) -> RunResults:
    """``SLOW`` is far beyond its tolerance on every phone."""
    made = farm.results(night)

    def failed(trial: Trial) -> Trial:
        if trial.case_id != SLOW:
            return trial
        outputs = [
            replace(o, failing=64, nmse=0.5, hash="a" * 64, hashes={"a" * 64: 12}) for o in trial.outputs
        ]
        return replace(trial, verdict=Verdict.MISMATCH, reason="o: 64 elements outside", outputs=outputs)

    return replace(made, trials=[failed(t) for t in made.trials])


def test_an_output_beyond_its_limit_is_one_fault(history: History) -> None:
    """Its error has grown as well: that is not told again."""
    farm = SmallFarm(history)
    farm.nights(1, 3)
    found = judged(history, wrong(farm, 4))
    assert whats(found) == ["hash_changed", "limit_crossed"]
    assert next(row.flags for row in found.series if row.case_id == SLOW) == ["hash_changed", "limit_crossed"]


def test_numerics_are_counted_in_variants(history: History) -> None:
    """As the table does, whose rows are variants: one may have several findings."""
    farm = SmallFarm(history)
    farm.nights(1, 3)
    found = judged(history, wrong(farm, 4))
    assert len([f for f in found.findings if f.kind == "numerics"]) == 2
    assert found.counts["numerics"] == 1
    assert "1 variant with other numerics" in found.sentence


def test_nights_enough_without_a_number_are_not_called_young(history: History) -> None:
    farm = SmallFarm(history)
    farm.nights(1, 9)
    made = farm.results(10)
    found = judged(history, replace(made, trials=[replace(t, timing=None) for t in made.trials]))
    assert found.sentence == "10 missing; 0 of 10 cases the same"


def test_a_pin_longer_ago_than_the_nights_that_are_looked_at_still_counts(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half as much again since night 4, two and a half times as much since night 8: twice the pin's, and not
    twice what was in the oldest night that is looked at."""
    monkeypatch.setattr("orchestrator.verdicts.nights.NIGHTS", 6)
    farm = SmallFarm(history, nmse={4: 1.5, 8: 2.5})
    farm.nights(1, 2)
    history.baselines.pin("release", run_id(1), "ana", "")
    farm.nights(3, 7)
    told = [[f for f in of_case(farm.night(n)) if f.what == "nmse_doubled"] for n in range(8, 12)]
    assert [len(found) for found in told] == [1, 1, 1, 1]
    assert len({found[0].finding_id for found in told}) == 1
    last = told[-1][0]
    assert (last.since, last.baseline) == (run_id(8), [run_id(1)])
    assert last.code_before == last.code_after
    assert last.environment_before == last.environment_after != ""


def test_a_pin_of_an_older_season_does_not_count(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.verdicts.nights.NIGHTS", 6)
    farm = SmallFarm(history, nmse={4: 2.5})
    farm.nights(1, 2)
    history.baselines.pin("release", run_id(1), "ana", "")
    shown = farm.nights(3, 4)
    subjects = tuple(subject_of(f, "") for f in of_case(shown))
    accepted = Decision(
        "accepted", "ana", about="", run=shown.run_id, decided="2026-12-04T09:00:00+00:00", subjects=subjects
    )
    decided = Decided(restarts=Restarts.of([accepted]))
    assert [whats(farm.night(n, decided)) for n in range(5, 10)] == [[]] * 5

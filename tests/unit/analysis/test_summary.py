from dataclasses import replace

import pytest

from orchestrator.analysis.compare import compare
from orchestrator.analysis.outcome import judge
from orchestrator.analysis.summary import Summary, summarise
from orchestrator.domain.results import Missing, Pruned, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import copy_case, fma_case, precision_case, probe_info, probed
from tests.results_fixture import TODAY, case, expectation, info, passing, results, run_info, timing, trial

POINTS = [case(tile=t) for t in ("8x8", "16x16", "32x16")]
GOOD = [passing(p, "local-1") for p in POINTS]


def _summary(run: RunResults, previous: RunResults | None = None, bound: float | None = None) -> Summary:
    comparison = compare(previous, run) if previous is not None else None
    return summarise(run, judge(run, TODAY).trials, comparison, bound)


def _run(*trials: Trial, **changes: object) -> RunResults:
    return replace(results(trials=trials, points=POINTS), **changes)


def _bad(verdict: Verdict, n: int = 0) -> Trial:
    return trial(POINTS[n], "local-1", verdict, reason="r")


def test_all_passed() -> None:
    found = _summary(_run(*GOOD))
    assert (found.exit_code, found.bad) == (0, False)
    assert found.sentence == "No unexpected failure: 3 of 3 measured trials passed."


@pytest.mark.parametrize("verdict", [v for v in Verdict if v.blames_kernel])
def test_kernel_failure_is_exit_1_and_stands_first(verdict: Verdict) -> None:
    found = _summary(_run(_bad(verdict), *GOOD[1:]))
    assert (found.exit_code, found.bad) == (1, True)
    assert found.sentence == f"1 unexpected failure (1 {verdict}). 2 of 3 measured trials passed."


def test_infra_and_missing_are_exit_3() -> None:
    lost = _summary(_run(_bad(Verdict.INFRA), *GOOD[1:]))
    assert lost.exit_code == 3
    assert lost.sentence == "1 result not obtained (1 infra). 2 of 2 measured trials passed."
    gone = _summary(_run(*GOOD, missing=[Missing("local-1", POINTS[0].case_id, "vanished")]))
    assert gone.exit_code == 3
    assert "1 result not obtained (1 missing)" in gone.sentence


def test_wrong_kernel_wins_over_infra() -> None:
    assert _summary(_run(_bad(Verdict.INFRA, 0), _bad(Verdict.HUNG, 1), GOOD[2])).exit_code == 1


def test_pruned_and_refused_with_reason_are_exit_0() -> None:
    pruned = [Pruned("local-1", p.case_id, Verdict.UNSUPPORTED, ["shared_bytes 2 > 1"]) for p in POINTS]
    found = _summary(_run(pruned=pruned))
    assert found.exit_code == 0
    assert found.sentence == "Nothing was measured (3 points unsupported)."
    assert found.bad
    assert _summary(_run(_bad(Verdict.UNSUPPORTED), *GOOD[1:])).exit_code == 0


def test_nothing_at_all_is_not_success() -> None:
    found = _summary(_run())
    assert found.exit_code == 3
    assert found.sentence == "Nothing was measured (no point was planned on any device)."


def test_devices_that_never_came_are_no_results_and_say_why_nothing_was_measured() -> None:
    gone = [Missing("R5CT1", "", "unauthorized: accept the prompt"), Missing("R5CT2", "", "x" * 900)]
    found = _summary(_run(missing=gone[:1]))
    assert found.sentence == (
        "1 device did not take part. Nothing was measured (R5CT1: unauthorized: accept the prompt)."
    )
    assert (found.exit_code, found.counts.missing, found.counts.absent) == (3, 0, 1)
    assert len(_summary(_run(missing=gone * 20)).sentence) < 700
    beside = _summary(_run(*GOOD, missing=gone[:1]))
    assert beside.sentence == "1 device did not take part. 3 of 3 measured trials passed."
    assert beside.exit_code == 3


def test_an_unfinished_run_is_not_success() -> None:
    found = _summary(_run(*GOOD, run=run_info(finished=False)))
    assert found.exit_code == 3
    assert found.sentence.startswith("The run is not complete.")


def test_known_failures_are_named_and_green() -> None:
    found = _summary(_run(_bad(Verdict.MISMATCH), *GOOD[1:], expectations=[expectation("tile=8x8")]))
    assert found.exit_code == 0
    assert found.sentence == "No unexpected failure: 2 of 3 measured trials passed, 1 failed as known."


def test_unexpected_pass_is_said_first_and_green() -> None:
    found = _summary(_run(*GOOD, expectations=[expectation("tile=8x8")]))
    assert found.exit_code == 0
    assert found.sentence.startswith("1 unexpected pass. ")
    assert found.counts.unexpected_pass == 1


def test_slower_than_the_callers_bound_is_exit_1() -> None:
    before = _run(*(passing(p, "local-1", timing(10_000_000)) for p in POINTS))
    after = _run(*(passing(p, "local-1", timing(12_000_000)) for p in POINTS))
    assert _summary(after, before).exit_code == 0
    assert _summary(after, before, bound=1.3).exit_code == 0
    kept = replace(after, run=replace(after.run, max_slowdown=1.1))
    assert _summary(kept, before).exit_code == 1
    assert _summary(kept, before, bound=1.3).exit_code == 0
    found = _summary(after, before, bound=1.1)
    assert found.exit_code == 1
    assert found.sentence.startswith("3 slower than the bound of ×1.10. ")


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.PASS])
def test_never_all_good_beside_something_else(verdict: Verdict) -> None:
    sentence = _summary(_run(_bad(verdict), *GOOD[1:])).sentence
    assert "3 of 3" not in sentence
    unsupported = verdict in (Verdict.UNSUPPORTED, Verdict.INVALID)
    assert sentence.startswith("No unexpected failure") is unsupported
    assert ("unsupported" in sentence) is unsupported


def test_contradicted_pass_is_named() -> None:
    found = _summary(_run(replace(GOOD[0], recheck="disagreed"), *GOOD[1:]))
    assert found.sentence.startswith("1 unexpected failure (1 re-check disagreed).")


PROBES = [copy_case(2**20), fma_case(), precision_case()]


def _with_probes(*trials: Trial, **changes: object) -> RunResults:
    infos = [*(info(p) for p in POINTS), *(probe_info(p) for p in PROBES)]
    return replace(results(trials=[*GOOD, *trials], infos=infos), **changes)


def test_probes_that_passed_are_counted_apart() -> None:
    found = _summary(_with_probes(*(probed(p, "local-1") for p in PROBES)))
    assert (found.counts.passed, found.counts.probes, found.counts.measured) == (3, 3, 3)
    assert found.counts.planned == 6
    assert found.sentence == ("No unexpected failure: 3 of 3 measured trials passed, 3 of 3 probes passed.")
    assert found.exit_code == 0


def test_a_wrong_probe_is_a_failure_and_exit_1() -> None:
    bad = probed(PROBES[0], "local-1", verdict=Verdict.MISMATCH, reason="r")
    found = _summary(_with_probes(bad, probed(PROBES[1], "local-1")))
    assert (found.exit_code, found.counts.failed, found.counts.probes) == (1, 1, 1)
    assert found.sentence == (
        "1 unexpected failure (1 mismatch of a probe). 3 of 3 measured trials passed, 1 of 2 probes passed."
    )


def test_a_probe_that_was_not_obtained_is_exit_3() -> None:
    lost = probed(PROBES[0], "local-1", verdict=Verdict.INFRA, reason="canary before the batch: mismatch")
    assert _summary(_with_probes(lost)).exit_code == 3
    gone = [Missing("local-1", PROBES[0].case_id, "vanished")]
    assert _summary(_with_probes(missing=gone)).exit_code == 3


def test_probes_that_a_device_cannot_run_are_no_points_beyond_it() -> None:
    refused = probed(PROBES[1], "local-1", verdict=Verdict.UNSUPPORTED, reason="lacks float16")
    pruned = [Pruned("local-1", PROBES[2].case_id, Verdict.UNSUPPORTED, ["lacks float16"])]
    counts = _summary(_with_probes(refused, pruned=pruned)).counts
    assert (counts.unsupported, counts.pruned, counts.probes_unsupported) == (0, 0, 2)
    assert counts.planned == 5


def test_a_run_of_probes_alone_measured_no_variant() -> None:
    infos = [probe_info(p) for p in PROBES]
    found = _summary(results(trials=[probed(p, "local-1") for p in PROBES], infos=infos))
    assert found.sentence == "No variant was measured, 3 of 3 probes passed."
    assert (found.exit_code, found.bad) == (0, True)

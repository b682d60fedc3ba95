from dataclasses import replace

import pytest

from orchestrator.analysis.metrics import baselines, gflops, speedup, traffic_ratio
from orchestrator.analysis.outcome import JudgedTrial, judge
from orchestrator.analysis.stats import timing_stats
from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Cost
from orchestrator.domain.trial import GpuTimer, Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import TODAY, case, device, elements, mismatching, passing, results, timing, trial

FLASH = case(tile="32x16")


def _naive(tile: str = "16x16", precision: str = "fp32", api: str = "gles", seq: int = 512) -> Case:
    return case("attention_naive", tile=tile, precision=precision, api=api, seq=seq)


def _judged(*trials: tuple[Case, Trial]) -> list[JudgedTrial]:
    devices = [device(i) for i in dict.fromkeys(t.device_id for _, t in trials)]
    run = results(trials=[t for _, t in trials], points=[p for p, _ in trials], devices=devices)
    return list(judge(run, TODAY).trials)


def _timed(point: Case, ms: float, *, on: str = "d1", timer: GpuTimer = "disagrees") -> tuple[Case, Trial]:
    return point, passing(point, on, timing(round(ms * 1e6), gpu_timer=timer))


def _speedup(*trials: tuple[Case, Trial]) -> float | None:
    """Of the first one."""
    judged = _judged(*trials)
    return speedup(judged[0], baselines(judged))


def test_speedup_is_over_the_best_tile_of_naive() -> None:
    found = _speedup(_timed(FLASH, 10), _timed(_naive("8x8"), 90), _timed(_naive("16x16"), 60))
    assert found == pytest.approx(6.0)


@pytest.mark.parametrize(
    "other",
    [
        _timed(_naive(precision="fp16_storage"), 60),
        _timed(_naive(api="vulkan"), 60),
        _timed(_naive(seq=1024), 60),
        _timed(_naive(), 60, on="d2"),
        _timed(_naive(), 60, timer="trusted"),
    ],
    ids=["precision", "api", "workload", "device", "clock"],
)
def test_no_speedup_over_something_unequal(other: tuple[Case, Trial]) -> None:
    assert _speedup(_timed(FLASH, 10), other) is None


def test_wrong_results_neither_set_nor_have_a_speedup() -> None:
    wrong = mismatching(elements(FLASH), index=3, got=1.0, ref=0.5, failing=1)
    bad_flash = trial(FLASH, "d1", Verdict.MISMATCH, time=timing(1_000_000), outputs=[wrong])
    bad_naive = trial(_naive(), "d1", Verdict.MISMATCH, time=timing(90_000_000), outputs=[wrong])
    assert _speedup((FLASH, bad_flash), _timed(_naive(), 60)) is None
    assert _speedup(_timed(FLASH, 10), (_naive(), bad_naive)) is None


def test_gflops_and_traffic() -> None:
    stats = timing_stats(timing(2_000_000))
    assert stats is not None
    assert gflops(Cost(flops=8_000_000_000, bytes_min=4, bytes_moved=10), stats) == pytest.approx(4000.0)
    assert gflops(Cost(flops=0, bytes_min=4, bytes_moved=10), stats) is None
    assert traffic_ratio(Cost(flops=1, bytes_min=4, bytes_moved=10)) == 2.5
    assert traffic_ratio(Cost(flops=1, bytes_min=0, bytes_moved=0)) is None


def test_g4_05_two_clock_states_are_no_baseline() -> None:
    """G4-05: no ratio to a time that no single number stands for."""
    two = replace(timing(), wall_ns=[10_000_000, 14_000_000] * 10)
    naive = passing(case("attention_naive", tile="8x8"), "local-1", two)
    run = results(trials=[naive], points=[case("attention_naive", tile="8x8")])
    assert baselines(judge(run, TODAY).trials) == {}

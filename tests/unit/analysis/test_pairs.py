from collections.abc import Sequence
from dataclasses import replace

import pytest

from orchestrator.analysis.outcome import judge
from orchestrator.analysis.pairs import Pair, PairTable, pair_tables
from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import fma_case, probe_info, probed
from tests.results_fixture import (
    TODAY,
    case,
    device,
    hardware,
    info,
    lavapipe,
    passing,
    results,
    timing,
    trial,
    vulkan_profile,
)

GPU = "local-buildhost-h200"
OLD, NEW = case(api="gles"), case(api="vulkan")


def _tables(
    trials: Sequence[Trial], points: Sequence[Case], devices: Sequence[DeviceRecord]
) -> list[PairTable]:
    infos = [probe_info(p) if p.kernel == "fma" else info(p) for p in points]
    run = results(trials=trials, infos=infos, devices=devices)
    return list(pair_tables(judge(run, TODAY).trials, run.devices))


def _pair(old: Trial, new: Trial) -> Pair:
    return _tables([old, new], [OLD, NEW], [hardware(GPU)])[0].pairs[0]


def _ran(point: Case, ms: float = 10.0, *, bits: str = "a", spread: float = 0.02) -> Trial:
    return passing(point, GPU, timing(round(ms * 1e6), gpu_timer="trusted", spread=spread), bits=bits)


def test_one_gpu_is_paired_with_itself() -> None:
    table = _tables([_ran(OLD), _ran(NEW, 8)], [OLD, NEW], [hardware(GPU)])[0]
    assert table.one_device
    assert table.names == "GLES and Vulkan on NVIDIA H200"
    pair = table.pairs[0]
    assert pair.ratio == pytest.approx(0.8)
    assert pair.faster == "vulkan"
    assert pair.same_bits
    assert pair.gles.compile_ns == 31_000_000
    assert pair.gles.use is not None
    assert (
        table.sentence == "same bits on both APIs in 1 of 1 point; Vulkan faster in 1, GLES in 0, even in 0"
    )


def test_software_drivers_of_one_machine_are_paired_across() -> None:
    swift = device("swift", soc="SwiftShader", profiles=[vulkan_profile("SwiftShader Device")])
    trials = [passing(OLD, "llvm"), passing(NEW, "lava"), passing(NEW, "swift")]
    tables = _tables(trials, [OLD, NEW], [device("llvm"), lavapipe("lava"), swift])
    assert [t.names for t in tables] == [
        "GLES on llvmpipe and Vulkan on lavapipe",
        "GLES on llvmpipe and Vulkan on SwiftShader",
    ]
    assert not tables[0].one_device


def test_virtual_phones_other_machines_and_real_gpus_are_never_paired_across() -> None:
    trials = [passing(OLD, "llvm"), passing(NEW, "lava")]
    elsewhere = replace(lavapipe("lava"), resource="cpu@other")
    assert _tables(trials, [OLD, NEW], [device("llvm"), elsewhere]) == []
    assert _tables(trials, [OLD, NEW], [device("llvm", virtual=True), lavapipe("lava")]) == []
    gpus = [hardware("llvm"), hardware("lava")]
    assert _tables(trials, [OLD, NEW], gpus) == []


def test_only_the_api_may_differ_and_probes_are_no_variants() -> None:
    other = case(api="vulkan", tile="8x8")
    assert _tables([_ran(OLD), _ran(other)], [OLD, other], [hardware(GPU)]) == []
    probes = [fma_case("gles"), fma_case("vulkan")]
    assert _tables([probed(p, GPU) for p in probes], probes, [hardware(GPU)]) == []


def test_where_one_gpu_timer_is_not_trusted_both_times_are_by_the_wall_clock() -> None:
    """llvmpipe's timer never is, lavapipe's mostly; ``_ran``'s wall clock is 0.04 ms above its GPU's."""
    pair = _pair(_ran(OLD), passing(NEW, GPU, timing(8_032_000)))
    assert pair.gles.stats is not None
    assert pair.vulkan.stats is not None
    assert (pair.gles.stats.clock, pair.vulkan.stats.clock) == ("wall", "wall")
    assert pair.gles.stats.median_ns == pytest.approx(10_040_000)
    assert pair.ratio == pytest.approx(0.8, rel=1e-3)
    assert pair.faster == "vulkan"


def test_a_side_without_wall_times_has_no_ratio() -> None:
    broken = passing(NEW, GPU, replace(timing(), wall_ns=[]))
    pair = _pair(_ran(OLD), broken)
    assert (pair.ratio, pair.faster, pair.same_bits is not None) == (None, "", True)


def test_within_noise_neither_is_faster() -> None:
    assert _pair(_ran(OLD, 10), _ran(NEW, 10.1)).faster == "even"
    assert _pair(_ran(OLD, 10), _ran(NEW, 12, spread=0.3)).faster == "even"
    assert _pair(_ran(OLD, 8), _ran(NEW, 10)).faster == "gles"


def test_bits_of_every_execution_count() -> None:
    assert _pair(_ran(OLD, bits="a"), _ran(NEW, bits="b")).same_bits is False
    flaky = _ran(NEW)
    output = replace(flaky.outputs[0], hashes={**flaky.outputs[0].hashes, "other": 1})
    assert _pair(_ran(OLD), replace(flaky, outputs=[output])).same_bits is False


def test_a_wrong_side_has_no_time_no_ratio_and_no_bits() -> None:
    wrong = replace(_ran(NEW), verdict=Verdict.MISMATCH, reason="4 elements")
    pair = _pair(_ran(OLD), wrong)
    assert pair.verdict_differs
    assert (pair.ratio, pair.same_bits, pair.vulkan.stats) == (None, None, None)
    table = _tables([_ran(OLD), wrong], [OLD, NEW], [hardware(GPU)])[0]
    assert table.sentence == "same bits on both APIs in 0 of 0 points; another verdict in 1"
    both = _tables([replace(wrong, case_id=OLD.case_id), wrong], [OLD, NEW], [hardware(GPU)])[0]
    assert both.sentence == "same bits on both APIs in 0 of 0 points; wrong on both in 1"


@pytest.mark.parametrize("verdict", [Verdict.INFRA, Verdict.UNSUPPORTED, Verdict.INVALID])
def test_what_gave_no_result_is_no_side(verdict: Verdict) -> None:
    assert _tables([_ran(OLD), trial(NEW, GPU, verdict)], [OLD, NEW], [hardware(GPU)]) == []


def _two_tiles(gles: tuple[float, float], vulkan: tuple[float, float]) -> PairTable:
    points = [case(api=a, tile=t) for a in ("gles", "vulkan") for t in ("64x16", "128x16")]
    trials = [_ran(p, ms) for p, ms in zip(points, (*gles, *vulkan), strict=True)]
    return _tables(trials, points, [hardware(GPU)])[0]


def test_another_fastest_tile_on_each_api_is_named() -> None:
    """The H200's case of facts.md: 64x16 takes 1.33 ms through EGL and 1.64 ms through Vulkan."""
    table = _two_tiles((1.33, 1.50), (1.64, 1.28))
    found = table.best_differs[0]
    assert (found.gles, found.vulkan) == ("tile=64x16", "tile=128x16")
    assert (round(found.gles_ns), round(found.vulkan_ns)) == (1_330_000, 1_280_000)
    assert table.sentence.endswith("the fastest variant differs by API in 1 of 1 choices")


def test_a_choice_with_one_wall_clock_is_made_by_the_wall_clock_alone() -> None:
    points = [case(api=a, tile=t) for a in ("gles", "vulkan") for t in ("64x16", "128x16")]
    trials = [_ran(p, ms) for p, ms in zip(points, (1.33, 1.50, 1.64, 1.28), strict=True)]
    trials[3] = passing(points[3], GPU, timing(1_280_000))
    found = _tables(trials, points, [hardware(GPU)])[0].best_differs[0]
    assert (round(found.gles_ns), round(found.vulkan_ns)) == (1_370_000, 1_280_000)


def test_a_choice_within_noise_on_both_apis_is_none() -> None:
    assert _two_tiles((1.330, 1.335), (1.285, 1.280)).best_differs == ()
    assert _two_tiles((1.33, 1.50), (1.28, 1.64)).best_differs == ()

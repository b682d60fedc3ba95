"""Ceilings from probe trials, and places under them."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.analysis.roofline import ApiCeilings, Bandwidth, Ceilings, FlopRate, ceilings, place
from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.kernel import Cost
from orchestrator.domain.results import CaseInfo
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import timing, trial

MIB = 2**20


def copy(nbytes: int, api: str = "gles") -> CaseInfo:
    point = Case("copy", "copy", {"bytes": nbytes}, {"api": api, "precision": "bits"}, "bits")
    return _info(point, Cost(0, 2 * nbytes, 2 * nbytes))


def fma(flops: int, precision: str = "fp32", hint: str = "highp", api: str = "gles") -> CaseInfo:
    axes: dict[str, AxisValue] = {"api": api, "precision": precision, "hint": hint}
    return _info(Case("fma", "fma", {"groups": flops // 1000}, axes, "whole"), Cost(flops, 64, 64))


def _info(point: Case, cost: Cost) -> CaseInfo:
    return CaseInfo(point, "0" * 16, cost, {}, (64, 1, 1), 0, 1, role="probe")


def ran(info: CaseInfo, median_ns: int, on: str = "d", verdict: Verdict = Verdict.PASS) -> Trial:
    return replace(trial(info.case, on, verdict), timing=timing(median_ns, spread=0.0))


def found(*pairs: tuple[CaseInfo, int]) -> ApiCeilings:
    cases = {i.case.case_id: i for i, _ in pairs}
    return ceilings([ran(i, ns) for i, ns in pairs], cases, "d").of("gles")


def variant(**axes: AxisValue) -> Case:
    chosen: dict[str, AxisValue] = {"api": "gles", "precision": "fp32", "hint": "highp"}
    return Case("attention_flash", "attention", {}, chosen | axes)


ROOF = Ceilings(
    "d",
    (
        ApiCeilings(
            "gles",
            (Bandwidth(MIB, 50e9), Bandwidth(16 * MIB, 10e9)),
            (FlopRate("fp16", "highp", 200e9), FlopRate("fp32", "highp", 100e9)),
        ),
    ),
)
"""10 GB/s and 100 GFLOP/s: the ridge is at 10 flop a byte in fp32."""


def test_ceilings_by_size_and_precision() -> None:
    api = found(
        (copy(16 * MIB), 2_000_000),
        (copy(MIB), 50_000),
        (fma(1_000_000), 10_000),
        (fma(8_000_000), 20_000),
        (fma(1_000_000, hint="mediump"), 5_000),
    )
    assert [b.nbytes for b in api.bandwidths] == [MIB, 16 * MIB]
    assert api.dram is not None
    assert api.dram.bytes_per_s == pytest.approx(2 * 16 * MIB / 2e-3)
    assert api.cache is not None
    assert api.cache.nbytes == MIB
    assert {(r.hint, round(r.flops_per_s)) for r in api.rates} == {
        ("highp", 400_000_000_000),
        ("mediump", 200_000_000_000),
    }


def test_relative_speed_compares_equal_sizes() -> None:
    api = found((fma(1_000_000), 10_000), (fma(8_000_000), 20_000), (fma(1_000_000, hint="mediump"), 5_000))
    assert api.relative("fp32", "mediump") == pytest.approx(2.0)
    assert api.relative("fp16", "highp") is None


def test_only_passed_trials_of_the_device_count() -> None:
    info = copy(MIB)
    cases = {info.case.case_id: info}
    wrong = [ran(info, 1000, verdict=Verdict.MISMATCH), ran(info, 1000, on="other")]
    assert ceilings(wrong, cases, "d") == Ceilings("d")


def test_apis_have_ceilings_of_their_own() -> None:
    infos = [copy(MIB), copy(MIB, "vulkan")]
    cases = {i.case.case_id: i for i in infos}
    both = ceilings([ran(infos[0], 1000), ran(infos[1], 2000)], cases, "d")
    gles, vulkan = both.of("gles").dram, both.of("vulkan").dram
    assert gles is not None
    assert vulkan is not None
    assert gles.bytes_per_s == pytest.approx(2 * vulkan.bytes_per_s)


def test_no_cache_where_the_largest_copy_is_the_fastest() -> None:
    assert found((copy(MIB), 1_000_000), (copy(16 * MIB), 1_000_000)).cache is None


def test_memory_binds_below_the_ridge() -> None:
    point = place(ROOF, Cost(flops=1_000_000, bytes_min=1_000_000, bytes_moved=9_000_000), variant(), 200_000)
    assert point is not None
    assert (point.binds, point.ceiling, point.intensity) == ("memory", "DRAM bandwidth", 1.0)
    assert point.share == pytest.approx(0.5)
    assert point.sentence == "50 % of DRAM bandwidth"


@pytest.mark.parametrize(
    ("precision", "share", "name"),
    [
        ("fp32", 0.5, "fp32 compute"),
        ("fp16_storage", 0.5, "fp32 compute"),
        ("fp16", 0.25, "fp16 compute"),
        ("fp16_all", 0.25, "fp16 compute"),
    ],
)
def test_compute_binds_above_the_ridge(precision: str, share: float, name: str) -> None:
    cost = Cost(flops=100_000_000, bytes_min=1_000_000, bytes_moved=1_000_000)
    point = place(ROOF, cost, variant(precision=precision), 2_000_000)
    assert point is not None
    assert (point.binds, point.ceiling, point.note) == ("compute", name, "")
    assert point.share == pytest.approx(share)


def test_a_share_above_the_ceiling_names_caches() -> None:
    point = place(ROOF, Cost(1_000_000, 1_000_000, 1_000_000), variant(), 50_000)
    assert point is not None
    assert point.share == pytest.approx(2.0)
    assert "stay in caches" in point.sentence
    assert "50 GB/s" in point.sentence


def test_a_hint_without_a_probe_is_placed_under_highp() -> None:
    point = place(ROOF, Cost(10**9, 1_000_000, 1_000_000), variant(hint="mediump"), 20_000_000)
    assert point is not None
    assert point.ceiling == "fp32 compute"
    assert point.note == "no fma probe for fp32 mediump: placed under highp"


def test_missing_probes() -> None:
    cost = Cost(10**9, 1_000_000, 1_000_000)
    assert place(Ceilings("d"), cost, variant(), 1_000_000) is None
    assert place(ROOF, cost, variant(api="vulkan"), 1_000_000) is None
    memory = Ceilings("d", (replace(ROOF.apis[0], rates=()),))
    compute = Ceilings("d", (replace(ROOF.apis[0], bandwidths=()),))
    under_memory, under_compute = (place(c, cost, variant(), 20_000_000) for c in (memory, compute))
    assert under_memory is not None
    assert (under_memory.binds, under_memory.note) == (
        "memory",
        "no fma probe for fp32: the compute ceiling is unknown",
    )
    assert under_compute is not None
    assert (under_compute.binds, under_compute.note) == (
        "compute",
        "no copy probe: the memory ceiling is unknown",
    )


def test_a_time_of_zero_has_no_place() -> None:
    assert place(ROOF, Cost(1, 1, 1), variant(), 0) is None


@pytest.mark.parametrize(
    ("base", "mine", "told"),
    [
        ({"clock_hz": 1.98e9}, {"clock_hz": 1.97e9, "unsteady": True}, True),
        ({"clock_hz": 1.98e9}, {"clock_hz": 0.57e9}, False),
        ({}, {"unsteady": True}, False),
        ({"canary_ns": (10_144, 10_200)}, {"canary_ns": (10_144, 26_688)}, False),
        ({"canary_ns": (10_144, 10_200)}, {"canary_ns": (10_300, 10_200)}, True),
    ],
    ids=["one clock", "two clocks", "unsteady and unknown", "canary at two speeds", "canary at one speed"],
)
def test_g4_05_no_relative_speed_across_clocks(
    base: dict[str, Any], mine: dict[str, Any], told: bool
) -> None:
    """G4-05: a mediump at 0.26 times the rate of highp was a clock that fell between two probes."""
    rates = (FlopRate("fp32", "highp", 4e12, **base), FlopRate("fp32", "mediump", 1e12, **mine))
    assert (ApiCeilings("vulkan", measured=rates).relative("fp32", "mediump") is not None) == told

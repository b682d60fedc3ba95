"""Builders of probes, effective precision and canaries for tests, beside ``results_fixture``."""

from dataclasses import replace
from typing import Literal

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Cost
from orchestrator.domain.precision import Asked, Precision
from orchestrator.domain.results import CaseInfo
from orchestrator.domain.trial import Canary, Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import code_hash, numerics, timing, trial

KIB, MIB = 2**10, 2**20
FMA_FLOPS = 2**34


def copy_case(nbytes: int, api: str = "gles") -> Case:
    return Case(kernel="copy", op="copy", workload={"bytes": nbytes}, axes={"api": api, "precision": "bits"})


def fma_case(api: str = "gles", precision: str = "fp32", hint: str = "highp") -> Case:
    axes = {"api": api, "precision": precision, "hint": hint}
    return Case(kernel="fma", op="fma", workload={"groups": 1024}, axes=dict(axes))


def precision_case(api: str = "gles", asked: Asked = "highp") -> Case:
    return Case(
        kernel="precision_probe",
        op="precision",
        workload={},
        axes={"api": api, "precision": "asked", "asked": asked},
    )


def probe_info(point: Case) -> CaseInfo:
    nbytes = int(point.workload.get("bytes", 0))
    flops = FMA_FLOPS if point.kernel == "fma" else 0
    return CaseInfo(
        case=point,
        code_hash=code_hash(point),
        cost=Cost(flops=flops, bytes_min=2 * nbytes, bytes_moved=2 * nbytes),
        tolerance={},
        workgroup=(64, 1, 1),
        shared_bytes=0,
        dispatches=1,
        role="probe",
    )


def probed(
    point: Case, device_id: str, median_ns: int = 1_000_000, verdict: Verdict = Verdict.PASS, reason: str = ""
) -> Trial:
    """A probe's trial; one that passed was timed, every sample alike."""
    time = timing(median_ns, spread=0.0) if verdict is Verdict.PASS else None
    return trial(point, device_id, verdict, reason=reason, time=time, outputs=[numerics(64, buffer="out")])


def copied(nbytes: int, device_id: str, gb_per_s: float, api: str = "gles") -> Trial:
    """At ``gb_per_s`` read plus write."""
    return probed(copy_case(nbytes, api), device_id, round(2 * nbytes / gb_per_s))


def calculated(
    device_id: str, gflops: float, api: str = "gles", precision: str = "fp32", hint: str = "highp"
) -> Trial:
    return probed(fma_case(api, precision, hint), device_id, round(FMA_FLOPS / gflops))


def precision(
    device_id: str,
    asked: Asked = "highp",
    api: str = "gles",
    *,
    delivered: Literal["fp32", "fp16"] = "fp32",
    relative_speed: float | None = None,
    demoted: bool = False,
) -> Precision:
    wide = delivered == "fp32"
    return Precision(
        device_id=device_id,
        api=api,
        asked=asked,
        mantissa_bits=23 if wide else 10,
        largest=3.4028234663852886e38 if wide else 65504.0,
        subnormals="kept" if wide else "flushed",
        rounding="nearest-even",
        nan="kept",
        inf="kept",
        exp_underflow=-103.0 if wide else -17.0,
        delivered=delivered,
        relative_speed=relative_speed,
        demoted=demoted,
        contraction="separate",
        max_nan="number",
    )


def vouched(made: Trial, before_ns: int = 210_000, after_ns: int = 220_000) -> Trial:
    """With the canary of its batch, expected at 0.2 ms."""
    return replace(made, canary=Canary(before_ns, after_ns, expected_ns=200_000, factor=4.0))

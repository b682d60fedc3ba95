"""Builders of results for tests: one small valid value a call, every field overridable.

results(devices=[device("local-1")], infos=[info(case())], trials=[passing(case(), "local-1")])
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Literal

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.device import DeviceRecord, Soc
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.kernel import Cost, Tolerance
from orchestrator.domain.profile import Profile, SubgroupFacts
from orchestrator.domain.results import CaseInfo, RunInfo, RunResults
from orchestrator.domain.trial import Element, GpuTimer, Numerics, Timing, Trial
from orchestrator.domain.verdict import Verdict

TODAY = date(2026, 12, 1)
RUN_ID = "20261201-010000-a1b2"
PREVIOUS_RUN_ID = "20261130-010000-c3d4"
DRIVER = "llvmpipe (LLVM 15.0.6, 256 bits); OpenGL ES 3.2 Mesa 22.3.6"


def case(
    kernel: str = "attention_flash",
    *,
    seq: int = 512,
    head_dim: int = 64,
    heads: int = 1,
    inputs: str = "normal",
    **axes: AxisValue,
) -> Case:
    chosen: dict[str, AxisValue] = {"api": "gles", "precision": "fp32", "tile": "32x16"}
    return Case(
        kernel=kernel,
        op=kernel.split("_")[0],
        workload={"seq": seq, "head_dim": head_dim, "heads": heads, "kv_heads": heads, "causal": False},
        axes=chosen | axes,
        inputs=inputs,
    )


def info(point: Case, *, code: str = "1", shared_bytes: int = 12_288) -> CaseInfo:
    """A case's plan: attention's arithmetic, compulsory traffic of Q, K, V and O."""
    seq, dim, heads = (_whole(point, name) for name in ("seq", "head_dim", "heads"))
    element = 2 if point.axes.get("precision") == "fp16_storage" else 4
    minimum = 4 * seq * dim * heads * element
    rows = int(str(point.axes.get("tile", "16x16")).split("x")[0])
    scores = 4 * seq * seq * heads * 4 if point.kernel.endswith("_naive") else 0
    moved = minimum // 2 + 2 * seq * dim * heads * element * -(-seq // rows) + scores
    return CaseInfo(
        case=point,
        code_hash=code_hash(point, code),
        cost=Cost(flops=4 * seq * seq * dim * heads, bytes_min=minimum, bytes_moved=moved),
        tolerance={"o": Tolerance(atol=2e-6, rtol=0.0, nmse=1e-10)},
        workgroup=(64, 1, 1),
        shared_bytes=shared_bytes,
        dispatches=3 if point.kernel.endswith("_naive") else 1,
        output_shape={"o": [heads, seq, dim]},
    )


def code_hash(point: Case, code: str = "1") -> str:
    return sha256_hex(f"{point.case_id}/{code}".encode())[:16]


def timing(
    median_ns: int = 16_000_000,
    *,
    spread: float = 0.02,
    n: int = 10,
    gpu_timer: GpuTimer = "disagrees",
    compile_ns: int = 31_000_000,
) -> Timing:
    """Samples evenly around ``median_ns`` with IQR ÷ median = ``spread``."""
    step = 2 * spread / (n - 1) if n > 1 else 0.0
    samples = [round(median_ns * (1 + step * (i - (n - 1) / 2))) for i in range(n)]
    trusted = gpu_timer == "trusted"
    return Timing(
        compile_ns=[compile_ns],
        first_ns=round(median_ns * 2.1),
        wall_ns=[s + 40_000 for s in samples] if trusted else samples,
        gpu_ns=samples if trusted else [],
        gpu_timer=gpu_timer,
        slope_ns=median_ns,
        slope_n=10,
    )


def numerics(count: int, *, max_abs: float = 4e-7, bits: str = "a", buffer: str = "o") -> Numerics:
    """A comparison that passes; failing ones are ``replace``d from it."""
    digest = sha256_hex(bits.encode())
    return Numerics(
        buffer=buffer, dtype="f32", count=count, hash=digest, hashes={digest: 11}, guard="ok", unwritten=0,
        nan=0, inf=0, nonfinite_mismatch=0, failing=0, max_abs=max_abs, mean_abs=max_abs / 9,
        p99_abs=max_abs / 2, max_rel=3e-5, mean_rel=2e-7, p99_rel=4e-6, ulp_max=412, ulp_p50=1, ulp_p99=9,
        nmse=max_abs**2, cosine=1.0, ref_absmax=0.42,
    )  # fmt: skip


def mismatching(count: int, *, index: int, got: float, ref: float, failing: int, bits: str = "x") -> Numerics:
    return replace(
        numerics(count, max_abs=abs(got - ref), bits=bits),
        failing=failing,
        nmse=3e-3,
        first_bad=Element(
            index=index - failing + 1 if index >= failing else index, got=ref + (got - ref) / 2, ref=ref
        ),
        worst=Element(index=index, got=got, ref=ref),
    )


def trial(
    point: Case,
    device_id: str,
    verdict: Verdict = Verdict.PASS,
    *,
    reason: str = "",
    run_id: str = RUN_ID,
    time: Timing | None = None,
    outputs: Sequence[Numerics] = (),
    code: str = "1",
    driver: str = DRIVER,
    log: str = "",
    recheck: Literal["", "agreed", "disagreed"] = "",
) -> Trial:
    return Trial(
        run_id=run_id, device_id=device_id, case_id=point.case_id, attempt=1, verdict=verdict, reason=reason,
        code_hash=code_hash(point, code), started_at="2026-12-01T01:00:07Z", duration_ms=842, driver=driver,
        log=log, timing=time, outputs=list(outputs), recheck=recheck,
    )  # fmt: skip


def passing(point: Case, device_id: str, time: Timing | None = None, **changes: str) -> Trial:
    """A trial that passed with 16 ms; ``run_id``, ``code``, ``driver`` and ``bits`` can be changed."""
    bits = changes.pop("bits", point.case_id)
    made = trial(point, device_id, time=time or timing(), outputs=[numerics(elements(point), bits=bits)])
    code = changes.pop("code", "1")
    return replace(
        made,
        code_hash=code_hash(point, code),
        run_id=changes.pop("run_id", made.run_id),
        driver=changes.pop("driver", made.driver),
    )


def device(
    device_id: str = "local-1",
    *,
    soc: str = "llvmpipe",
    name: str = "llvmpipe (LLVM 15.0.6, 256 bits)",
    serial: str = "buildhost",
    transport: Literal["local", "adb"] = "local",
    version: str = "OpenGL ES 3.2 Mesa 22.3.6",
    shared_bytes: int = 32_768,
    virtual: bool = False,
    os_build: str = "Debian GNU/Linux 12",
    health: dict[str, str] | None = None,
    resource: str = "cpu@buildhost",
    profiles: Sequence[Profile] | None = None,
) -> DeviceRecord:
    """llvmpipe through GLES, unless ``profiles`` say otherwise."""
    gles = Profile(
        api="gles", vendor="Mesa", renderer="llvmpipe (LLVM 15.0.6, 256 bits)", version=version,
        glsl="OpenGL ES GLSL ES 3.20", library="libGLESv2.so.2.1.0 (libEGL_mesa.so.0, swrast_dri.so)",
        limits={"shared_bytes": shared_bytes, "invocations": 1024, "group_x": 1024, "group_y": 1024,
                "group_z": 1024, "storage_bytes": 134_217_728, "storage_bindings": 16, "storage_align": 16},
        extensions=["GL_EXT_disjoint_timer_query"], features={"pack_half": True, "timer_query": True},
        timer_bits=64, imposed=virtual,
    )  # fmt: skip
    return DeviceRecord(
        device_id=device_id,
        transport=transport,
        serial=serial,
        name=name,
        soc=Soc(soc, "Mesa", soc, "GL_RENDERER", "certain"),
        profiles=list(profiles) if profiles is not None else [gles],
        resource=resource,
        host="buildhost",
        os_build=os_build,
        virtual=virtual,
        health=health or {},
    )


def vulkan_profile(
    renderer: str = "llvmpipe (LLVM 15.0.6, 256 bits)",
    *,
    driver: str = "llvmpipe",
    device_type: str = "cpu",
    subgroup: int = 8,
    half: bool = True,
    invocations: int = 1024,
) -> Profile:
    """lavapipe's, as Mesa 22.3.6 reports it."""
    proven = {
        "pack_half": True, "timer_query": True, "subgroup_basic": True, "subgroup_arithmetic": True,
        "float16": half, "storage16": half,
    }  # fmt: skip
    return Profile(
        api="vulkan", vendor="Mesa", renderer=renderer, version=f"{driver}; Mesa 22.3.6; Vulkan 1.3.230",
        library="libvulkan_lvp.so",
        limits={"shared_bytes": 32_768, "invocations": invocations, "group_x": invocations,
                "group_y": invocations, "group_z": 64, "storage_bytes": 134_217_728},
        adapter=f"13-{driver}", device_type=device_type,
        driver={"id": "13", "name": driver, "info": "Mesa 22.3.6", "conformance": "1.3.1.1"},
        advertised=proven | {"io16": half, "cooperative_matrix": True}, features=proven,
        unproven={"cooperative_matrix": "probe shader: device lost"},
        subgroup=SubgroupFacts(advertised=subgroup, measured=subgroup),
        float_controls={"denorm_preserve_f32": True, "rounding_rtz_f32": False},
        timer_bits=64, timer_period_ns=1.0,
    )  # fmt: skip


def lavapipe(device_id: str = "local-buildhost-lavapipe") -> DeviceRecord:
    """Beside llvmpipe's: another driver of the same processor."""
    return device(device_id, soc="lavapipe", name="lavapipe", profiles=[vulkan_profile()])


def hardware(device_id: str = "local-buildhost-h200", *, subgroup: int = 32) -> DeviceRecord:
    """One GPU with both APIs."""
    vulkan = vulkan_profile("NVIDIA H200", driver="NVIDIA", device_type="discrete", subgroup=subgroup)
    gles = replace(
        vulkan, api="gles", version="OpenGL ES 3.2 NVIDIA 580.159.04", library="libEGL_nvidia.so.0",
        adapter="", device_type="", driver={}, advertised={"pack_half": True}, unproven={},
        features={"pack_half": True, "timer_query": True}, float_controls={},
        subgroup=SubgroupFacts(measured=subgroup),
    )  # fmt: skip
    return device(
        device_id, soc="NVIDIA-H200", name="NVIDIA H200", resource="gpu@buildhost", profiles=[gles, vulkan]
    )


def expectation(
    when: str = "attention_flash", verdict: Verdict = Verdict.MISMATCH, *, expires: date = date(2027, 3, 1)
) -> Expectation:
    return Expectation(
        when=when,
        verdict=verdict,
        soc="llvmpipe*",
        driver="*Mesa*",
        reason="llvmpipe ends a loop nest silently after 65,535 iterations",
        owner="kernels",
        expires=expires,
        line=41,
    )


def run_info(run_id: str = RUN_ID, *, suite: str = "smoke", finished: bool = True) -> RunInfo:
    day = f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}"
    return RunInfo(
        run_id=run_id,
        suite=suite,
        started_at=f"{day}T01:00:00Z",
        tilefarm="0.1.0",
        host="buildhost",
        command=f"tilefarm run --suite {suite}",
        commit="9d71577",
        finished_at=f"{day}T01:02:11Z" if finished else "",
    )


def results(
    *,
    trials: Iterable[Trial] = (),
    devices: Sequence[DeviceRecord] | None = None,
    infos: Iterable[CaseInfo] | None = None,
    points: Iterable[Case] = (),
    expectations: Sequence[Expectation] = (),
    run: RunInfo | None = None,
) -> RunResults:
    """``infos`` or, for plain ones, ``points``."""
    planned = list(infos) if infos is not None else [info(p) for p in points]
    return RunResults(
        run=run or run_info(),
        devices=list(devices) if devices is not None else [device()],
        cases={i.case.case_id: i for i in planned},
        trials=list(trials),
        expectations=list(expectations),
    )


def elements(point: Case) -> int:
    return _whole(point, "seq") * _whole(point, "head_dim") * _whole(point, "heads")


def _whole(point: Case, name: str) -> int:
    value = point.workload[name]
    if not isinstance(value, int):
        raise TypeError(f"workload {name}={value!r} is not a number")
    return value

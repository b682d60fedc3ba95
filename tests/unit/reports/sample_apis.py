"""A run of both APIs: one GPU, three software drivers, two phones; probes, precision, canary, replays."""

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord, Soc
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.precision import Asked, Precision
from orchestrator.domain.results import CaseInfo, Pruned, RunResults
from orchestrator.domain.trial import Difference, Trial
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import (
    KIB,
    MIB,
    calculated,
    copied,
    copy_case,
    fma_case,
    precision,
    precision_case,
    probe_info,
    probed,
    vouched,
)
from tests.results_fixture import (
    case,
    device,
    elements,
    hardware,
    info,
    lavapipe,
    mismatching,
    numerics,
    results,
    timing,
    trial,
    vulkan_profile,
)

LLVMPIPE, LAVAPIPE, SWIFTSHADER = (
    f"local-buildhost-{name}" for name in ("llvmpipe", "lavapipe", "swiftshader")
)
H200, WIDE, NARROW = "local-buildhost-h200", "adb-sm8250-0", "adb-tensor-g2-0"
TILES = ("16x16", "32x16", "64x16", "64x32", "128x16")
SIZES = (64 * KIB, MIB, 16 * MIB, 256 * MIB)
SPEED = {LLVMPIPE: 16e6, LAVAPIPE: 14e6, SWIFTSHADER: 40e6, H200: 90e3, WIDE: 5e6, NARROW: 4e6}
GB_PER_S = {LLVMPIPE: 14, LAVAPIPE: 15, SWIFTSHADER: 11, H200: 4_270, WIDE: 40, NARROW: 48}
GFLOPS = {LLVMPIPE: 60, LAVAPIPE: 64, SWIFTSHADER: 30, H200: 51_000, WIDE: 900, NARROW: 700}


def sample_apis() -> RunResults:
    points = list(_points())
    planned = [*(info(p) for p in points), *(probe_info(p) for p in _probes())]
    trials: list[Trial] = []
    pruned: list[Pruned] = []
    for target in devices():
        for found in planned:
            api = str(found.case.axes["api"])
            if target.profile(api) is None:
                continue
            half = "fp16" in found.case.axes.values() or "storage16" in found.case.axes.values()
            if half and target.device_id == SWIFTSHADER:
                reason = "lacks float16"
                pruned.append(Pruned(target.device_id, found.case.case_id, Verdict.UNSUPPORTED, [reason]))
            else:
                trials.append(_trial(found, target.device_id))
    made = results(trials=_with_faults(trials), devices=devices(), infos=planned)
    return replace(made, pruned=pruned, precision=list(_precision()))


def devices() -> list[DeviceRecord]:
    swiftshader = vulkan_profile("SwiftShader Device", driver="SwiftShader", subgroup=4, half=False)
    phones = [
        replace(hardware(device_id, subgroup=size), soc=Soc(soc, "", soc, "ro.soc.model", "certain"),
                name=name, transport="adb", resource=device_id)
        for device_id, soc, name, size in (
            (WIDE, "SM8250", "Pixel with Adreno 650", 128), (NARROW, "Tensor-G2", "Pixel 7", 16))
    ]  # fmt: skip
    return [
        hardware(H200),
        device(LLVMPIPE),
        lavapipe(LAVAPIPE),
        device(
            SWIFTSHADER,
            soc="SwiftShader",
            name="SwiftShader Device (Subzero)",
            profiles=[replace(swiftshader, limits=swiftshader.limits | {"invocations": 256})],
        ),
        *phones,
    ]


def _points() -> Iterator[Case]:
    for api in ("gles", "vulkan"):
        for width in ("fp32", "fp16_storage"):
            for tile in TILES:
                for hint in ("highp", "mediump"):
                    yield case(api=api, precision=width, tile=tile, hint=hint)


def _probes() -> Iterator[Case]:
    for api in ("gles", "vulkan"):
        yield from (copy_case(n, api) for n in SIZES)
        yield fma_case(api)
        yield fma_case(api, hint="mediump")
        yield from (precision_case(api, asked) for asked in _asked(api))
    yield fma_case("vulkan", "fp16")


def _asked(api: str) -> tuple[Asked, ...]:
    return ("highp", "mediump", "pack_half") if api == "gles" else ("highp", "mediump", "precise", "fp16")


def _trial(planned: CaseInfo, device_id: str) -> Trial:
    point = planned.case
    api = str(point.axes["api"])
    jitter = int(sha256_hex(f"{point.case_id}{device_id}".encode())[:4], 16) / 65_535
    if point.kernel == "copy":
        nbytes = int(point.workload["bytes"])
        return copied(nbytes, device_id, GB_PER_S[device_id] * (3.0 if nbytes <= MIB else 1.0), api)
    if point.kernel == "fma":
        wide = point.axes["precision"] == "fp32"
        rate = GFLOPS[device_id] * (1.0 if wide else 1.9) * (0.97 + 0.03 * jitter)
        return calculated(device_id, rate, api, str(point.axes["precision"]), str(point.axes["hint"]))
    if point.kernel == "precision_probe":
        return probed(point, device_id)
    rows, columns = (int(x) for x in str(point.axes["tile"]).split("x"))
    sweet = 64 if api == "gles" else 32
    base = SPEED[device_id] * (1 + abs(rows - sweet) / 90 + abs(columns - 16) / 20) * (0.98 + 0.02 * jitter)
    time = timing(
        round(base * (1.0 if api == "gles" else 0.9)),
        gpu_timer="trusted" if device_id in (H200, WIDE, NARROW) else "disagrees",
        compile_ns=round(30e6 + 9e6 * jitter),
    )
    bits = str({k: v for k, v in point.axes.items() if k not in ("api", "hint")})
    if point.axes["tile"] == "128x16":
        bits += api
    outputs = [numerics(elements(point), max_abs=4e-7 + 5e-7 * jitter, bits=bits)]
    return vouched(trial(point, device_id, time=time, outputs=outputs), round(190e3 + 40e3 * jitter))


def _precision() -> Iterator[Precision]:
    for target in devices():
        for profile in target.profiles:
            for asked in _asked(profile.api):
                if asked == "fp16" and target.device_id == SWIFTSHADER:
                    continue
                demoted = target.device_id == NARROW and profile.api == "gles" and asked == "highp"
                half = demoted or asked in ("fp16", "pack_half")
                yield precision(
                    target.device_id, asked, profile.api,
                    delivered="fp16" if half else "fp32", demoted=demoted,
                    relative_speed={"highp": 1.0, "fp16": 1.9, "mediump": 1.02}.get(asked),
                )  # fmt: skip


def _with_faults(trials: list[Trial]) -> list[Trial]:
    """A race on the H200, wrong tiles at subgroup 128, a batch without its canary, a copy that is wrong."""
    size = 512 * 64
    race = replace(
        numerics(size, bits="right"),
        hashes={sha256_hex(b"right"): 97, **{sha256_hex(b"bad%d" % i): 1 for i in range(3)}},
        idle_hashes={sha256_hex(b"right"): 47, **{sha256_hex(b"bad%d" % i): 1 for i in range(3)}},
        differs=Difference(1_024, 2_048, 4_095, box=[(0, 0), (32, 63), (16, 47)]),
    )
    wrong = mismatching(size, index=31_002, got=0.061, ref=0.5611, failing=8_192)
    seen: dict[str, int] = {}
    found: list[Trial] = []
    for t in trials:
        n = seen[t.device_id] = seen.get(t.device_id, -1) + 1
        if t.device_id == H200 and n == 3:
            reason = "4 different outputs in 100 executions"
            found.append(replace(t, verdict=Verdict.NONDETERMINISTIC, reason=reason, outputs=[race]))
        elif t.device_id == WIDE and n in (2, 21):
            reason = "8192 of 32768 elements outside the tolerance"
            found.append(replace(t, verdict=Verdict.MISMATCH, reason=reason, outputs=[wrong]))
        elif t.device_id == NARROW and 24 <= n < 27:
            reason = "canary took 2.10 ms after the batch, expected 0.20 ms ÷/× 4"
            found.append(
                replace(t, verdict=Verdict.INFRA, reason=reason, canary=None, outputs=[], timing=None)
            )
        elif t.device_id == WIDE and n == 40:
            found.append(replace(t, verdict=Verdict.MISMATCH, reason="1 of 16384 elements wrong"))
        elif (t.device_id, n) in ((WIDE, 23), (NARROW, 22)):
            found.append(replace(t, verdict=Verdict.INFRA, reason="vanished", outputs=[], timing=None))
        else:
            found.append(t)
    return found

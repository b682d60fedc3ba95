"""A realistic run: this machine's llvmpipe and a virtual SM8650, every verdict, a previous run."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord, Soc
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.results import CaseInfo, Excluded, Missing, Pruned, RunResults
from orchestrator.domain.trial import Difference, Element, Numerics, Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import (
    PREVIOUS_RUN_ID,
    RUN_ID,
    case,
    device,
    elements,
    expectation,
    info,
    mismatching,
    numerics,
    run_info,
    timing,
    trial,
)

LOCAL, PHONE = "local-buildhost", "adb-sm8650-0"
TILES = ("8x8", "16x8", "16x16", "32x8", "32x16", "64x8", "64x16", "64x32", "128x16")
SHARED = {tile: 64 * 4 * (2 * int(tile.split("x")[1]) + int(tile.split("x")[0]) // 2) for tile in TILES}


def sample() -> RunResults:
    """Today's run."""
    points = list(_points())
    infos = [_info(p) for p in points]
    trials: list[Trial] = []
    pruned: list[Pruned] = []
    for target, limit in ((_local(), 32_768), (_phone(), 16_384)):
        for planned in infos:
            if planned.shared_bytes > limit:
                reason = f"shared_bytes {planned.shared_bytes} > {limit}"
                pruned.append(Pruned(target.device_id, planned.case.case_id, Verdict.UNSUPPORTED, [reason]))
            else:
                trials.append(_trial(planned.case, target.device_id, RUN_ID, drift=1.0))
    spare = points[-1]
    trials = [t for t in trials if (t.device_id, t.case_id) != (PHONE, spare.case_id)]
    return RunResults(
        run=run_info(),
        devices=[_local(), _phone()],
        cases={i.case.case_id: i for i in infos},
        trials=_with_failures(trials),
        pruned=pruned,
        excluded=[
            Excluded(
                "attention_naive and seq>=2048", 6, "three minutes each on a CPU driver", "farm", "2027-02-01"
            )
        ],
        missing=[Missing(PHONE, spare.case_id, "phone vanished during push and did not come back in 120 s")],
        expectations=[
            expectation("attention_flash and vector=1 and seq=512", Verdict.MISMATCH),
            expectation("attention_flash and inputs=large", Verdict.MISMATCH),
            expectation(
                "attention_flash and tile=8x8 and inputs=zeros", Verdict.MISMATCH, expires=date(2026, 11, 1)
            ),
        ],
        previous_run=PREVIOUS_RUN_ID,
    )


def sample_previous() -> RunResults:
    """Yesterday: an older Mesa on the phone, one variant faster, some cases not there yet."""
    now = sample()
    changed = [replace(d, os_build="Android 14 UP1A.1") if d.virtual else d for d in now.devices]
    trials = [
        _trial(now.cases[t.case_id].case, t.device_id, PREVIOUS_RUN_ID, drift=0.82 if i % 9 == 4 else 0.99)
        for i, t in enumerate(now.trials)
        if i % 11 != 7
    ]
    return replace(
        now, run=run_info(PREVIOUS_RUN_ID), devices=changed, trials=trials, missing=[], previous_run="",
        pruned=now.pruned[:-3],
    )  # fmt: skip


def _points() -> Iterator[Case]:
    for precision in ("fp32", "fp16_storage"):
        for tile in ("8x8", "16x16"):
            yield case(
                "attention_naive", precision=precision, tile=tile, layout="row", vector=4, hint="highp"
            )
        for tile in TILES:
            for hint in ("highp", "mediump"):
                yield case(precision=precision, tile=tile, layout="row", vector=4, hint=hint)
    for tile in ("16x16", "32x16"):
        yield case(tile=tile, layout="column", vector=4, hint="highp")
        yield case(tile=tile, layout="row", vector=1, hint="highp")
    for inputs in ("zeros", "large", "one-hot", "neg-inf-mask", "tail"):
        yield case("attention_naive", seq=33, inputs=inputs, tile="8x8", layout="row", vector=4, hint="highp")
        yield case(seq=33, inputs=inputs, tile="8x8", layout="row", vector=4, hint="highp")
        yield case(seq=33, inputs=inputs, tile="32x16", layout="row", vector=4, hint="highp")


def _info(point: Case) -> CaseInfo:
    half = point.axes["precision"] == "fp16_storage"
    shared = SHARED[str(point.axes["tile"])] // (2 if half else 1) + 1024
    return info(point, shared_bytes=shared)


def _local() -> DeviceRecord:
    return device(LOCAL, health={"load": "0.4 of 2 cores", "temperature": "not exposed"})


def _phone() -> DeviceRecord:
    made = device(
        PHONE,
        name="Galaxy S24 Ultra (virtual)",
        serial="virtual-sm8650-0",
        transport="adb",
        shared_bytes=16_384,
        virtual=True,
        os_build="Android 14 UP1A.231005.007",
        health={
            "battery": "81 %",
            "temperature": "29.4 °C",
            "screen": "on, awake",
            "thermal status": "0 (none)",
        },
    )
    return replace(made, soc=Soc("SM8650", "Qualcomm", "SM8650", "ro.soc.model", "certain"))


def _trial(point: Case, device_id: str, run_id: str, drift: float) -> Trial:
    jitter = int(sha256_hex(f"{point.case_id}{device_id}".encode())[:4], 16) / 65_535
    rows, columns = (int(x) for x in str(point.axes["tile"]).split("x"))
    half = point.axes["precision"] == "fp16_storage"
    base = (
        105e6 if point.kernel.endswith("_naive") else 12e6 + 2.2e5 * abs(rows - 64) + 6e5 * abs(columns - 16)
    )
    base *= (point.workload["seq"] / 512) ** 2 if isinstance(point.workload["seq"], int) else 1
    base *= (1.12 if half else 1.0) * (1 + 0.004 * jitter) * drift * (2.4 if device_id == PHONE else 1.0)
    bits = point.case_id if point.axes["hint"] == "highp" else _highp(point).case_id
    time = timing(round(base), spread=0.008 + 0.03 * jitter, compile_ns=round(28e6 + 9e6 * jitter))
    error = (2.1e-7 + 5e-7 * jitter) * (2 if half else 1)
    return trial(
        point, device_id, run_id=run_id, time=time,
        outputs=[numerics(elements(point), max_abs=error, bits=bits)],
    )  # fmt: skip


def _highp(point: Case) -> Case:
    return replace(point, axes=point.axes | {"hint": "highp"})


def _with_failures(trials: list[Trial]) -> list[Trial]:
    """Ends some trials otherwise: one of every verdict that blames the kernel, an infra, a refusal."""
    size = 512 * 64
    loop = mismatching(size, index=31_002, got=0.061, ref=0.5611, failing=8_192)
    nan = replace(
        mismatching(33 * 64, index=1_100, got=float("nan"), ref=0.0153, failing=64),
        nan=64, nonfinite_mismatch=64, unwritten=64, unwritten_first=1_088, max_abs=4e-7,
    )  # fmt: skip
    flaky = replace(
        numerics(size, bits="p"),
        hashes={sha256_hex(b"p"): 8, sha256_hex(b"q"): 3},
        differs=Difference(2_048, 4_096, 6_143),
    )
    guard = replace(
        mismatching(size, index=2_047, got=1.7, ref=0.21, failing=12),
        guard="damaged",
        worst=Element(2_047, 1.7, 0.21),
    )
    log = "0:41(18): error: `acc' undeclared\n0:41(12): error: operands to operators must be numeric\n"
    found: list[Trial] = []
    seen: dict[str, int] = {}
    for t in trials:
        position = seen[t.device_id] = seen.get(t.device_id, -1) + 1
        found.append(_ended(t, position, loop=loop, nan=nan, flaky=flaky, guard=guard, log=log))
    return found


def _ended(
    t: Trial, position: int, *, loop: Numerics, nan: Numerics, flaky: Numerics, guard: Numerics, log: str
) -> Trial:
    local = t.device_id == LOCAL
    match position:
        case 41 | 43 if local:
            return _as(t, Verdict.MISMATCH, "8192 of 32768 elements outside the tolerance", outputs=[loop])
        case 12 if local:
            return _as(
                t, Verdict.MISMATCH, "guard band damaged; 12 of 32768 elements outside", outputs=[guard]
            )
        case 20 if local:
            return _as(t, Verdict.NONDETERMINISTIC, "2 different outputs in 11 executions", outputs=[flaky])
        case 25 if local:
            return _as(t, Verdict.COMPILE_FAILED, "compile: 2 errors in the driver's log", log=log * 3)
        case 45 if local:
            return _as(t, Verdict.MISMATCH, "64 of 2112 elements NaN, unwritten", outputs=[nan])
        case 18 if not local:
            return _as(t, Verdict.CRASHED, "dispatch: signal 11 (SIGSEGV)")
        case 19 if not local:
            return _as(t, Verdict.HUNG, "dispatch: no fence within 20000 ms; screen on")
        case 21 if not local:
            return _as(t, Verdict.INFRA, "virtual-sm8650-0: vanished during push (3 attempts)")
        case 22 if not local:
            return _as(t, Verdict.UNSUPPORTED, "invocations 1024 > 512")
        case _:
            return t


def _as(
    t: Trial, verdict: Verdict, reason: str, *, outputs: list[Numerics] | None = None, log: str = ""
) -> Trial:
    timed = t.timing if outputs else None
    return replace(t, verdict=verdict, reason=reason, outputs=outputs or [], timing=timed, log=log)

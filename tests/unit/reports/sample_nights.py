"""Trials of a farm of five phones over fifteen nights, as the history keeps them; no two runs differ."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.digest import sha256_hex

NIGHTS = [f"202611{day:02d}-010000-{day:02d}{day:02d}" for day in range(17, 31)] + ["20261201-010000-a1b2"]
TONIGHT = NIGHTS[-1]
AWAY = NIGHTS[6]
"""Nobody measured in this one."""
N = 20
MHZ, SLOW_MHZ = 903, 680


@dataclass(frozen=True)
class Phone:
    device_id: str
    name: str
    soc: str
    pace: float
    """Times the SoC's typical latency."""
    first: int = 0
    last: int = len(NIGHTS) - 1
    new_driver: int | None = None
    """Night from which its driver is another one."""


PHONES = (
    Phone("adb-s24-1", "Galaxy S24 (1)", "SM8650", 1.0, new_driver=12),
    Phone("adb-s24-2", "Galaxy S24 (2)", "SM8650", 1.13, new_driver=12),
    Phone("adb-s24-3", "Galaxy S24 (3)", "SM8650", 0.94, last=8),
    Phone("adb-s24-4", "Galaxy S24 (4), swapped for 3", "SM8650", 1.07, first=9, new_driver=12),
    Phone("adb-p9-1", "Pixel 9 (1)", "Tensor-G4", 1.0),
    Phone("adb-p9-2", "Pixel 9 (2)", "Tensor-G4", 1.09),
)


def noise(*what: object) -> float:
    """−1 … 1, the same for the same words."""
    return int(sha256_hex(repr(what).encode())[:8], 16) / 0x7FFFFFFF - 1


def driver(phone: Phone, night: int) -> str:
    if phone.soc != "SM8650":
        return "Mali-G715; OpenGL ES 3.2 v1.r44p1"
    new = phone.new_driver is not None and night >= phone.new_driver
    return f"Adreno (TM) 750; OpenGL ES 3.2 V@0{'762' if new else '744'}.9"


def rows(
    case_id: str,
    phones: Sequence[Phone],
    base_ns: float,
    effect: Callable[[Phone, int], float],
    *,
    code: Callable[[int], str] = lambda _: "4be01",
    nmse: Callable[[int], float] = lambda _: 3.1e-13,
) -> list[dict[str, Any]]:
    """``effect``: log ratio of a phone in a night."""
    made: list[dict[str, Any]] = []
    for night, run in enumerate(NIGHTS):
        for phone in phones:
            if run == AWAY or not phone.first <= night <= phone.last:
                continue
            log_ns = (
                math.log(base_ns * phone.pace)
                + effect(phone, night)
                + 0.006 * noise(case_id, phone.device_id, run)
            )
            made.append(_row(case_id, phone, night, log_ns) | {"code_hash": code(night), "nmse": nmse(night)})
    return made


def _row(case_id: str, phone: Phone, night: int, log_ns: float) -> dict[str, Any]:
    run = NIGHTS[night]
    slow = {i for i in range(N) if noise("clock", case_id, run, phone.device_id, i) > 0.7}
    samples = [
        round(math.exp(log_ns + 0.012 * noise(run, case_id, i)) * (1.31 if i in slow else 1.0))
        for i in range(N)
    ]
    hz = [SLOW_MHZ * 1e6 if i in slow or i - 1 in slow else MHZ * 1e6 for i in range(N + 1)]
    return {
        "run_id": run,
        "device_id": phone.device_id,
        "soc": phone.soc,
        "case_id": case_id,
        "attempt": 1,
        "verdict": "pass",
        "code_hash": "4be01",
        "driver": driver(phone, night),
        "os_build": "Android 16 BP2A.250605" if phone.soc != "SM8650" else "Android 15 AP3A.240905",
        "started_at": f"{run[:4]}-{run[4:6]}-{run[6:8]}T01:12:07Z",
        "log_ns": log_ns,
        "clock_hz": MHZ * 1e6,
        "throttled": 0,
        "hot": 0,
        "used": N - len(slow),
        "samples_ns": samples,
        "gpu_hz": [round(v) for v in hz],
        "temp_mc": [31_200 + 140 * i + 60 * (i % 3) for i in range(N + 1)],
        "hash": sha256_hex(case_id.encode()),
        "hashes": 1,
        "nmse": 3.1e-13,
        "max_abs": 5.2e-7,
        "ulp_max": 412.0,
        "cosine": 1.0,
    }

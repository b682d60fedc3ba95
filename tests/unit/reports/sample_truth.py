"""What was done to which variant of the sample's farm, and tonight's trials and phones that show it."""

import math
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord, Soc
from orchestrator.domain.finding import Cause, DeviceNight
from orchestrator.domain.trial import Difference, Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import device, elements, mismatching, numerics, timing, trial
from tests.unit.reports.sample_nights import AWAY, NIGHTS, PHONES, TONIGHT, Phone, driver, noise

TILES = [f"{r}x{c}" for r in (16, 32, 64, 128) for c in (8, 16, 32)]
BASE_NS = 7.4e6


@dataclass(frozen=True)
class Change:
    """What was done to a case on a SoC."""

    effect: float
    cause: Cause
    since: int


def change_of(soc: str, point: Case) -> Change | None:
    kernel, axes = point.kernel, point.axes
    half, tile, layout = axes["precision"] == "fp16_storage", axes["tile"], axes["layout"]
    if soc == "SM8650":
        if kernel == "attention_flash" and half:
            return Change(0.06 + 0.02 * TILES.index(str(tile)) / 11, "driver", 12)
        if kernel == "attention_tiled_sgemm" and layout == "column" and half:
            return Change(-0.09, "driver", 12)
        if kernel == "attention_tiled_sgemm" and tile == "16x8" and not half:
            return Change(0.21, "device", 14)
        if kernel == "attention_tiled_sgemm" and tile == "128x32" and not half:
            return Change(0.06, "code", 14)
        return None
    if kernel == "attention_flash" and layout == "row" and not half:
        return Change(-0.24, "code", 14)
    if kernel == "attention_tiled_sgemm" and tile == "128x32":
        return Change(0.83 if half else 0.05, "code", 14)
    if kernel == "attention_flash" and tile == "64x32":
        return Change(0.035, "environment", 10)
    return None


def flags_of(soc: str, number: int) -> list[Any]:
    by_soc = {
        "SM8650": {30: "nmse_doubled", 31: "hash_changed", 42: "limit_crossed", 3: "improved"},
        "Tensor-G4": {60: "nondeterministic"},
    }
    return [by_soc[soc][number]] if number in by_soc[soc] else []


def base_ns(point: Case) -> float:
    rows_, columns = (int(x) for x in str(point.axes["tile"]).split("x"))
    slow = 2.2 if point.kernel == "attention_tiled_sgemm" else 1.0
    half = 0.8 if point.axes["precision"] == "fp16_storage" else 1.0
    return BASE_NS * slow * half * (1 + 0.004 * abs(rows_ - 64) + 0.02 * abs(columns - 16))


def phones_of(soc: str) -> list[Phone]:
    return [p for p in PHONES if p.soc == soc and p.last == 14]


def tonight(point: Case, phone: Phone, ns: int, flag: str) -> Trial:
    size = elements(point)
    good = numerics(size, bits=point.case_id)
    if flag == "limit_crossed":
        wrong = mismatching(size, index=20_011, got=0.4, ref=0.1, failing=1_536)
        return trial(
            point,
            phone.device_id,
            Verdict.MISMATCH,
            reason="1536 of 32768 elements outside",
            run_id=TONIGHT,
            time=timing(ns, n=20),
            outputs=[wrong],
        )
    if flag == "nondeterministic":
        flaky = replace(
            good,
            hashes={good.hash: 9, "ff": 3},
            differs=Difference(640, 4_096, 9_215, [(0, 0), (64, 143), (16, 31)]),
        )
        return trial(
            point,
            phone.device_id,
            Verdict.NONDETERMINISTIC,
            reason="2 different outputs in 12 executions",
            run_id=TONIGHT,
            time=timing(ns, n=20),
            outputs=[flaky],
        )
    return trial(point, phone.device_id, run_id=TONIGHT, time=timing(ns, n=20), outputs=[good])


def record(phone: Phone) -> DeviceRecord:
    made = device(
        phone.device_id,
        name=phone.name,
        serial=phone.device_id,
        transport="adb",
        resource=f"gpu@{phone.device_id}",
        os_build="Android 15 AP3A.240905",
    )
    vendor = "Qualcomm" if phone.soc == "SM8650" else "Google"
    return replace(made, soc=Soc(phone.soc, vendor, phone.soc, "ro.soc.model", "certain"))


def device_night(phone: Phone) -> DeviceNight:
    def there(night: int) -> bool:
        return NIGHTS[night] != AWAY and phone.first <= night <= phone.last

    new = phone.new_driver
    shift = [
        (0.012 if new is not None and i >= new else 0.0) + 0.006 * noise("shift", phone.name, i)
        if there(i)
        else math.nan
        for i in range(15)
    ]
    sentinels = [0.004 * noise("sentinel", phone.name, i) if there(i) else math.nan for i in range(15)]
    items = {
        "adb-s24-1": ["6 variants are 23 % slower on this phone alone", "4 of 1880 samples were above 40 °C"],
        "adb-s24-3": ["not seen for 6 nights"],
    }.get(phone.device_id, [])
    return DeviceNight(
        phone.device_id,
        phone.soc,
        shift,
        sentinels,
        "missing" if phone.last < 14 else "same",
        [driver(phone, i) if there(i) else "" for i in range(15)],
        items,
    )

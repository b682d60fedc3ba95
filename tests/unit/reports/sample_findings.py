"""A night's findings of two SoCs: each cause slower and faster, numerics, what could not be judged, a swap.

``sample_findings()`` gives the run, its findings and the trials behind them; ``many(n)`` as many series.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord, Soc
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.finding import (
    Cause,
    DeviceNight,
    Finding,
    Findings,
    Group,
    PhoneChange,
    SeriesRow,
    Triage,
)
from orchestrator.domain.results import CaseInfo, RunResults
from orchestrator.domain.trial import Difference, Trial
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import calculated, copied, copy_case, fma_case, probe_info
from tests.results_fixture import (
    case,
    device,
    elements,
    info,
    mismatching,
    numerics,
    results,
    run_info,
    timing,
    trial,
)
from tests.unit.reports.sample_nights import AWAY, NIGHTS, PHONES, TONIGHT, Phone, driver, noise, rows

TILES = [f"{r}x{c}" for r in (16, 32, 64, 128) for c in (8, 16, 32)]
BASE_NS = 7.4e6
MIB64 = 2**26


def unchanged(*_: object) -> float:
    return 0.0


@dataclass(frozen=True)
class Change:
    """What was done to a case on a SoC."""

    effect: float
    cause: Cause
    since: int


@dataclass(frozen=True)
class Sample:
    results: RunResults
    findings: Findings
    series: dict[str, list[dict[str, Any]]]


def sample_findings() -> Sample:
    points = [
        case(kernel, precision=p, tile=t, layout=layout, vector=4)
        for kernel in ("attention_flash", "attention_tiled_sgemm")
        for p in ("fp32", "fp16_storage")
        for layout in ("row", "column")
        for t in TILES
    ]
    made = _Made(points)
    return Sample(made.results(), made.findings(), made.series)


class _Made:
    def __init__(self, points: list[Case]) -> None:
        self.points = points
        self.infos = [info(p) for p in points]
        self.series: dict[str, list[dict[str, Any]]] = {}
        self._findings: list[Finding] = []
        self._rows: list[SeriesRow] = []
        for soc in ("SM8650", "Tensor-G4"):
            for number, point in enumerate(points):
                self._add(soc, number, point)

    def _add(self, soc: str, number: int, point: Case) -> None:
        found = _change(soc, point)
        why, verdict = "", "same"
        if number % 29 == 7:
            verdict, why = "inconclusive", "5 of 7 nights that a baseline needs"
        elif number % 31 == 9:
            verdict, why = "missing", "not measured tonight: the phone was held"
        elif number % 37 == 11:
            verdict, why = "new", "first night"
        elif found:
            verdict = "regressed" if found.effect > 0 else "improved"
        base = _base(point)
        effect = (found.effect if found else 0.0) + 0.004 * noise(soc, point.case_id)
        history = [
            math.nan
            if run == AWAY or (verdict == "missing" and i == 14) or (verdict == "new" and i < 14)
            else (found.effect if found and i >= found.since else 0.0)
            + 0.008 * noise(soc, point.case_id, run)
            for i, run in enumerate(NIGHTS)
        ]
        flags = _flags(soc, number)
        self._rows.append(
            SeriesRow(
                soc,
                point.case_id,
                verdict,
                why,
                math.nan if verdict in ("missing", "new") else effect,
                0.014 + 0.01 * abs(noise(point.case_id)) if verdict != "new" else math.nan,
                math.nan if verdict == "missing" else base * math.exp(effect),
                0 if verdict == "missing" else len(_phones(soc)),
                history,
                flags,
            )
        )
        if found and verdict in ("regressed", "improved"):
            self._finding(soc, point, found, base)
        for flag in flags:
            if flag != "improved":
                self._numerics(soc, point, flag, base)

    def _finding(self, soc: str, point: Case, found: Change, base: float) -> None:
        ident = sha256_hex(f"{soc}{point.case_id}".encode())[:12]
        own = [p for p in PHONES if p.soc == soc and p.last == 14]
        shown = own[:1] if found.cause == "device" else own
        code = ["4be01aa2c3d4e5f6", "9c27f31d00a1b2c3"] if found.cause == "code" else ["4be01aa2c3d4e5f6"] * 2
        self.series[ident] = rows(
            point.case_id,
            [p for p in PHONES if p.soc == soc],
            base,
            lambda phone, night: (
                found.effect if night >= found.since and phone in (*shown, PHONES[2]) else 0.0
            ),
            code=lambda night: code[night >= found.since],
        )
        word = "slower" if found.effect > 0 else "faster"
        self._findings.append(
            Finding(
                finding_id=ident,
                kind="speed",
                what="regressed" if found.effect > 0 else "improved",
                soc=soc,
                case_id=point.case_id,
                device_id=shown[0].device_id if found.cause == "device" else "",
                cause=found.cause,
                effect=found.effect,
                low=found.effect - 0.011,
                high=found.effect + 0.011,
                q=0.0004,
                confirmed="yes" if found.cause == "code" else "unknown",
                phones=[
                    PhoneChange(
                        p.device_id,
                        found.effect + 0.004 * noise(p.name),
                        base * p.pace,
                        base * p.pace * math.exp(found.effect),
                        12 if p.first == 0 else 5,
                    )
                    for p in shown
                ],
                since=NIGHTS[found.since],
                baseline=[n for n in NIGHTS[: found.since] if n != AWAY],
                code_before=code[0],
                code_after=code[1],
                environment_before=driver(own[0], 0),
                environment_after=driver(own[0], 14),
                detail=f"{abs(math.expm1(found.effect)) * 100:.1f} % {word} on {len(shown)} of {len(own)}, "
                f"t = {found.effect / 0.004:.1f}",
                triage=Triage(
                    "acknowledged", "mk", "waiting for driver 768", "bugs/1204", "2026-12-20", TONIGHT[:8]
                )
                if found.cause == "environment" and found.effect > 0
                else None,
            )
        )

    def _numerics(self, soc: str, point: Case, flag: Any, base: float) -> None:
        ident = sha256_hex(f"{soc}{point.case_id}{flag}".encode())[:12]
        worse = {"nmse_doubled": 3.4, "limit_crossed": 2.1e5}.get(flag, 1.0)
        found = rows(
            point.case_id,
            [p for p in PHONES if p.soc == soc],
            base,
            unchanged,
            nmse=lambda night: 3.1e-13 * (worse if night == 14 else 1 + 0.1 * noise(night)),
        )
        for row in found:
            if row["run_id"] == TONIGHT:
                row["hash"] = sha256_hex(f"{ident}".encode())
                row["max_abs"] *= math.sqrt(worse)
                row["hashes"] = 2 if flag == "nondeterministic" else 1
        self.series[ident] = found
        self._findings.append(
            Finding(
                finding_id=ident,
                kind="numerics",
                what=flag,
                soc=soc,
                case_id=point.case_id,
                cause="driver",
                effect=math.log10(worse),
                low=math.nan,
                high=math.nan,
                q=0.0,
                since=TONIGHT,
                baseline=NIGHTS[:6],
                code_before="4be01aa2c3d4e5f6",
                code_after="4be01aa2c3d4e5f6",
                detail=f"NMSE 3.1e-13 → {3.1e-13 * worse:.1e}; the code is the same",
            )
        )

    def results(self) -> RunResults:
        trials: list[Trial] = []
        flags = {(f.soc, f.case_id): f.what for f in self._findings if f.kind == "numerics"}
        missing = {(r.soc, r.case_id) for r in self._rows if r.verdict == "missing"}
        effects = {(f.soc, f.case_id): f.effect for f in self._findings if f.kind == "speed"}
        probes = [copy_case(MIB64), fma_case()]
        for phone in PHONES:
            if phone.last < 14:
                continue
            trials += [
                copied(MIB64, phone.device_id, 58.0 / phone.pace),
                calculated(phone.device_id, 1900.0 / phone.pace),
            ]
            for point in self.points:
                key = phone.soc, point.case_id
                if key not in missing:
                    ns = _base(point) * phone.pace * math.exp(effects.get(key, 0.0))
                    trials.append(_trial(point, phone, round(ns), flags.get(key, "")))
        return replace(
            results(
                trials=trials,
                infos=[*self.infos, *(probe_info(p) for p in probes)],
                devices=[_record(p) for p in PHONES if p.last == 14],
                run=run_info(TONIGHT, suite="nightly"),
            ),
            previous_run=NIGHTS[-2],
        )

    def findings(self) -> Findings:
        found = self._findings
        counts = {
            name: sum(r.verdict == name for r in self._rows)
            for name in ("regressed", "improved", "inconclusive", "missing", "new", "same")
        }
        counts |= {
            "numerics": sum(bool(r.flags) for r in self._rows),
            "acknowledged": sum(f.triage is not None for f in found),
        }
        groups = [
            _group(
                "all fp16_storage variants of attention_flash on SM8650 since driver 762",
                "driver",
                "regressed",
                [f for f in found if f.cause == "driver" and f.kind == "speed" and f.effect > 0],
            ),
            _group(
                "layout=column variants of attention_tiled_sgemm on SM8650 since driver 762",
                "driver",
                "improved",
                [f for f in found if f.cause == "driver" and f.kind == "speed" and f.effect < 0],
            ),
            _group(
                "attention_flash layout=row on Tensor-G4 since its code changed",
                "code",
                "improved",
                [f for f in found if f.cause == "code" and f.effect < 0],
            ),
            _group(
                "attention_tiled_sgemm tile=128x32 on Tensor-G4 since its code changed",
                "code",
                "regressed",
                [f for f in found if f.cause == "code" and f.effect > 0],
            ),
            _group(
                "attention_flash tile=64x32 on Tensor-G4",
                "environment",
                "regressed",
                [f for f in found if f.cause == "environment" and f.effect > 0],
            ),
        ]
        return Findings(
            run_id=TONIGHT,
            suite="nightly",
            nights=NIGHTS,
            sentence=f"{counts['regressed']} variants regressed, {counts['improved']} improved, "
            f"most on SM8650 since driver 762; {counts['numerics']} have other numerics.",
            counts=counts,
            not_measured=[
                "1 night before this one brought no results (2026-11-23: the orchestrator was down)",
                "Galaxy S24 (3) was taken out on 2026-11-26; its series ended",
            ],
            groups=[g for g in groups if g.findings],
            findings=found,
            series=self._rows,
            devices=[_device_night(p) for p in PHONES],
            method={
                "window": 14,
                "min_nights": 7,
                "threshold": math.log(1.02),
                "q": 0.05,
                "min_in_state": 5,
                "ceiling_mc": 40_000,
                "power": 0.8,
            },
        )


def _change(soc: str, point: Case) -> Change | None:
    kernel, axes = point.kernel, point.axes
    half, tile, layout = axes["precision"] == "fp16_storage", axes["tile"], axes["layout"]
    if soc == "SM8650":
        if kernel == "attention_flash" and half:
            return Change(0.06 + 0.02 * TILES.index(str(tile)) / 11, "driver", 12)
        if kernel == "attention_tiled_sgemm" and layout == "column" and half:
            return Change(-0.09, "driver", 12)
        if kernel == "attention_tiled_sgemm" and tile == "16x8" and not half:
            return Change(0.21, "device", 14)
        return None
    if kernel == "attention_flash" and layout == "row" and not half:
        return Change(-0.24, "code", 14)
    if kernel == "attention_tiled_sgemm" and tile == "128x32":
        return Change(0.83 if half else 0.05, "code", 14)
    if kernel == "attention_flash" and tile == "64x32":
        return Change(0.035, "environment", 10)
    return None


def _flags(soc: str, number: int) -> list[Any]:
    by_soc = {
        "SM8650": {30: "nmse_doubled", 31: "hash_changed", 40: "limit_crossed", 3: "improved"},
        "Tensor-G4": {60: "nondeterministic"},
    }
    return [by_soc[soc][number]] if number in by_soc[soc] else []


def _base(point: Case) -> float:
    rows_, columns = (int(x) for x in str(point.axes["tile"]).split("x"))
    slow = 2.2 if point.kernel == "attention_tiled_sgemm" else 1.0
    half = 0.8 if point.axes["precision"] == "fp16_storage" else 1.0
    return BASE_NS * slow * half * (1 + 0.004 * abs(rows_ - 64) + 0.02 * abs(columns - 16))


def _phones(soc: str) -> list[Phone]:
    return [p for p in PHONES if p.soc == soc and p.last == 14]


def _group(sentence: str, cause: Cause, what: str, found: list[Finding]) -> Group:
    ordered = sorted(found, key=lambda f: -abs(f.effect))
    soc = found[0].soc if found else ""
    return Group(
        sha256_hex(sentence.encode())[:8],
        sentence,
        cause,
        what,
        soc,
        findings=[f.finding_id for f in ordered],
    )


def _trial(point: Case, phone: Phone, ns: int, flag: str) -> Trial:
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


def _record(phone: Phone) -> DeviceRecord:
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


def _device_night(phone: Phone) -> DeviceNight:
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


def many(count: int, nights: int = 14) -> tuple[dict[str, CaseInfo], Findings]:
    """One SoC with so many series, every fiftieth moved; all labels as long as the farm's."""
    points = [
        case(kernel, precision=p, tile=f"{r}x{c}", layout=layout, vector=v, hint=h, halves=halves, seq=seq)
        for kernel in ("attention_flash", "attention_tiled_sgemm", "attention_naive")
        for p in ("fp32", "fp16_storage")
        for r in (8, 16, 32, 64, 128)
        for c in (8, 16, 32, 64, 128)
        for layout in ("row", "column")
        for v in (1, 4)
        for h in ("highp", "mediump")
        for halves in ("packed", "native")
        for seq in (512, 2048, 4096, 8192, 16384)
    ][:count]
    infos = {p.case_id: info(p) for p in points}
    series: list[SeriesRow] = []
    found: list[Finding] = []
    for number, case_id in enumerate(infos):
        effect = 0.02 * noise(case_id)
        verdict = "same"
        if number % 50 == 0:
            effect = 0.08 if number % 100 else -0.08
            verdict = "regressed" if effect > 0 else "improved"
            found.append(
                Finding(
                    f"f{number}",
                    "speed",
                    verdict,
                    "SM8650",
                    case_id,
                    effect=effect,
                    since=NIGHTS[-1],
                    baseline=NIGHTS[:-1],
                )
            )
        history = [0.02 * noise(case_id, i) for i in range(nights - 1)] + [effect]
        series.append(
            SeriesRow(
                "SM8650",
                case_id,
                verdict,
                "",
                effect,
                0.02 + 0.01 * noise(number),
                7e6 * (1 + noise(case_id, "ns") / 2),
                3,
                history,
            )
        )
    counts = {"regressed": count // 100, "improved": count // 100}
    findings = Findings(
        "20261201-010000-a1b2", "nightly", NIGHTS[-nights:], "Many.", counts, series=series, findings=found
    )
    return infos, findings

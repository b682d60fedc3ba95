"""A night's findings of two SoCs: each cause slower and faster, numerics, what could not be judged, a swap.

``sample_findings()`` gives the run, its findings and the trials behind them.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.domain.case import Case
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.finding import (
    Finding,
    Findings,
    PhoneChange,
    SeriesRow,
    Triage,
)
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from tests.probes_fixture import calculated, copied, copy_case, fma_case, probe_info
from tests.results_fixture import (
    case,
    info,
    results,
    run_info,
)
from tests.unit.reports.sample_groups import drift, groups, in_turns
from tests.unit.reports.sample_nights import AWAY, NIGHTS, PHONES, TONIGHT, driver, noise, rows
from tests.unit.reports.sample_truth import (
    TILES,
    Change,
    base_ns,
    change_of,
    device_night,
    flags_of,
    phones_of,
    record,
    tonight,
)

MIB64 = 2**26


def unchanged(*_: object) -> float:
    return 0.0


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
        found = change_of(soc, point)
        why, verdict = "", "same"
        if number % 29 == 7:
            verdict, why = "inconclusive", "5 of 7 nights that a baseline needs"
        elif number % 31 == 9:
            verdict, why = "missing", "not measured tonight: the phone was held"
        elif number % 37 == 11:
            verdict, why = "new", "first night"
        elif found:
            verdict = "regressed" if found.effect > 0 else "improved"
        base = base_ns(point)
        effect = (found.effect if found else 0.0) + 0.004 * noise(soc, point.case_id)
        history = [
            math.nan
            if run == AWAY or (verdict == "missing" and i == 14) or (verdict == "new" and i < 14)
            else (found.effect if found and i >= found.since else 0.0)
            + 0.008 * noise(soc, point.case_id, run)
            for i, run in enumerate(NIGHTS)
        ]
        flags = flags_of(soc, number)
        self._rows.append(
            SeriesRow(
                soc,
                point.case_id,
                verdict,
                why,
                math.nan if verdict in ("missing", "new") else effect,
                0.014 + 0.01 * abs(noise(point.case_id)) if verdict != "new" else math.nan,
                math.nan if verdict == "missing" else base * math.exp(effect),
                0 if verdict == "missing" else len(phones_of(soc)),
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
                duels=in_turns(shown[0].device_id, found.effect) if found.cause == "code" else [],
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
                    ns = base_ns(point) * phone.pace * math.exp(effects.get(key, 0.0))
                    trials.append(tonight(point, phone, round(ns), flags.get(key, "")))
        return replace(
            results(
                trials=trials,
                infos=[*self.infos, *(probe_info(p) for p in probes)],
                devices=[record(p) for p in PHONES if p.last == 14],
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
            groups=groups(found),
            findings=found,
            unconfirmed=[
                replace(found[0], finding_id="unconfirmed", confirmed="no", case_id=self.points[-1].case_id)
            ],
            unexpected=["attention_flash tile=16x8 is no longer slow on SM8650: remove its entry"],
            drift=drift(),
            series=self._rows,
            devices=[device_night(p) for p in PHONES],
            method={
                "window": 14,
                "min_nights": 7,
                "threshold": math.log(1.02),
                "q": 0.05,
                "min_in_state": 5,
                "die_ceiling_mc": 85_000,
                "power": 0.8,
            },
        )

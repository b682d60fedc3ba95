"""A night whose every free text is an attack and whose every number is NaN or infinite."""

import math
from dataclasses import replace
from typing import Any

from orchestrator.domain.finding import (
    DeviceNight,
    Drift,
    Finding,
    Findings,
    Group,
    InTurns,
    PhoneChange,
    SeriesRow,
    Triage,
)
from tests.unit.reports.hostile import NASTY, hostile
from tests.unit.reports.sample_findings import Sample

STRANGE = (math.nan, math.inf, -math.inf, 0.0, 1e300, -1e300)
FINDING = "f" + NASTY


def hostile_findings() -> Sample:
    run = hostile()
    soc, device = run.devices[0].soc.name, run.devices[0].device_id
    cases = list(run.cases)
    found = [
        Finding(
            f"{FINDING}{i}", "speed" if i % 2 else "numerics", "regressed" if i % 2 else "limit_crossed",
            soc, cases[i % len(cases)], device_id=device if i == 1 else "", effect=value, low=value,
            high=-value, q=value, confirmed="no", phones=[PhoneChange(device, value, value, value, 3)],
            since=NASTY, baseline=[NASTY, "before " + NASTY], code_before=NASTY, code_after="b" + NASTY,
            environment_before=NASTY, environment_after="; " + NASTY, detail=NASTY, expected=NASTY,
            duels=[InTurns(device, "unknown", value, value, value, value, 1, 1, NASTY)],
            triage=Triage("noise", NASTY, NASTY, NASTY, NASTY, NASTY),
        )
        for i, value in enumerate(STRANGE)
    ]  # fmt: skip
    rows = [
        SeriesRow(
            soc, cases[i % len(cases)], "regressed", NASTY, value, value, value, 1, [*STRANGE, value],
            ["hash_changed", "improved"],
        )
        for i, value in enumerate(STRANGE)
    ]  # fmt: skip
    rows += [SeriesRow(soc, NASTY, "missing", NASTY), SeriesRow(NASTY + "2", NASTY, "new", NASTY)]
    ids = [f.finding_id for f in found]
    groups = [
        Group(
            NASTY, NASTY, "driver", "regressed", soc, socs=[soc], since=NASTY, changed=NASTY, effect=math.nan,
            kernel=NASTY, axis=NASTY, value=NASTY, findings=[*ids[:3], "no such finding"],
        ),
        Group("g2", NASTY, "code", "improved", NASTY + "2", effect=math.inf),
    ]  # fmt: skip
    night = DeviceNight(device, soc, list(STRANGE), list(STRANGE), "same", [NASTY, "", "b" + NASTY], [NASTY])
    findings = Findings(
        NASTY, NASTY, ["before " + NASTY, NASTY], NASTY, {"regressed": 3}, [NASTY], groups, found,
        unconfirmed=[replace(found[0], finding_id="u")], series=rows, devices=[night],
        method={NASTY: math.nan, "threshold": math.inf, "window": math.nan},
        unexpected=[NASTY], drift=[Drift(NASTY, NASTY, soc, NASTY, math.nan, 1, 1, NASTY)],
    )  # fmt: skip
    return Sample(run, findings, {ids[0]: _series(device), ids[1]: _series(device)})


def _series(device: str) -> list[dict[str, Any]]:
    """Rows that lack columns, and columns of strange values."""
    numbers = dict.fromkeys(("log_ns", "clock_hz", "nmse", "max_abs", "ulp_max", "cosine"), math.nan)
    whole = {"run_id": NASTY, "device_id": device, "verdict": NASTY, "driver": NASTY, "hash": NASTY}
    return [
        {"run_id": "before " + NASTY, "device_id": device, "code_hash": NASTY, "log_ns": math.inf},
        whole
        | numbers
        | {"samples_ns": [math.nan, 1.0, math.inf], "gpu_hz": [math.nan] * 4, "temp_mc": [None]},
        {"run_id": None, "device_id": None},
    ]

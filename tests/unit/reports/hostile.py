"""Results whose every free text is an attack: markup, escapes, bidi overrides, NUL."""

from dataclasses import replace
from datetime import date

from orchestrator.domain.device import DeviceRecord, Soc
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.results import Excluded, MissedNight, Missing, Pruned, RunResults
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import precision
from tests.results_fixture import (
    PREVIOUS_RUN_ID,
    case,
    device,
    elements,
    info,
    mismatching,
    passing,
    results,
    run_info,
    trial,
)

SCRIPT = "<script>alert(1)</script>"
CLOSER = "</script><script>boom()</script>"
IMAGE = '<img src=x onerror="alert(2)">'
QUOTE = "\" onfocus=alert(3) autofocus x='"
ESCAPE = "\x1b[31mred\x1b]0;owned\x07"
BIDI = "safe\u202egnp.exe"
NUL = "nul\x00byte\ufffe\ud800"
TEMPLATE = "{{ 7 * 7 }}{% raw %}"
FORMULA = "=1+1|[x](javascript:alert(4))`code`"
RICH = "[bold red]not markup[/]"
ALL = (SCRIPT, CLOSER, IMAGE, QUOTE, ESCAPE, BIDI, NUL, TEMPLATE, FORMULA, RICH)
NASTY = " ".join(ALL)


def hostile_device() -> DeviceRecord:
    made = device(
        "adb-0",
        name=NASTY,
        serial=NASTY,
        transport="adb",
        os_build=NASTY,
        virtual=True,
        health={NASTY: NASTY},
    )
    profile = replace(
        made.profiles[0], vendor=NASTY, renderer=NASTY, version=NASTY, glsl=NASTY, library=NASTY,
        extensions=[NASTY], features={NASTY: True}, limits={NASTY: 1}, adapter=NASTY, device_type=NASTY,
        driver={NASTY: NASTY}, advertised={NASTY: True, FORMULA: True}, unproven={NASTY: NASTY},
        float_controls={NASTY: True}, matrices=[NASTY],
    )  # fmt: skip
    return replace(
        made, soc=Soc(NASTY, NASTY, NASTY, NASTY, "guess"), profiles=[profile], host=NASTY, resource=NASTY
    )


def hostile() -> RunResults:
    """One trial of each outcome that carries text."""
    points = [
        case(layout=f"{NASTY}{i}", tile=t)
        for i, t in enumerate(("8x8", "16x8", "32x8", "64x8", "128x8", "8x16"))
    ]
    points.append(case(NASTY, inputs=NASTY))
    wrong = replace(
        mismatching(elements(points[0]), index=9, got=float("nan"), ref=1.0, failing=2),
        hashes={NASTY: 3, "b": 1}, hash=NASTY,
    )  # fmt: skip
    trials = [
        trial(
            points[0],
            "adb-0",
            Verdict.MISMATCH,
            reason=NASTY,
            outputs=[wrong],
            log=NASTY + "\n" + NASTY,
            driver=NASTY,
        ),
        trial(points[1], "adb-0", Verdict.INFRA, reason=NASTY),
        trial(points[2], "adb-0", Verdict.UNSUPPORTED, reason=NASTY),
        passing(points[3], "adb-0"),
        passing(points[4], "adb-0"),
        passing(points[5], "adb-0"),
        trial(points[6], "adb-0", Verdict.MISMATCH, reason=NASTY, driver=NASTY),
    ]
    known = Expectation(
        "tile=64x8 or inputs=*alert*", Verdict.MISMATCH, "*", "*", NASTY, NASTY, date(2027, 1, 1), 3
    )
    run = replace(
        run_info(), run_id=NASTY, suite=NASTY, host=NASTY, command=NASTY, commit=NASTY, tilefarm=NASTY,
        night=NASTY, degraded=[NASTY], missed_nights=[MissedNight(NASTY, NASTY)],
        compiler=NASTY, matrix=NASTY, kernels=[NASTY], selection=NASTY, overrides=[NASTY], wanted=[NASTY],
    )  # fmt: skip
    made = results(
        trials=trials,
        infos=[info(p) for p in points],
        devices=[hostile_device()],
        expectations=[known],
        run=run,
    )
    return replace(
        made,
        pruned=[Pruned("adb-0", points[0].case_id, Verdict.UNSUPPORTED, [NASTY])],
        precision=[replace(precision("adb-0", "mediump", NASTY), remarks=[NASTY])],
        excluded=[Excluded(NASTY, 1, NASTY, NASTY, NASTY)],
        missing=[Missing(NASTY, NASTY, NASTY), Missing("adb-0", points[0].case_id, NASTY)],
    )


def hostile_previous() -> RunResults:
    now = hostile()
    older = replace(now.devices[0], os_build="old " + NASTY)
    return replace(
        now, devices=[older], run=replace(run_info(PREVIOUS_RUN_ID), run_id="before " + NASTY), missing=[]
    )

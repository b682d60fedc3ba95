"""A page of four variants of one SoC, with findings that a test names."""

from dataclasses import replace

from orchestrator.domain.finding import (
    EVERYTHING,
    DeviceNight,
    Finding,
    Findings,
    Group,
    PhoneChange,
    SeriesRow,
    SpeedWord,
)
from reports.build import build_report
from reports.changes.model import SocChanges
from reports.html import render_changes
from reports.model import ReportModel
from tests.results_fixture import TODAY
from tests.unit.reports.sample_findings import sample_findings
from tests.unit.reports.sample_nights import NIGHTS, TONIGHT

SAMPLE = sample_findings()
CASES = list(SAMPLE.results.cases)[:4]
WHOLE = Finding(
    "whole", "speed", "regressed", "SM8650", EVERYTHING, effect=0.03, low=0.02, high=0.04, since=NIGHTS[10],
    phones=[PhoneChange("adb-s24-1", 0.03, float("nan"), float("nan"), 0)],
)  # fmt: skip
TOGETHER = "all 4 variants on SM8650 since 27 Nov: 3.0 % slower together (same code and software)"
DRIFT = replace(WHOLE, finding_id="drift", case_id=CASES[0], effect=0.024, since=NIGHTS[3])


def group(sentence: str, *ids: str, what: str = "regressed") -> Group:
    return Group(
        sentence[:9], sentence, "environment", what, "SM8650", socs=["SM8650"], since=NIGHTS[10],
        named=4, findings=list(ids),
    )  # fmt: skip


def night(
    found: list[Finding],
    groups: list[Group],
    verdict: SpeedWord = "same",
    not_measured: tuple[str, ...] = (),
    devices: tuple[DeviceNight, ...] = (),
    *,
    virtual: bool = False,
) -> ReportModel:
    rows = [SeriesRow("SM8650", c, verdict, effect=0.003, history=[0.0, 0.003]) for c in CASES]
    findings = Findings(
        TONIGHT, "nightly", NIGHTS, "x", {}, findings=found, groups=groups, series=rows,
        not_measured=list(not_measured), devices=list(devices),
    )  # fmt: skip
    known = [replace(d, virtual=virtual) for d in SAMPLE.results.devices]
    return build_report(replace(SAMPLE.results, devices=known), None, TODAY, findings=findings, series={})


def pages(model: ReportModel) -> dict[str, SocChanges]:
    assert model.changes is not None
    return {soc.soc: soc for soc in model.changes.socs}


def page(found: list[Finding], groups: list[Group], verdict: SpeedWord = "same") -> SocChanges:
    model = night(found, groups, verdict)
    soc = pages(model)["SM8650"]
    assert ('class="verdict no"' in render_changes(model, soc)) == soc.moved
    return soc

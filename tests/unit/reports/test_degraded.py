"""A degraded run says so first among what was not measured, in every output, and counts (G3-03)."""

import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from orchestrator.domain.results import MissedNight, RunResults
from reports.build import build_report
from reports.html import render_index
from reports.junit import render_junit
from reports.machines.github import annotations
from reports.machines.metrics import render_metrics
from reports.markdown import render_markdown
from reports.terminal import print_summary
from tests.results_fixture import TODAY, case, passing, results, run_info
from tests.unit.reports.pages import Page

POINT = case()
DEAF = "local-1 at 2026-12-01T01:13:05+00:00: its worker took none of the work queued for 180 s"
MISSED = MissedNight("2026-11-30-nightly", "nobody looked")


def night(*degraded: str) -> RunResults:
    made = results(trials=[passing(POINT, "local-1")], points=[POINT])
    return replace(made, run=replace(run_info(), degraded=list(degraded), missed_nights=[MISSED]))


def texts(run: RunResults) -> dict[str, str]:
    model = build_report(run, None, TODAY)
    file = io.StringIO()
    print_summary(model, Console(file=file, width=300))
    return {
        "terminal": file.getvalue(),
        "markdown": render_markdown(model).replace("\\", ""),
        "html": " ".join(Page(render_index(model)).root.text.split()).partition("What was not measured")[2],
        "junit": render_junit(model, run),
        "metrics": render_metrics(model),
        "github": "".join(a.command() for a in annotations(model, {})),
    }


@pytest.mark.parametrize("output", ["terminal", "markdown", "html", "junit"])
def test_it_stands_before_what_else_was_not_measured(output: str) -> None:
    before = texts(night(DEAF))[output].partition(MISSED.night)[0]
    assert "DEGRADED: a worker took nothing from its queues and was replaced" in before
    assert DEAF in before
    plain = texts(night())[output]
    assert MISSED.night in plain
    assert "DEGRADED" not in plain


def test_machines_get_a_number_and_a_warning() -> None:
    assert 'tilefarm_run_degraded{suite="smoke"} 2' in texts(night(DEAF, DEAF))["metrics"]
    assert 'tilefarm_run_degraded{suite="smoke"} 0' in texts(night())["metrics"]
    assert "Degraded run" in texts(night(DEAF))["github"]
    root = ET.fromstring(texts(night(DEAF, DEAF))["junit"].partition("\n")[2])
    (suite,) = [s for s in root if s.get("name") == "degraded"]
    assert [e.text for e in suite.iter("system-out")] == [f"{DEAF}\n{DEAF}"]
    assert (suite.get("errors"), suite.get("failures")) == ("0", "0")


def test_what_was_measured_counts_and_nothing_failed() -> None:
    degraded, plain = (build_report(run, None, TODAY).summary for run in (night(DEAF), night()))
    assert degraded == plain
    assert degraded.exit_code == 0


def test_a_phone_of_each_line_does_not_hide_the_rest() -> None:
    many = texts(night(*(f"phone-{n} {DEAF}" for n in range(300))))
    assert all("300 times a worker" in many[output] for output in ("terminal", "markdown", "html"))
    assert "phone-299" not in many["terminal"] + many["markdown"]
    assert "first 15 of 300" in many["terminal"]

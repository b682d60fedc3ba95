"""What is better than the matrix expects, and why CI is told in spite of a decision."""

from dataclasses import replace
from io import StringIO

from rich.console import Console

from orchestrator.domain.finding import Findings, Triage
from reports.build import build_report
from reports.junit import render_junit
from reports.markdown import render_markdown
from reports.terminal import summary_table
from tests.results_fixture import TODAY
from tests.unit.reports.sample_findings import sample_findings

SAMPLE = sample_findings()
AGAIN = "regressed again, marked fixed on 2026-12-11"


def fixed_and_back() -> Findings:
    back = Triage("fixed", "ana", decided_at="2026-12-11T12:00:00+00:00", again=True, told=AGAIN)
    found = [replace(f, triage=back) for f in SAMPLE.findings.findings]
    return replace(SAMPLE.findings, findings=found)


def terminal(found: Findings) -> str:
    console = Console(width=160, file=StringIO())
    with console.capture() as printed:
        console.print(summary_table(build_report(SAMPLE.results, None, TODAY, findings=found)))
    return printed.get()


def test_an_unexpected_improvement_stands_where_unexpected_passes_do() -> None:
    (sentence,) = SAMPLE.findings.unexpected
    markdown = render_markdown(build_report(SAMPLE.results, None, TODAY, findings=SAMPLE.findings))
    assert "**Better than the matrix expects**" in markdown
    assert "is no longer slow on SM8650" in markdown
    shown = terminal(SAMPLE.findings)
    assert "Better than the matrix expects" in shown
    assert sentence in shown
    none = replace(SAMPLE.findings, unexpected=[])
    assert "Better than the matrix" not in terminal(none)


def test_what_is_back_after_it_was_fixed_says_so_to_ci() -> None:
    model = build_report(SAMPLE.results, None, TODAY, findings=fixed_and_back())
    assert AGAIN in render_junit(model, SAMPLE.results)

"""`tilefarm run` says in the terminal what changed, before a browser is opened."""

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from orchestrator.domain.finding import Findings
from reports.terminal import print_summary
from reports.write import write_reports
from tests.results_fixture import TODAY
from tests.unit.reports.sample_findings import sample_findings


def printed(folder: Path, found: Findings) -> str:
    results = sample_findings().results
    reports = write_reports(results, results, folder, TODAY, findings=found, series={})
    console = Console(file=io.StringIO(), width=110)
    print_summary(reports.model, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_verdict_comes_with_what_was_not_measured_and_a_line_a_cause(tmp_path: Path) -> None:
    found = sample_findings().findings
    text = " ".join(printed(tmp_path, found).split())
    assert found.counts["regressed"] > 0
    assert f"{found.counts['regressed']} variants regressed" in text
    assert text.index("regressed") < text.index("Not measured: 1 night before this one") < text.index("▲ ")
    assert "▼ " in text, "what is faster is told as plainly"
    assert "Change against" not in text, "two runs are no verdict beside one"


def test_hostile_words_are_no_markup_and_no_escapes(tmp_path: Path) -> None:
    evil = "[bold]\x1b[31mall\x1b[0m\n slower"
    found = replace(sample_findings().findings, sentence=evil, not_measured=[evil] * 9)
    text = printed(tmp_path, found)
    assert "\x1b" not in text
    assert "[bold]" in text
    assert "and 4 more reasons in the report" in text

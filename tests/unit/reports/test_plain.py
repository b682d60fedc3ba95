"""Terminal, Markdown, and the writer."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.domain.verdict import Verdict
from reports.build import build_report
from reports.markdown import render_markdown
from reports.model import ReportModel
from reports.terminal import print_summary
from reports.text import visible
from reports.write import write_reports
from tests.results_fixture import TODAY, case, results, trial
from tests.unit.reports.hostile import hostile, hostile_previous
from tests.unit.reports.sample import sample, sample_previous


def _terminal(model: ReportModel, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    print_summary(model, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


SAMPLE = build_report(sample(), sample_previous(), TODAY)
HOSTILE = build_report(hostile(), hostile_previous(), TODAY, max_slowdown=0.5)


def test_terminal_starts_with_the_verdict_and_names_virtual_phones() -> None:
    text = _terminal(SAMPLE)
    assert text.startswith("6 unexpected failures (2 mismatch, ")
    assert "virtual phone: llvmpipe (LLVM 15.0.6, 256 bits) of this host under declared limits" in text
    assert "provisional: two runs only, not a verdict" in text


@pytest.mark.parametrize("width", [60, 200])
def test_commands_in_the_terminal_are_never_folded(width: int) -> None:
    text = _terminal(SAMPLE, width)
    for finding in SAMPLE.socs[0].devices[0].findings[:4]:
        assert f"    {finding.repro}\n" in text


def test_g4_07_terminal_shows_escapes_and_never_sends_them() -> None:
    text = _terminal(HOSTILE)
    assert not any(c in text for c in "\x1b\x07\x00\u202e")
    assert "\\u001b[31mred" in text
    assert "[bold red]not markup[/]" in text


def test_markdown_names_failures_and_how_to_repeat_them() -> None:
    text = render_markdown(SAMPLE)
    assert text.startswith("### 6 unexpected failures")
    assert text.count("tilefarm run --suite smoke --case ") == 9
    assert "| `SM8650` | 2 | 1 | 1 | 0 | 0 | 48 | 7 |" in text


def test_g4_07_markdown_cannot_be_left() -> None:
    text = render_markdown(HOSTILE)
    outside = "".join(part for i, part in enumerate(text.replace("\\`", "").split("`")) if i % 2 == 0)
    assert "<script" not in outside
    assert "<img" not in outside
    assert "[x](" not in outside
    assert not any(c in text for c in "\x1b\x00\u202e")
    assert text.count("`") % 2 == text.count("\\`") % 2
    for line in text.splitlines():
        if line.startswith("| `") and "---" not in line:
            assert line.count("|") in (9, 8), line


def test_write_reports(tmp_path: Path) -> None:
    paths = write_reports(sample(), sample_previous(), tmp_path / "run", TODAY)
    names = {p.relative_to(tmp_path / "run").as_posix() for p in (tmp_path / "run").rglob("*")}
    assert names == {"index.html", "soc-llvmpipe.html", "soc-SM8650.html", "junit.xml", "summary.md"}
    assert paths.index == tmp_path / "run" / "index.html"
    assert paths.socs["SM8650"].name == "soc-SM8650.html"
    assert paths.model.summary.exit_code == 1


def test_long_logs_become_files_that_hold_all_of_it(tmp_path: Path) -> None:
    log = "warning: ü\x1b[2J\n" * 1_000 + "the last line"
    run = results(trials=[trial(case(), "local-1", Verdict.COMPILE_FAILED, log=log)], points=[case()])
    paths = write_reports(run, None, tmp_path, TODAY)
    finding = paths.model.socs[0].devices[0].findings[0]
    written = (tmp_path / finding.log_file).read_text("utf-8")
    assert written.endswith("the last line")
    assert written.count("\n") == 1_000
    assert "\x1b" not in written
    assert finding.log_file in paths.socs["llvmpipe"].read_text("utf-8")


def test_hostile_names_stay_in_the_folder(tmp_path: Path) -> None:
    paths = write_reports(hostile(), hostile_previous(), tmp_path / "run", TODAY)
    assert {p.name for p in tmp_path.iterdir()} == {"run"}
    assert all(p.parent == tmp_path / "run" for p in paths.socs.values())
    assert visible("\u202e") in paths.summary.read_text("utf-8")


def test_writing_again_replaces(tmp_path: Path) -> None:
    write_reports(sample(), sample_previous(), tmp_path, TODAY)
    write_reports(sample(), None, tmp_path, TODAY)
    assert "No previous run" in (tmp_path / "index.html").read_text("utf-8")
    assert not list(tmp_path.glob("*.part"))

"""Terminal, Markdown, and the writer."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from orchestrator.domain.results import Missing
from orchestrator.domain.verdict import Verdict
from reports.build import build_report
from reports.html import render_index
from reports.markdown import render_markdown
from reports.model import ReportModel
from reports.terminal import print_summary
from reports.text import visible
from reports.write import write_reports
from tests.results_fixture import TODAY, case, passing, results, timing, trial
from tests.unit.reports.hostile import hostile, hostile_previous
from tests.unit.reports.sample import PHONE, sample, sample_previous


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


def test_everything_missing_is_listed_with_its_reason() -> None:
    gone = [
        Missing("R5CT1", "", "unauthorized"),
        *(Missing(PHONE, c, "battery empty") for c in sample().cases),
    ]
    model = build_report(replace(sample(), missing=gone), None, TODAY)
    terminal, markdown = _terminal(model), render_markdown(model)
    n = len(gone) - 1
    assert "missing on R5CT1: the whole device\n    unauthorized" in terminal
    assert f"missing on Galaxy S24 Ultra (virtual): {n} cases\n    battery empty" in terminal
    assert "- missing on `R5CT1`: `the whole device`: unauthorized" in markdown
    assert f"`{n} cases`: battery empty" in markdown
    index = " ".join(render_index(model).split())
    assert f"1 device did not take part, {n + 1} results not obtained" in index
    assert "vanished during push and did not come back" in _terminal(SAMPLE)


def test_every_case_beyond_the_bound_is_listed_however_quiet() -> None:
    points = [case(tile=f"{n}x8") for n in range(1, 31)]
    before = results(trials=[passing(p, "local-1", timing(10_000_000)) for p in points], points=points)
    after = results(trials=[passing(p, "local-1", timing(10_300_000)) for p in points], points=points)
    model = build_report(after, before, TODAY, max_slowdown=1.02)
    assert not any(c.notable for c in model.slow)
    text = _terminal(model)
    listing = text[text.index("Slower than the bound of ×1.02 (30; provisional") :]
    assert all(f"attention_flash {n}x8 " in listing for n in range(1, 31))
    assert render_markdown(model).count("slower than the bound of ×1.02: ") == 20
    assert "- and 10 more" in render_markdown(model)


def test_fastest_variants_are_those_of_the_main_workloads_and_the_rest_is_counted() -> None:
    points = [case(seq=s, tile=t) for s in range(32, 42) for t in ("8x8", "16x8")]
    model = build_report(results(trials=[passing(p, "local-1") for p in points], points=points), None, TODAY)
    assert _terminal(model).count(": attention seq=") == 6
    assert "and 4 more workloads in the report" in _terminal(model)
    assert "4 more workloads are in the report." in render_markdown(model)


def test_cause_of_a_change_is_named() -> None:
    assert "environment" in _terminal(SAMPLE)
    assert "look first at: environment" in render_markdown(SAMPLE)


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
    pages = {"index.html", "soc-llvmpipe.html", "soc-SM8650.html"}
    assert names == pages | {"junit.xml", "summary.md", "metrics.prom"}
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

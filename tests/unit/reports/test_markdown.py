"""summary.md of a night against its history: what a comment on a pull request shows, and how long it is."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from orchestrator.domain.finding import Findings, Triage
from orchestrator.domain.results import RunResults
from reports.build import build_report
from reports.changes.words import CAUSES
from reports.machines.marked import code, plain
from reports.markdown import MAX_BYTES, render_markdown
from tests.results_fixture import TODAY
from tests.unit.reports.hostile import NASTY
from tests.unit.reports.one_soc import DRIFT, group, night
from tests.unit.reports.sample_findings import sample_findings
from tests.unit.reports.sample_many import many

SAMPLE = sample_findings()
BASE = "https://farm.example/runs/20261201"


def text(found: Findings, run: RunResults = SAMPLE.results, base: str = BASE) -> str:
    return render_markdown(build_report(run, None, TODAY, findings=found), base)


def html(markdown: str) -> str:
    """As GitHub's dialect has it: tables, and HTML of the text left alive."""
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)


def test_the_verdict_is_first_then_what_was_not_measured_then_causes() -> None:
    said = text(SAMPLE.findings)
    assert said.startswith("### ")
    places = [
        said.index(words)
        for words in (
            "This run's results: ",
            "| regressed | improved | numerics |",
            "**Not measured, or not judged**",
            "**▲ Got worse",
            "**▼ Improved",
            "| SoC | failed |",
        )
    ]
    assert places == sorted(places)


def test_improvements_have_the_same_table_as_regressions() -> None:
    page = html(text(SAMPLE.findings))
    heads = [re.findall(r"<th>(.*?)</th>", table) for table in re.findall(r"<table>.*?</table>", page, re.S)]
    assert heads.count(["what", "where", "change", "since", "cause", "second look", "report"]) == 2


def test_a_row_says_what_where_how_much_since_when_why_and_how_sure() -> None:
    rows = [line for line in text(SAMPLE.findings).splitlines() if line.startswith("| regressed: ")]
    assert rows
    for row in rows:
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", row)[1:-1]]
        assert len(cells) == 7
        if "all variants together" in cells[0]:
            continue
        assert re.search(r"% slower \(.[\d.]+ % to .[\d.]+ %\)", cells[2]), cells[2]
        assert cells[4] in map(plain, CAUSES.values()) or "changed: " in cells[4]
        assert f"]({BASE}/changes-" in cells[6]
    assert any("code changed" in row and " yes" in row for row in rows)


def test_without_a_server_pages_are_named() -> None:
    said = text(SAMPLE.findings, base="")
    assert "](" not in said
    assert "`changes-SM8650.html`" in said


def test_what_is_dealt_with_is_one_line() -> None:
    done = [replace(f, triage=Triage("accepted")) for f in SAMPLE.findings.findings]
    said = text(replace(SAMPLE.findings, findings=done, groups=[]))
    assert "Got worse" not in said
    assert f"{len(done)} findings more that somebody decided about" in said


def test_a_comment_is_never_too_long() -> None:
    infos, found = many(2_000)
    run = replace(SAMPLE.results, cases=infos, trials=[])
    long = [replace(f, finding_id=f"f{n}", detail=NASTY * 9) for n, f in enumerate(found.findings)]
    for findings in (
        replace(found, findings=long),
        replace(found, sentence=NASTY * 5_000, not_measured=[NASTY * 99] * 900),
    ):
        assert len(text(findings, run).encode()) <= MAX_BYTES


def test_what_is_left_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.markdown.MAX_BYTES", 900)
    said = text(SAMPLE.findings)
    assert len(said.encode()) <= 900
    assert said.endswith("… the rest is in the report.\n")


def test_g4_07_hostile_names_stay_text() -> None:
    groups = [
        replace(g, sentence=NASTY, kernel=NASTY, axis=NASTY, value=NASTY, changed=NASTY, soc=NASTY)
        for g in SAMPLE.findings.groups
    ]
    findings = [
        replace(f, soc=NASTY, case_id=NASTY, detail=NASTY, since=NASTY) for f in SAMPLE.findings.findings
    ]
    found = replace(
        SAMPLE.findings,
        sentence=NASTY,
        groups=groups,
        findings=findings,
        not_measured=[NASTY, "@team see #1"],
    )
    said = text(found)
    assert not any(c in said for c in "\x1b\x00\u202e")
    page = html(said)
    assert set(re.findall(r"<([a-z0-9]+)", page)) <= {
        "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code", "strong", "a", "em",
    }  # fmt: skip
    assert all(href.startswith(BASE) for href in re.findall(r'href="([^"]*)"', page))
    assert "@team" not in said


@given(st.text(max_size=60))
@settings(max_examples=200)
def test_any_text_stays_text(given_text: str) -> None:
    page = html(
        f"a {plain(given_text)} b\n\n| x | y |\n| --- | --- |\n| {code(given_text)} | {plain(given_text)} |"
    )
    assert set(re.findall(r"<([a-z0-9]+)", page)) <= {
        "p", "table", "thead", "tbody", "tr", "th", "td", "code",
    }  # fmt: skip
    assert page.count("<td") == 2


def test_the_cause_of_a_slow_drift_says_so() -> None:
    said = "scale on SM8650 since 20 Nov: 1 of 4 variants 2.4 % slower (a slow drift)"
    rows = render_markdown(night([DRIFT], [group(said, "drift")])).splitlines()
    (row,) = [row for row in rows if row.startswith("| regressed: ")]
    assert "| slow drift, neither code nor driver changed |" in row

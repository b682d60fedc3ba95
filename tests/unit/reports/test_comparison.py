"""The page of ``tilefarm compare``."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from orchestrator.domain.results import RunResults
from orchestrator.domain.verdict import Verdict
from reports.build import build_report
from reports.comparison import render_comparison
from reports.terminal import changes_table
from tests.results_fixture import TODAY, case, device, passing, results, run_info, timing
from tests.unit.reports.hostile import ALL, hostile, hostile_previous
from tests.unit.reports.pages import Page
from tests.unit.reports.sample import sample, sample_previous

BEFORE = results(
    trials=[passing(case(tile=t), "local-1", timing(10_000_000)) for t in ("8x8", "16x8", "32x8")],
    points=[case(tile=t) for t in ("8x8", "16x8", "32x8")],
    run=run_info("20261129T010000Z-smoke-aaaa"),
)
AFTER = results(
    trials=[
        passing(case(tile="8x8"), "local-1", timing(13_000_000)),
        passing(case(tile="16x8"), "local-1", timing(10_000_000)),
        passing(case(tile="64x8"), "local-1", timing(10_000_000)),
    ],
    points=[case(tile=t) for t in ("8x8", "16x8", "64x8")],
)


def test_the_worst_and_the_gaps_come_first() -> None:
    page = Page(render_comparison(build_report(AFTER, BEFORE, TODAY, max_slowdown=1.1)))
    assert page.problems == []
    assert page.all("h1")[0].text == (
        "2 cases in both runs: 1 above the bound of ×1.10, 1 worth a look, 1 only before, 1 only after."
    )
    assert [h.attributes["id"] for h in page.all("h2")] == [
        "notable", "slower", "only-before", "only-after", "runs",
    ]  # fmt: skip
    assert "30.0 % slower" in page.all("table")[0].text.replace("\u00a0", " ")
    folded = page.all("details")
    assert [d.all("summary")[0].text for d in folded] == [
        "All others: 1",
        "What names leave out: the same for all cases of a kernel",
        "llvmpipe (LLVM 15.0.6, 256 bits): 1 case: not planned in the other run",
        "llvmpipe (LLVM 15.0.6, 256 bits): 1 case: not planned in the other run",
    ]
    names = [folded[n].all("code")[0] for n in (0, 2)]
    assert [name.text for name in names] == ["attention_flash 16x8", "attention_flash 32x8"]
    assert "tile=16x8" in names[0].attributes["title"].split(" ")
    assert "seq=512" in names[0].attributes["title"].split(" ")
    assert "seq=512" in folded[1].text


def two_runs(*, phones: int, steady: int) -> tuple[RunResults, RunResults]:
    """Many times that moved on the first phone, one result that became wrong on the last one, and a phone
    that only the first run has."""
    points = [case(tile=f"{n}x8") for n in range(1, steady + 1)]
    ids = [f"local-{n}" for n in range(phones)]
    before = [passing(p, i, timing(10_000_000)) for p in points for i in [*ids, "gone"]]
    after = [passing(p, i, timing(12_000_000 if i == ids[0] else 10_000_000)) for p in points for i in ids]
    after[-1] = replace(after[-1], verdict=Verdict.MISMATCH)
    return (
        results(trials=before, points=points, devices=[device(i) for i in [*ids, "gone"]], run=BEFORE.run),
        results(trials=after, points=points, devices=[device(i) for i in ids]),
    )


def test_what_became_wrong_is_the_first_row_and_one_phone_that_is_gone_is_one_line() -> None:
    before, after = two_runs(phones=3, steady=30)
    model = build_report(after, before, TODAY)
    page = Page(render_comparison(model))
    assert page.all("h1")[0].text == (
        "90 cases in both runs: 1 became wrong, 31 worth a look, 30 only before."
    )
    first, *others = page.all("table")[0].all("tr")[1:]
    assert "pass → mismatch" in first.text
    assert all("20.0 % slower" in row.text.replace("\u00a0", " ") for row in others)
    only = [d for d in page.all("details") if "device not in the other run" in d.text]
    assert [d.all("summary")[0].text for d in only] == ["gone: 30 cases: device not in the other run"]
    file = StringIO()
    Console(file=file, width=200).print(changes_table(model))
    lines = file.getvalue().splitlines()
    assert "(first 15 of 31)" in lines[0]
    assert "pass → mismatch" in lines[2]
    said = "local-0 attention_flash 1x8 pass 10.0 ms 12.0 ms 20.0 % slower environment"
    assert lines[3].split() == said.split()


def test_the_page_stands_alone() -> None:
    html = render_comparison(build_report(sample(), sample_previous(), TODAY))
    page = Page(html)
    assert page.all("a") == page.all("script") == page.all("img") == page.all("link") == []
    assert "default-src 'none'" in html
    assert "20261129" in page.by_id("runs").text or sample_previous().run.run_id in page.root.text
    for table in page.all("table"):
        assert table.all("caption")


def test_nothing_changed_is_said_without_a_bound() -> None:
    page = Page(render_comparison(build_report(replace(AFTER, missing=[]), AFTER, TODAY)))
    assert page.all("h1")[0].text == "3 cases in both runs: nothing worth a look."
    assert "no time moved by more than 5 %" in page.root.text


def test_without_a_second_run_there_is_no_page() -> None:
    with pytest.raises(ValueError, match="no run to compare with"):
        render_comparison(build_report(AFTER, None, TODAY))


def test_g4_07_hostile_names_of_two_runs() -> None:
    html = render_comparison(build_report(hostile(), hostile_previous(), TODAY, max_slowdown=0.5))
    page = Page(html)
    assert page.problems == []
    assert "\u202e" not in html
    assert all(text in page.root.text for text in ALL if text.isprintable() and "\u202e" not in text)

"""The page of ``tilefarm compare``."""

from dataclasses import replace

import pytest

from reports.build import build_report
from reports.comparison import render_comparison
from tests.results_fixture import TODAY, case, passing, results, run_info, timing
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
        "only-before", "slower", "notable", "only-after", "runs",
    ]  # fmt: skip
    assert "×1.30 slower" in page.all("table")[0].text
    assert "tile=32x8" in page.all("ul")[0].text
    others = page.all("details")[0]
    assert others.all("summary")[0].text == "All others: 1"
    assert "tile=16x8" in others.text


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

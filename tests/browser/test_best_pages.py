"""Pages of best variants as a person opens them: no network, both themes, narrow screens, accessibility."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from reports.write import write_reports
from tests.browser.visits import CONTRAST, Reader, Scheme
from tests.results_fixture import TODAY
from tests.unit.reports.best_sample import best
from tests.unit.reports.hostile import NASTY, hostile
from tests.unit.reports.sample import sample

PAGE = "best-SM8650.html"
VIOLATIONS = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html)]);
}"""


@pytest.fixture(scope="module")
def best_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("best")
    write_reports(sample(), None, folder, TODAY, best=best())
    return folder


@pytest.fixture(scope="module")
def hostile_best(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile-best")
    write_reports(hostile(), None, folder, TODAY, best=best(text=NASTY, virtual=True))
    return folder


def test_the_index_and_the_soc_lead_to_what_is_shipped(reader: Reader, best_report: Path) -> None:
    page = reader.open(best_report / "index.html")
    page.locator("#best").scroll_into_view_if_needed()
    page.get_by_role("region", name="Best variants").get_by_role("link", name="SM8650").click()
    assert page.url.endswith(PAGE)
    assert page.locator("h1").inner_text() == "SM8650: 1 workload, 1 tied; 2 phones, 2 nights."
    page.get_by_role("link", name="All results of this run").click()
    page.get_by_role("link", name="Best variants").click()
    assert page.url.endswith(PAGE)


def test_the_winner_its_margin_and_its_ties_are_said(reader: Reader, best_report: Path) -> None:
    page = reader.open(best_report / PAGE)
    row = page.locator("#winners + div tbody tr").first.inner_text()
    for word in ("64x16", "1.24 ms", "−0.4 %", "−0.9 % … +0.1 %", "2 of 4", "3 of 4", "phone-10: +3.0 %"):
        assert word in row, word
    assert "tied with 1 other" in row
    assert "rests on 2 nights" in row
    assert "because its error is smaller" in page.locator("section.work").inner_text()
    page.get_by_text("1 variant left out, and why").click()
    assert page.get_by_text("mismatch on phone-1").is_visible()


def test_the_front_is_drawn_and_told(reader: Reader, best_report: Path) -> None:
    page = reader.open(best_report / PAGE)
    chart = page.get_by_role("img", name="Latency and error of each variant")
    assert chart.locator("path.chosen, path.on, path.off").count() == 2, "one variant has no known error"
    assert chart.locator("path.step").count() == 1
    assert "on the front, the fastest first: 1.23 ms at NMSE 9.00e-8" in chart.locator("desc").inner_html()
    boxes = chart.locator("text").evaluate_all(
        "all => all.map(t => [t.getBoundingClientRect().left, t.getBoundingClientRect().right])"
    )
    frame = chart.bounding_box()
    assert frame is not None
    assert all(frame["x"] <= left and right <= frame["x"] + frame["width"] for left, right in boxes)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [PAGE, "index.html"])
def test_axe_finds_no_violation(reader: Reader, best_report: Path, name: str, scheme: Scheme) -> None:
    page = reader.open(best_report / name, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate(Axe().axe_script)
    assert page.evaluate(VIOLATIONS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast(reader: Reader, best_report: Path, scheme: Scheme) -> None:
    page = reader.open(best_report / PAGE, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    found: list[tuple[float, str, str, str]] = page.evaluate(CONTRAST)
    assert [f"{ratio:.2f} {rest}" for ratio, *rest in found if ratio < 4.5] == []


def test_no_page_is_wider_than_the_window(reader: Reader, best_report: Path, hostile_best: Path) -> None:
    for path in [*best_report.glob("best-*.html"), *hostile_best.glob("best-*.html")]:
        page = reader.open(path)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{path.name} {width}"


def test_hostile_texts_are_shown_and_run_nothing(reader: Reader, hostile_best: Path) -> None:
    """``reader`` fails on dialogs, requests and errors."""
    pages = sorted(hostile_best.glob("best-*.html"))
    assert len(pages) == 2
    for path in pages:
        page = reader.open(path)
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert "<script>alert(1)</script>" in page.locator("body").inner_text()
        assert page.locator("script").count() == 0


def test_it_prints(reader: Reader, best_report: Path) -> None:
    page = reader.open(best_report / PAGE)
    page.emulate_media(media="print")
    assert page.get_by_text("mismatch on phone-1").count() == 1
    assert page.pdf().startswith(b"%PDF")


def test_a_narrow_row_says_what_each_of_its_cells_is(reader: Reader, best_report: Path) -> None:
    page = reader.open(best_report / PAGE, width=400)
    cells = page.locator("#winners + div tbody tr").first.locator("td")
    told: list[str] = cells.evaluate_all(
        """all => all.map(td => ["::before", "::after"].map(w => getComputedStyle(td, w).content)
            .filter(c => c !== "none" && c !== "normal").join(""))"""
    )
    assert all(told[1:]), "the variant's name alone speaks for itself"
    assert "Worst phone" in told[-2]
    assert "Before you ship it" in told[-1]
    number, interval = cells.nth(2).bounding_box(), cells.nth(2).locator(".range").bounding_box()
    assert number is not None
    assert interval is not None
    assert number["height"] < 1.6 * interval["height"], "both stand in one line"

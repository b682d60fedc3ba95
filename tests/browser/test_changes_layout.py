"""Where things stand on the pages of what changed: on a narrow screen, on a wide one, on paper."""

import re
from pathlib import Path

from tests.browser.visits import Reader

SOC = "changes-SM8650.html"


def test_no_page_is_wider_than_the_window(
    reader: Reader, changes_report: Path, hostile_changes: Path, many_report: Path
) -> None:
    for folder in (changes_report, hostile_changes, many_report):
        for path in [folder / "index.html", *folder.glob("changes-*.html")]:
            page = reader.open(path)
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{path.name} {width}"


def test_nothing_of_a_finding_is_cut_off_on_a_narrow_screen(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC, width=390)
    cut = page.locator("article").evaluate_all(
        """all => all.flatMap(a => [...a.querySelectorAll("*")].filter(e =>
        !e.parentElement.closest(".scroll, svg, details:not([open])") &&
        e.getBoundingClientRect().right > a.getBoundingClientRect().right + 1)
        .map(e => e.outerHTML.slice(0, 120)))"""
    )
    assert cut == []


def test_a_chip_and_a_size_stay_in_one_line_and_heads_at_one_height(
    reader: Reader, changes_report: Path
) -> None:
    page = reader.open(changes_report / SOC, width=390)
    tall = page.locator("#table .chip > span").evaluate_all(
        """all => all.filter(e => {
            const word = document.createRange();
            word.setStart(e.nextSibling, 1);
            word.setEnd(e.nextSibling, 2);
            return Math.abs(word.getBoundingClientRect().top - e.getBoundingClientRect().top) > 8;
        }).length"""
    )
    assert tall == 0
    page = reader.open(changes_report / SOC, width=1400)
    middles = page.locator("#table thead th").evaluate_all(
        """all => all.map(th => {
            const words = document.createRange();
            words.selectNodeContents(th);
            const box = words.getBoundingClientRect();
            return Math.round(box.top + box.height / 2);
        })"""
    )
    assert max(middles) - min(middles) <= 1


def test_parameters_can_be_read_on_a_narrow_screen(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC, width=390)
    cells_ = page.locator("h2#method ~ .figures table.facts").first.locator("td.soft")
    widths = cells_.evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
    assert len(widths) == 7
    assert min(widths) > 90


def test_samples_stand_beside_the_history_where_there_is_room(reader: Reader, changes_report: Path) -> None:
    for width, beside in ((1400, True), (1000, False)):
        page = reader.open(changes_report / SOC, width=width)
        history = page.locator("article.finding svg.hist").first.bounding_box()
        samples = page.locator("article.finding svg.strip").first.bounding_box()
        assert history is not None
        assert samples is not None
        assert (samples["x"] > history["x"] + history["width"]) == beside
        assert (samples["y"] > history["y"] + history["height"]) != beside


def test_paper_repeats_every_head_of_the_table(reader: Reader, changes_report: Path) -> None:
    """Chromium leaves out buttons of a head that it repeats; a title is larger than what is below it."""
    page = reader.open(changes_report / SOC)
    page.emulate_media(media="print")
    shown = page.locator("#table thead button").evaluate_all(
        "all => all.map(e => getComputedStyle(e).display)"
    )
    sizes = [
        float(
            page.locator(f"article.card {part}").first.evaluate(
                "e => parseFloat(getComputedStyle(e).fontSize)"
            )
        )
        for part in ("h3", ".what", ".meta", "li")
    ]
    page.emulate_media(media="screen")
    assert set(shown) == {"contents"}
    assert sizes[0] > sizes[1] > sizes[2] == sizes[3]


def test_print_to_pdf_shows_all_that_needs_no_script(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC)
    folded = page.locator("article.card details li").first
    assert not folded.is_visible()
    page.emulate_media(media="print")
    assert folded.is_visible()
    assert not page.locator("#controls").is_visible()
    assert not page.locator("nav.jump").is_visible()
    pdf = page.pdf(format="A4")
    page.emulate_media(media="screen")
    assert pdf.startswith(b"%PDF")
    assert 10 < len(re.findall(rb"/Type\s*/Page\b", pdf)) < 120

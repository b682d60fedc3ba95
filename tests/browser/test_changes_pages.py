"""What changed, as a person reads it: with and without script, by keyboard, on paper, in both themes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Route

from tests.browser.visits import CONTRAST, Reader, Scheme

PAGES = ["index.html", "changes-SM8650.html", "changes-Tensor-G4.html"]
SOC = "changes-SM8650.html"
ROW_TEXTS = """() => [...document.querySelectorAll("#table tbody tr")].map(tr => tr.innerText)"""
ROW_PICTURES = """() => [...document.querySelectorAll("#table tbody svg")].map(s =>
  [s.getAttribute("aria-label"), ...[...s.querySelectorAll("path")].map(p => p.outerHTML)])"""

# contrast.js looks at contrast in both themes, in pictures, too, and takes seconds instead of a minute.
VIOLATIONS = """async () => {
  const options = {resultTypes: ["violations"], rules: {"color-contrast": {enabled: false}}};
  const found = await axe.run(document, options);
  return found.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html)]);
}"""


def names(page: Page) -> list[str]:
    return page.locator("#table tbody th").evaluate_all("all => all.map(e => e.firstChild.textContent)")


def cells(page: Page, column: int) -> list[str]:
    return page.locator(f"#table tbody tr > :nth-child({column})").all_inner_texts()


def heading(page: Page, key: str) -> Any:
    return page.locator(f"#table thead th[data-key={key}]")


@pytest.mark.parametrize("name", PAGES)
def test_pages_open_with_verdict_counts_and_gaps_first(
    reader: Reader, changes_report: Path, name: str
) -> None:
    page = reader.open(changes_report / name)
    page.wait_for_load_state("networkidle")
    boxes = [page.locator(part).first.bounding_box() for part in ("h1", "dl.counts", ".note", "article.card")]
    tops = [box["y"] for box in boxes if box is not None]
    assert len(tops) == 4
    assert tops == sorted(tops)
    assert "▲" in page.locator("dl.counts").first.inner_text()
    assert "▼" in page.locator("dl.counts").first.inner_text()


def test_improvements_are_as_large_as_regressions(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / "index.html")
    sizes = page.locator("article.card.no h3, article.card.yes h3").evaluate_all(
        "all => all.map(e => [getComputedStyle(e).fontSize, getComputedStyle(e).fontWeight])"
    )
    assert len({tuple(s) for s in sizes}) == 1
    borders = {
        kind: page.locator(f"article.card.{kind}").first.evaluate("e => getComputedStyle(e).borderTopWidth")
        for kind in ("no", "yes")
    }
    assert borders["no"] == borders["yes"]


def test_one_cause_on_two_socs_is_one_card_that_leads_to_both(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / "index.html")
    card = page.locator("article.card", has_text="tile=128x32 on 2 SoCs")
    assert card.count() == 1
    assert card.locator("ul.parts a").all_inner_texts() == ["Tensor-G4", "SM8650"]
    ident = card.get_attribute("id")
    card.locator("ul.parts a", has_text="SM8650").click()
    assert page.url.endswith(f"/{SOC}#{ident}")
    here = page.locator(f"article#{ident}")
    assert "Also on" in here.inner_text()
    assert "Tensor-G4" in here.inner_text()
    here.locator("ul a").first.click()
    detail = page.locator("article.finding:target")
    assert "128x32" in detail.locator("h3").inner_text()


def test_a_card_shows_three_findings_and_folds_the_rest(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC)
    card = page.locator("article.card", has_text="all fp16_storage variants").first
    assert card.locator("> ul > li").count() == 3
    folded = card.locator("details")
    assert folded.locator("summary").inner_text() == "and 19 more"
    assert not folded.locator("li").first.is_visible()
    folded.locator("summary").click()
    assert folded.locator("li").count() == 19
    assert folded.locator("li").last.is_visible()


def test_script_draws_the_same_rows_as_the_page_without_it(reader: Reader, changes_report: Path) -> None:
    texts: list[Any] = []
    pictures: list[Any] = []
    for script in (True, False):
        page = reader.open(changes_report / SOC, script=script)
        if script:
            page.evaluate("document.querySelector('#table tbody tr').id = 'from-the-page'")
            page.evaluate("location.hash = '#rows?page=1'")
            page.wait_for_function("!document.querySelector('#from-the-page')")
        texts.append(page.evaluate(ROW_TEXTS))
        pictures.append(page.evaluate(ROW_PICTURES))
        assert page.locator("#controls").is_visible() == script
    assert len(texts[0]) == len(pictures[0]) == 96
    assert texts[0] == texts[1]
    assert pictures[0] == pictures[1]


def test_a_click_sorts_a_second_turns_a_third_brings_the_order_of_importance(
    reader: Reader, changes_report: Path
) -> None:
    page = reader.open(changes_report / SOC)
    first = names(page)
    button = heading(page, "latency").get_by_role("button")
    button.click()
    down = names(page)
    assert heading(page, "latency").get_attribute("aria-sort") == "descending"
    assert page.url.endswith("#rows?sort=latency")
    button.click()
    up = names(page)
    assert heading(page, "latency").get_attribute("aria-sort") == "ascending"
    assert page.url.endswith("#rows?sort=latency&dir=up")
    assert down[0] == up[len([t for t in cells(page, 5) if t != "–"]) - 1]
    assert cells(page, 5)[-3:] == ["–", "–", "–"], "what has no number is last both ways"
    button.click()
    assert names(page) == first
    assert heading(page, "latency").get_attribute("aria-sort") is None


def test_change_is_sorted_as_a_number_not_as_a_text(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC)
    heading(page, "change").get_by_role("button").click()
    told = [t for t in cells(page, 3) if t != "–"]
    values = [_percent(t) for t in told]
    assert values == sorted(values, reverse=True)
    assert values[0] > 20
    assert values[-1] < -8


def _percent(text: str) -> float:
    if text == "no change":
        return 0.0
    number = float(text.split("\u00a0")[0])
    return number if text.endswith("slower") else -number


def test_words_verdicts_and_kernels_filter_together(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC)
    assert page.locator("#shown").inner_text() == "96 of 96 variants"
    page.locator("#find").fill("fp16_storage COLUMN")
    assert page.locator("#shown").inner_text() == "24 of 96 variants"
    page.locator("#kernel").select_option("attention_flash")
    assert page.locator("#shown").inner_text() == "12 of 96 variants"
    page.locator("#verdict").select_option("improved")
    assert page.locator("#shown").inner_text() == "0 of 96 variants"
    assert page.locator("#table tbody").inner_text().strip() == "No variant matches."
    page.locator("#reset").click()
    assert page.locator("#shown").inner_text() == "96 of 96 variants"
    page.locator("#verdict").select_option("numerics")
    assert page.locator("#shown").inner_text() == "3 of 96 variants"
    page.locator("#reset").click()
    page.locator("#find").fill("seq=512 api=gles")
    assert page.locator("#shown").inner_text() == "96 of 96 variants", "what names leave out is found, too"


def test_a_link_brings_back_what_was_seen(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC)
    page.locator("#find").fill("column")
    page.locator("#verdict").select_option("improved")
    heading(page, "change").get_by_role("button").click()
    seen, url = names(page), page.url
    page.goto("about:blank")
    page.goto(url)
    assert names(page) == seen
    assert len(seen) == 10
    assert page.locator("#find").input_value() == "column"
    assert page.locator("#verdict").input_value() == "improved"
    assert heading(page, "change").get_attribute("aria-sort") == "descending"
    page.evaluate("location.hash = '#rows?verdict=missing'")
    page.wait_for_function("document.querySelector('#shown').textContent === '3 of 96 variants'")
    page.evaluate("location.hash = '#rows?verdict=nonsense&sort=__proto__&page=-4&q=%00'")
    page.wait_for_function("document.querySelector('#verdict').value === ''")


def test_counts_of_the_head_filter_the_table(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC)
    page.locator("dl.counts a", has_text="improved").click()
    page.wait_for_function("document.querySelector('#shown').textContent === '10 of 96 variants'")
    assert set(cells(page, 1)) == {"▼\u00a0improved"}


def test_everything_can_be_done_by_keyboard(reader: Reader, changes_report: Path) -> None:
    page = reader.open(changes_report / SOC)
    page.locator("#find").focus()
    page.keyboard.type("column")
    assert page.locator("#shown").inner_text() == "48 of 96 variants"
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.closest('th')?.dataset.key") == "change":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert heading(page, "change").get_attribute("aria-sort") == "descending"
    assert page.evaluate("document.activeElement.closest('th')?.dataset.key") == "change", "focus stays"
    page.keyboard.press("Space")
    assert heading(page, "change").get_attribute("aria-sort") == "ascending"
    link = page.locator("#table tbody a").first
    target = str(link.get_attribute("href"))
    link.focus()
    page.keyboard.press("Enter")
    assert page.url.endswith(target)
    assert page.locator(f"article{target}").is_visible()


@pytest.mark.parametrize("name", PAGES)
def test_both_themes_are_readable(reader: Reader, changes_report: Path, name: str) -> None:
    page = reader.open(changes_report / name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    backgrounds: set[str] = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        found: list[tuple[float, str, str, str]] = page.evaluate(CONTRAST)
        weak = [f"{ratio:.2f} {rest}" for ratio, *rest in found if ratio < 4.5]
        assert weak == [], scheme
    assert len(backgrounds) == 2


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation(reader: Reader, changes_report: Path, name: str) -> None:
    page = reader.open(changes_report / name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.add_style_tag(content="article.finding { content-visibility: visible !important; }")
    page.evaluate(Axe().axe_script)
    assert page.evaluate(VIOLATIONS) == []


def test_top_findings_are_complete_where_a_policy_blocks_all_script(
    browser: Browser, changes_report: Path
) -> None:
    """As behind a server that forbids inline script, such as many a CI system's."""
    html = (changes_report / SOC).read_text("utf-8")
    context = browser.new_context()
    page = context.new_page()
    refused: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        refused.append(message.text)

    def answer(route: Route) -> None:
        policy = {"Content-Security-Policy": "script-src 'none'", "Content-Type": "text/html; charset=utf-8"}
        route.fulfill(body=html, headers=policy)

    page.on("console", on_console)
    page.route("**/*", answer)
    page.goto("http://report.example/page")
    assert any("script-src 'none'" in text for text in refused)
    assert page.locator("#controls").is_hidden()
    assert page.locator("#table tbody tr").count() == 96
    assert page.locator("article.finding").count() == 37
    assert page.locator("article.finding svg.hist").count() == 37
    context.close()


def test_only_the_pages_own_script_runs(browser: Browser, changes_report: Path, tmp_path: Path) -> None:
    html = (changes_report / SOC).read_text("utf-8")
    spoiled = tmp_path / "spoiled.html"
    injected = "<main><script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    spoiled.write_text(html.replace("<main>", injected), "utf-8")
    page = browser.new_page()
    page.goto(spoiled.as_uri())
    assert page.title() != "owned"
    assert page.locator("#controls").is_visible(), "its own one does"
    page.close()


@pytest.mark.parametrize("script", [True, False])
def test_g4_07_hostile_names_and_numbers_are_shown_and_never_run(
    reader: Reader, hostile_changes: Path, script: bool
) -> None:
    paths = [hostile_changes / "index.html", *hostile_changes.glob("changes-*.html")]
    assert len(paths) == 3
    for path in paths:
        page = reader.open(path, script=script)
        page.wait_for_load_state("networkidle")
        text = page.locator("body").inner_text()
        for literal in (
            "<script>alert(1)</script>",
            "</script><script>boom()</script>",
            '<img src=x onerror="alert(2)">',
            "\\u001b[31mred",
            "safe\\u202egnp.exe",
            "{{ 7 * 7 }}",
        ):
            assert literal in text, literal
        assert "\u202e" not in text
        assert not re.search(r"\bnan\b", text)
        assert page.locator("img, iframe, object, embed, form, script:not([type])").count() <= 1
        assert page.locator("svg [d*=nan], svg [y=nan], svg [d*=inf]").count() == 0
        if script and path.name != "index.html":
            page.locator("#find").fill("<img src=x onerror")
            assert page.locator("#shown").inner_text().split(" of ")[0] != "0"
            page.wait_for_load_state("networkidle")


def test_g4_08_ten_thousand_series_are_small_and_all_within_reach(reader: Reader, many_report: Path) -> None:
    path = many_report / SOC
    assert path.stat().st_size < 5_000_000
    page = reader.open(path)
    assert page.locator("#table tbody tr").count() == 100
    assert page.locator("#where").inner_text() == "rows 1 to 100 of 10000"
    page.locator("#next").click()
    assert page.locator("#where").inner_text() == "rows 101 to 200 of 10000"
    assert page.url.endswith("#rows?page=2")
    page.goto(f"{path.as_uri()}#rows?page=100")
    page.reload()
    assert page.locator("#where").inner_text() == "rows 9901 to 10000 of 10000"
    assert page.locator("#next").is_disabled()
    page.locator("#find").fill("64x64 512")
    page.locator("#verdict").select_option("improved")
    assert 0 < int(page.locator("#shown").inner_text().split(" ")[0]) < 100
    data = json.loads(page.locator("#series").evaluate("e => e.textContent"))
    assert len(data["rows"]) == 10_000


def test_pictures_for_people(reader: Reader, changes_report: Path, tmp_path: Path) -> None:
    ways: list[tuple[Scheme, int]] = [("light", 1280), ("dark", 390), ("dark", 1280)]
    for (scheme, width), name in zip(ways, PAGES, strict=True):
        path = tmp_path / f"{name.removesuffix('.html')}-{scheme}-{width}.png"
        reader.open(changes_report / name, width=width, scheme=scheme).screenshot(path=path, full_page=True)
        assert path.stat().st_size > 50_000

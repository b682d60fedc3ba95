"""What a person sees: no script, no network, both themes, narrow screens, the keyboard."""

from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage

from tests.browser.visits import CONTRAST, Reader, Scheme

TEXT_BOXES = """svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text:not(.ax)")].map(t => {
    const b = t.getBoundingClientRect();
    return [b.left - frame.left, b.top - frame.top, b.right - frame.left, b.bottom - frame.top,
            frame.width, frame.height];
  });
}"""
STROKES = """svg => ["dram", "cache", "compute"].map(kind => {
  const style = getComputedStyle(svg.querySelector("path." + kind));
  return style.strokeDasharray + " " + style.strokeWidth;
})"""
API_PAGES = ["soc-NVIDIA-H200.html", "soc-lavapipe.html"]
PAGES = ["index.html", "soc-llvmpipe.html", "soc-SM8650.html"]


def _pages(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.html"))


def test_pages_open_without_network_or_complaint(reader: Reader, report: Path) -> None:
    assert [p.name for p in _pages(report)] == sorted(PAGES)
    for path in _pages(report):
        page = reader.open(path)
        assert page.title()
        page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_verdict_is_what_one_sees_first(reader: Reader, report: Path, name: str, width: int) -> None:
    page = reader.open(report / name, width=width)
    verdict = page.locator("h1").bounding_box()
    counts = page.locator("dl.counts").bounding_box()
    assert verdict is not None
    assert counts is not None
    assert verdict["y"] + verdict["height"] < counts["y"] < 450
    tops = page.locator("h2, table, article").evaluate_all(
        "all => all.map(e => e.getBoundingClientRect().top)"
    )
    assert counts["y"] < min(tops)


def test_no_page_is_wider_than_the_window(
    reader: Reader, report: Path, apis_report: Path, hostile_report: Path
) -> None:
    for path in [*_pages(report), *_pages(apis_report), *_pages(hostile_report)]:
        page = reader.open(path)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{path.name} {width}"


def test_everything_is_there_without_javascript(reader: Reader, report: Path) -> None:
    for path in _pages(report):
        texts = [reader.open(path, script=script).locator("body").inner_text() for script in (True, False)]
        assert texts[0] == texts[1]
    page = reader.open(report / "soc-llvmpipe.html", script=False)
    log = page.locator("article details").first
    assert not log.locator("pre").is_visible()
    log.locator("summary").click()
    assert "undeclared" in log.locator("pre").inner_text()
    page.locator("dl.counts a").first.click()
    assert page.url.endswith("#failures")
    page.get_by_role("link", name="All SoCs").click()
    page.get_by_role("link", name="SM8650").first.click()
    assert page.url.endswith("soc-SM8650.html")


@pytest.mark.parametrize("name", [*PAGES, *API_PAGES])
def test_themes_differ_and_both_are_readable(
    reader: Reader, report: Path, apis_report: Path, name: str
) -> None:
    backgrounds: set[str] = set()
    page = reader.open((apis_report if name in API_PAGES else report) / name)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        found: list[tuple[float, str, str, str]] = page.evaluate(CONTRAST)
        assert len(found) > 100
        weak = [f"{ratio:.2f} {rest}" for ratio, *rest in found if ratio < 4.5]
        assert weak == [], scheme
    assert len(backgrounds) == 2


def test_keyboard_reaches_tables_logs_and_commands(reader: Reader, report: Path) -> None:
    page = reader.open(report / "soc-llvmpipe.html")
    seen: set[str] = set()
    selected = ""
    for _ in range(80):
        page.keyboard.press("Tab")
        focus: dict[str, str] = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            return {tag: e.tagName, role: e.getAttribute("role") || "", outline: s.outlineStyle,
            selected: e.value === undefined ? "" : e.value.slice(e.selectionStart, e.selectionEnd)} }"""
        )
        if focus["tag"] == "BODY":
            break
        assert focus["outline"] == "solid", focus
        seen.add(f"{focus['tag']} {focus['role']}".strip())
        selected = focus["selected"] or selected
    assert {"A", "DIV region", "SUMMARY", "INPUT"} <= seen
    assert selected.startswith("tilefarm run --suite smoke --case ")


def test_wide_tables_scroll_inside_their_own_frame(reader: Reader, report: Path) -> None:
    page = reader.open(report / "soc-llvmpipe.html", width=390)
    frames = page.locator(".scroll").evaluate_all(
        "all => all.map(e => [e.scrollWidth > e.clientWidth, e.tabIndex])"
    )
    assert any(wide for wide, _ in frames)
    assert all(tab == 0 for _, tab in frames)


def test_variants_of_the_widest_kind_fit_a_laptop(
    reader: Reader, report: Path, apis_report: Path, wide_report: Path
) -> None:
    """Nothing scrolls at 1280 px: error and traffic of the main workload are on the screen."""
    for path in [*_pages(report), *_pages(apis_report), *_pages(wide_report)]:
        page = reader.open(path, width=1280)
        too_wide = page.locator(".scroll").evaluate_all(
            """all => all.filter(e => e.scrollWidth > e.clientWidth)
            .map(e => [e.getAttribute("aria-label"), e.scrollWidth, e.clientWidth])"""
        )
        assert too_wide == [], path.name
    page = reader.open(wide_report / "soc-NVIDIA-H200.html", width=1280)
    table = page.locator("table.variants").first
    assert "nondeterministic" in table.inner_text()
    assert "vulkan fp16_storage 128x16 column vector=4 rows=4 native mediump" in " ".join(
        table.inner_text().split()
    )
    heads = table.locator("thead th").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
    assert len(heads) == 12
    assert max(heads) <= 1280


def test_tables_of_the_index_stack_on_a_narrow_screen(reader: Reader, report: Path) -> None:
    """No column is squeezed to a tower of syllables, and nothing scrolls; numbers keep their names."""
    page = reader.open(report / "index.html", width=390)
    for heading in ("not-measured", "socs", "failures"):
        table = page.locator(f"#{heading} + .scroll")
        assert table.evaluate("e => e.scrollWidth <= e.clientWidth"), heading
        cells = table.locator("tbody th, tbody td:not(.n)").evaluate_all(
            "all => all.map(e => { const r = e.getBoundingClientRect(); return [r.width, r.height] })"
        )
        assert len(cells) >= 6
        assert all(width > 195 and height < 120 for width, height in cells), heading
    names = page.locator("#socs + .scroll tbody tr:first-child td.n").evaluate_all(
        "all => all.map(e => getComputedStyle(e, '::after').content)"
    )
    assert len(names) == 7
    assert all("attr" in name or len(name.strip('" ')) >= 5 for name in names), names


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_roofline_is_readable_without_colour(reader: Reader, apis_report: Path, scheme: Scheme) -> None:
    """Lines have names and dashes of their own, names do not overlap and stay inside, marks have a title."""
    page = reader.open(apis_report / "soc-NVIDIA-H200.html", scheme=scheme)
    charts = page.locator("svg.roof")
    assert charts.count() == 2
    for i in range(2):
        chart = charts.nth(i)
        boxes: list[list[float]] = chart.evaluate(TEXT_BOXES)
        assert len(boxes) >= 3
        for left, top, right, bottom, width, height in boxes:
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height
        margin = sorted(b for b in boxes if b[0] > 500)
        tops = sorted(b[1] for b in margin)
        assert all(b - a >= 12 for a, b in pairwise(tops))
        dashes = chart.evaluate(STROKES)
        assert len(set(dashes)) == 3
        assert chart.locator("g title").count() == chart.locator("path.mark").count() > 0


@pytest.mark.parametrize("script", [True, False])
def test_g4_07_hostile_names_are_shown_and_never_run(
    reader: Reader, hostile_report: Path, script: bool
) -> None:
    for path in _pages(hostile_report):
        page = reader.open(path, script=script)
        text = page.locator("body").inner_text()
        for literal in (
            "<script>alert(1)</script>",
            "</script><script>boom()</script>",
            '<img src=x onerror="alert(2)">',
            "\" onfocus=alert(3) autofocus x='",
            "\\u001b[31mred",
            "safe\\u202egnp.exe",
            "{{ 7 * 7 }}",
        ):
            assert literal in text, literal
        assert "\u202e" not in text
        assert page.locator("script, img, iframe, object, embed, form").count() == 0
        page.wait_for_load_state("networkidle")


def test_inline_script_would_be_refused(browser: Browser, report: Path, tmp_path: Path) -> None:
    """The policy is the second fence: a script that got into a page all the same does not run."""
    html = (report / "index.html").read_text("utf-8")
    spoiled = tmp_path / "spoiled.html"
    spoiled.write_text(html.replace("<main>", "<main><script>document.title = 'owned'</script>"), "utf-8")
    page = browser.new_page()
    refused: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        refused.append(message.text)

    page.on("console", on_console)
    page.goto(spoiled.as_uri())
    assert page.title() != "owned"
    assert any("Content Security Policy" in text for text in refused)
    page.close()


def test_print_shows_what_is_folded(reader: Reader, report: Path) -> None:
    page = reader.open(report / "soc-SM8650.html")
    listing = page.locator("details li").first
    assert not listing.is_visible()
    page.emulate_media(media="print")
    assert listing.is_visible()
    assert not page.locator("nav.jump").is_visible()


def test_pictures_for_people(reader: Reader, report: Path, apis_report: Path, tmp_path: Path) -> None:
    """Each page once; both themes and both widths occur."""
    ways: list[tuple[Scheme, int]] = [("light", 1280), ("dark", 390)]
    for number, name in enumerate([*PAGES, *API_PAGES]):
        scheme, width = ways[number % 2]
        path = tmp_path / f"{name.removesuffix('.html')}-{scheme}-{width}.png"
        folder = apis_report if name in API_PAGES else report
        reader.open(folder / name, width=width, scheme=scheme).screenshot(path=path, full_page=True)
        assert path.stat().st_size > 50_000

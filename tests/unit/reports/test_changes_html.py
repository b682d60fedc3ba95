"""Pages of changes as HTML: well formed, alone, every link, id, caption and picture in order."""

import re

import pytest

from reports.build import build_report
from reports.html import render_changes, render_index, render_soc
from reports.text import visible
from tests.results_fixture import TODAY
from tests.unit.reports.hostile import ALL
from tests.unit.reports.hostile_findings import hostile_findings
from tests.unit.reports.pages import Page
from tests.unit.reports.sample_findings import Sample, sample_findings

FILES = ("results.json", "junit.xml", "findings.json")


def rendered(sample: Sample) -> dict[str, str]:
    model = build_report(sample.results, None, TODAY, findings=sample.findings, series=sample.series)
    assert model.changes is not None
    pages = {"index.html": render_index(model)}
    pages |= {s.file_name: render_soc(model, s) for s in model.socs}
    return pages | {s.file_name: render_changes(model, s) for s in model.changes.socs}


SAMPLE, HOSTILE = rendered(sample_findings()), rendered(hostile_findings())
CHANGES = {name: html for name, html in SAMPLE.items() if name.startswith("changes-")}


@pytest.mark.parametrize("html", [*SAMPLE.values(), *HOSTILE.values()])
def test_pages_are_well_formed_and_alone(html: str) -> None:
    page = Page(html)
    assert page.problems == []
    assert page.all("link") == page.all("img") == page.all("iframe") == []
    names = {name for e in page.every() for name in e.attributes}
    assert not {n for n in names if n.startswith("on")} | names & {"src", "srcdoc", "style"}
    for style in page.all("style"):
        assert "url(" not in style.text
        assert "@import" not in style.text


@pytest.mark.parametrize("html", CHANGES.values())
def test_the_only_script_is_the_one_that_the_policy_names(html: str) -> None:
    page = Page(html)
    kinds = [s.attributes.get("type", "") for s in page.all("script")]
    assert kinds == ["application/json", ""]
    policy = next(m for m in page.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy")
    assert re.search(
        r"default-src 'none'; script-src 'sha256-[A-Za-z0-9+/]{43}='; ", policy.attributes["content"]
    )
    assert Page(SAMPLE["index.html"]).all("script") == []


@pytest.mark.parametrize("pages", [SAMPLE, HOSTILE], ids=["sample", "hostile"])
def test_links_lead_somewhere(pages: dict[str, str]) -> None:
    parsed = {name: Page(html) for name, html in pages.items()}
    ids = {
        name: {e.attributes["id"] for e in page.every() if "id" in e.attributes}
        for name, page in parsed.items()
    }
    for name, page in parsed.items():
        for link in page.all("a"):
            target, _, fragment = link.attributes["href"].partition("#")
            if target in FILES or target.endswith(".csv"):
                continue
            assert (target or name) in pages, link.attributes
            fragment = fragment.split("?")[0]
            assert not fragment or fragment in ids[target or name], link.attributes


@pytest.mark.parametrize("html", [*SAMPLE.values(), *HOSTILE.values()])
def test_ids_are_unique_and_tables_and_pictures_are_named(html: str) -> None:
    page = Page(html)
    ids = [e.attributes["id"] for e in page.every() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for table in page.all("table"):
        assert table.all("caption"), table.text[:80]
        assert all(h.attributes.get("scope") in ("col", "row", "rowgroup") for h in table.all("th"))
    for image in (s for s in page.all("svg") if s.attributes.get("role") == "img"):
        assert image.attributes.get("aria-label") or image.all("title")[0].text


@pytest.mark.parametrize("html", CHANGES.values())
def test_the_order_is_verdict_gaps_groups_table_details_phones_method(html: str) -> None:
    page = Page(html)
    assert page.all("h1")[0].text.startswith(page.all("b")[0].text)
    heads = [e.attributes["id"] for e in page.every() if e.tag == "h2"]
    assert heads == ["groups", "rows", "details", "fleet", "method"]
    assert html.index("<h1") < html.index("Not measured or not judged") < html.index('id="groups"')


def test_the_index_tells_of_the_night_before_the_run() -> None:
    page = Page(SAMPLE["index.html"])
    heads = [e.attributes["id"] for e in page.every() if e.tag == "h2"]
    assert heads[:4] == ["groups", "soc-changes", "phones", "own"]
    table = page.by_id("soc-changes")
    assert table.text == "Changes by SoC"
    rows = [r.text for r in page.all("tr") if "▲" in r.text]
    assert len(rows) == 2
    html = SAMPLE["index.html"]
    assert html.index("Not measured or not judged") < html.index('id="groups"')
    assert "release-2.1" in html
    assert "Better than the matrix expects" in html


@pytest.mark.parametrize("html", HOSTILE.values())
def test_g4_07_hostile_texts_are_shown_literally(html: str) -> None:
    page = Page(html)
    for text in ALL:
        assert visible(text) in page.root.text, text
    hidden = "[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufffe\ud800-\udfff]"
    assert not re.search(hidden, html)
    assert not [a for a in page.all("a") if ":" in a.attributes["href"]]


def test_no_shape_is_drawn_at_no_place() -> None:
    for html in HOSTILE.values():
        for element in Page(html).every():
            for name in ("d", "x", "y", "width", "height"):
                assert not re.search("nan|inf", element.attributes.get(name, "")), element.attributes

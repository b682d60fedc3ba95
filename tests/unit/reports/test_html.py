import re
from dataclasses import replace

import pytest

from orchestrator.domain.verdict import Verdict
from reports.build import build_report
from reports.findings import MAX_DETAILED
from reports.html import LogBudget, render_index, render_soc
from reports.model import ReportModel
from reports.text import visible
from tests.results_fixture import (
    TODAY,
    case,
    device,
    elements,
    info,
    numerics,
    passing,
    results,
    timing,
    trial,
)
from tests.unit.reports.hostile import ALL, NASTY, hostile, hostile_previous
from tests.unit.reports.pages import Page
from tests.unit.reports.sample import sample, sample_previous


def _pages(model: ReportModel) -> dict[str, str]:
    return {"index.html": render_index(model)} | {s.file_name: render_soc(model, s) for s in model.socs}


SAMPLE = _pages(build_report(sample(), sample_previous(), TODAY, max_slowdown=1.1))
ALONE = _pages(build_report(sample(), None, TODAY))
HOSTILE = _pages(build_report(hostile(), hostile_previous(), TODAY, max_slowdown=0.5))
EVERY = [*SAMPLE.values(), *ALONE.values(), *HOSTILE.values()]


@pytest.mark.parametrize("html", EVERY)
def test_pages_are_well_formed_and_self_contained(html: str) -> None:
    page = Page(html)
    assert page.problems == []
    assert page.all("script") == page.all("link") == page.all("img") == page.all("iframe") == []
    policy = next(m for m in page.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy")
    rules = policy.attributes["content"].split("; ")
    assert rules[:3] == ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"]
    assert "url(" not in page.all("style")[0].text
    assert "@import" not in page.all("style")[0].text
    names = {name for e in page.every() for name in e.attributes}
    assert not {n for n in names if n.startswith("on")} | names & {"src", "srcdoc", "style"}


@pytest.mark.parametrize("pages", [SAMPLE, ALONE, HOSTILE], ids=["sample", "alone", "hostile"])
def test_links_lead_somewhere(pages: dict[str, str]) -> None:
    parsed = {name: Page(html) for name, html in pages.items()}
    ids = {
        name: {e.attributes["id"] for e in page.every() if "id" in e.attributes}
        for name, page in parsed.items()
    }
    for name, page in parsed.items():
        for link in page.all("a"):
            target, _, fragment = link.attributes["href"].partition("#")
            if target in ("results.json", "junit.xml"):
                continue
            assert (target or name) in pages, link.attributes
            assert not fragment or fragment in ids[target or name], link.attributes


@pytest.mark.parametrize("html", EVERY)
def test_ids_are_unique_and_tables_are_labelled(html: str) -> None:
    page = Page(html)
    ids = [e.attributes["id"] for e in page.every() if "id" in e.attributes]
    assert len(ids) == len(set(ids))
    for table in page.all("table"):
        assert table.all("caption"), table.text[:80]
        assert all(h.attributes.get("scope") in ("col", "row", "rowgroup") for h in table.all("th"))
    for image in (s for s in page.all("svg") if s.attributes.get("role") == "img"):
        assert image.all("title")[0].text
        assert image.all("desc")[0].text


@pytest.mark.parametrize("html", HOSTILE.values())
def test_g4_07_hostile_texts_are_shown_literally(html: str) -> None:
    page = Page(html)
    for text in ALL:
        assert visible(text) in page.root.text, text
    hidden = "[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufffe\ud800-\udfff]"
    assert not re.search(hidden, html)
    assert "49" not in page.all("h1")[0].text
    assert not [a for a in page.all("a") if ":" in a.attributes["href"]]


def test_g4_07_hostile_command_is_copied_whole() -> None:
    page = Page(next(v for k, v in HOSTILE.items() if k != "index.html"))
    commands = [i.attributes["value"] for i in page.all("input")]
    assert commands
    assert all(
        "\\u202e" in c and all(f"{o} $'" in c for o in ("--suite", "--matrix", "--kernels", "--set"))
        for c in commands
    )


def test_verdict_and_counts_come_first() -> None:
    for html in SAMPLE.values():
        page = Page(html)
        order = [e for e in page.every() if e.tag in ("h1", "dl", "h2", "table")]
        assert [e.tag for e in order[:2]] == ["h1", "dl"]
    index = Page(SAMPLE["index.html"])
    assert index.all("h1")[0].text.startswith("6 unexpected failures (2 mismatch")
    assert index.all("h2")[0].attributes["id"] == "not-measured"


def test_index_names_what_was_not_measured_and_why() -> None:
    text = Page(SAMPLE["index.html"]).root.text
    assert "vanished during push (3 attempts)" in text
    assert "phone vanished during push and did not come back in 120 s" in text
    assert "three minutes each on a CPU driver" in text
    assert "6 were pruned before dispatch and 1 refused on the device" in text


def test_g1_24_new_epoch_is_announced_before_anything_else_is_read() -> None:
    html = SAMPLE["index.html"]
    assert html.index("New epoch since the previous run") < html.index('id="not-measured"')
    assert "Android 14 UP1A.1" in Page(html).root.text


def test_expired_and_unused_expectations_are_named() -> None:
    text = Page(SAMPLE["index.html"]).root.text
    assert "Expired on 2026-11-01" in text
    unused = replace(sample(), expectations=[replace(sample().expectations[0], when="seq=4096")])
    assert "Matched nothing" in Page(render_index(build_report(unused, None, TODAY))).root.text
    elsewhere = replace(unused, expectations=[replace(unused.expectations[0], soc="SoC-that-was-not-here")])
    assert "Matched nothing" not in Page(render_index(build_report(elsewhere, None, TODAY))).root.text


def test_changes_are_called_provisional_everywhere() -> None:
    for html in SAMPLE.values():
        page = Page(html)
        headings = [h.text for h in page.all("h2") if "previous run" in h.text or "Slower" in h.text]
        assert headings
        assert all("provisional: two runs only, not a verdict" in h for h in headings)
    assert "No previous run to compare with" in Page(ALONE["index.html"]).root.text


def test_failure_shows_reason_numbers_element_and_command() -> None:
    page = Page(SAMPLE["soc-llvmpipe.html"])
    article = next(a for a in page.all("article") if "guard band damaged; 12 of" in a.text)
    worst = next(r for r in article.all("tr") if r.text.startswith("worst"))
    assert [c.text for c in worst.all("td")] == ["[0, 31, 63]", "1.7", "0.21", "1.49", "2.00e-6", "×745000"]
    assert "Guard band damaged" in article.text
    assert article.all("input")[0].attributes["value"].startswith("tilefarm run --suite smoke --case ")
    unwritten = next(a for a in page.all("article") if "never written" in a.text)
    assert "64 of 2112 elements never written, the first at [0, 17, 0]" in " ".join(unwritten.text.split())
    flaky = next(a for a in page.all("article") if "differ between executions" in a.text)
    assert "×8" in flaky.text
    assert "×3" in flaky.text


def test_g1_14_no_effect_is_one_sentence() -> None:
    text = " ".join(Page(SAMPLE["soc-llvmpipe.html"]).root.text.split())
    assert "NO_EFFECT hint has no effect here: highp and mediump gave the same bits" in text


def test_virtual_phone_is_labelled_wherever_its_times_are() -> None:
    sentence = "its times say nothing about SM8650"
    page = Page(SAMPLE["soc-SM8650.html"])
    assert page.root.text.count(sentence) == 5
    assert SAMPLE["soc-SM8650.html"].index(sentence) < SAMPLE["soc-SM8650.html"].index("<table")
    assert "limits lowered on purpose" in page.root.text
    assert "virtual" in Page(SAMPLE["index.html"]).by_id("socs").text or "virtual" in SAMPLE["index.html"]
    assert sentence not in SAMPLE["soc-llvmpipe.html"]


def test_heatmap_cells_hold_their_number() -> None:
    page = Page(SAMPLE["soc-SM8650.html"])
    maps = [s for s in page.all("svg") if s.attributes.get("class") == "heat"]
    assert len(maps) == 2
    cells = [g for g in maps[0].all("g") if g.all("rect")]
    assert all(g.all("text") for g in cells)
    assert sum("fastest" in t.text for g in cells for t in g.all("text")) == 1
    assert any("pruned" in t.text for g in cells for t in g.all("text"))
    assert any("crashed" in t.text for g in maps[1].all("g") for t in g.all("text"))


def test_slow_cases_are_listed_whatever_their_noise() -> None:
    before = results(trials=[passing(case(), "local-1", timing(10_000_000))], points=[case()])
    after = results(trials=[passing(case(), "local-1", timing(10_300_000))], points=[case()])
    model = build_report(after, before, TODAY, max_slowdown=1.02)
    for html in _pages(model).values():
        assert Page(html).by_id("slower").text.startswith("Slower than the bound (1)")
    assert model.summary.exit_code == 1


def test_unfinished_run_says_so() -> None:
    run = replace(sample(), run=replace(sample().run, finished_at=""))
    assert "The run is not complete" in Page(render_index(build_report(run, None, TODAY))).root.text


def test_no_device_says_so() -> None:
    empty = replace(results(), devices=[])
    assert "No device took part" in Page(render_index(build_report(empty, None, TODAY))).root.text


def test_log_budget_is_shared_by_a_page() -> None:
    budget = LogBudget(10)
    assert [budget.take("x" * n) for n in (6, 5, 4, 1, 0)] == [True, False, True, False, True]


def test_g4_08_two_thousand_rows_with_big_logs_stay_small() -> None:
    points = [
        case(tile=f"{r}x{c}", layout=layout, vector=v, precision=p, seq=512)
        for r in range(8, 33) for c in range(8, 28) for layout in ("row", "column")
        for v, p in ((1, "fp32"), (4, "fp16_storage"))
    ]  # fmt: skip
    log = "error: something about line 12\n" * 6_500
    trials = [
        trial(p, "local-1", Verdict.COMPILE_FAILED, reason="compile: 12 errors", log=f"{i} {log}")
        if i % 2
        else passing(p, "local-1", timing(10_000_000 + i))
        for i, p in enumerate(points)
    ]
    run = results(trials=trials, points=points)
    before = replace(run, trials=[passing(p, "local-1") for p in points])
    model = build_report(run, before, TODAY)
    pages = _pages(model)
    assert len(points) == 2_000
    assert len(log) > 200_000
    for html in pages.values():
        assert len(html.encode()) < 5_000_000
    page = Page(pages["soc-llvmpipe.html"])
    assert len(page.all("article")) == MAX_DETAILED
    assert len(page.by_id("d0-0-variants").text) > 0
    assert "1000 unexpected failures (1000 compile_failed)" in page.all("h1")[0].text
    links = {a.attributes["href"] for a in page.all("a") if a.attributes["href"].startswith("logs/")}
    assert len(links) == MAX_DETAILED
    assert links == model.logs.keys()


def test_many_outputs_and_hashes_are_cut_with_a_note() -> None:
    point = case()
    flaky = replace(numerics(elements(point)), hashes={f"{i:064x}": 1 for i in range(40)})
    run = results(
        trials=[trial(point, "local-1", Verdict.NONDETERMINISTIC, outputs=[flaky])], infos=[info(point)],
        devices=[device()],
    )  # fmt: skip
    assert "and 38 more" in Page(_pages(build_report(run, None, TODAY))["soc-llvmpipe.html"]).root.text


def test_texts_of_any_length_stay_bounded() -> None:
    point = case()
    run = results(trials=[trial(point, "local-1", Verdict.MISMATCH, reason=NASTY * 5_000)], points=[point])
    for html in _pages(build_report(run, None, TODAY)).values():
        assert len(html) < 100_000

"""What people read of both APIs, probes, precision, canary and replays: pages, terminal, Markdown, JUnit."""

import io
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Console

from orchestrator.analysis.outcome import Outcome
from reports.build import build_report
from reports.html import render_index, render_soc
from reports.junit import render_junit
from reports.markdown import render_markdown
from reports.model import DeviceSection
from reports.terminal import print_summary
from tests.results_fixture import TODAY
from tests.unit.reports.pages import Element, Page
from tests.unit.reports.sample import sample
from tests.unit.reports.sample_apis import H200, LAVAPIPE, LLVMPIPE, NARROW, SWIFTSHADER, WIDE, sample_apis

RUN = sample_apis()
MODEL = build_report(RUN, None, TODAY)
INDEX = render_index(MODEL)
HTML = {s.soc: render_soc(MODEL, s) for s in MODEL.socs}


def _section(device_id: str) -> DeviceSection:
    return next(d for s in MODEL.socs for d in s.devices if d.device.device_id == device_id)


def _text(html: str) -> str:
    return " ".join(Page(html).root.text.split())


def _terminal() -> str:
    console = Console(file=io.StringIO(), width=220, force_terminal=False, color_system=None)
    print_summary(MODEL, console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def _table(html: str, caption: str) -> Element:
    return next(t for t in Page(html).all("table") if caption in " ".join(t.all("caption")[0].text.split()))


def _row(table: Element, start: str) -> list[str]:
    row = next(r for r in table.all("tr") if r.all("th") and r.all("th")[0].text.startswith(start))
    return [" ".join(c.text.split()) for c in row.all("td")]


@pytest.mark.parametrize("html", [INDEX, *HTML.values()])
def test_pages_are_well_formed(html: str) -> None:
    page = Page(html)
    assert page.problems == []
    assert page.all("script") == []
    ids = [e.attributes["id"] for e in page.every() if "id" in e.attributes]
    assert len(ids) == len(set(ids))


def test_drivers_of_one_machine_are_called_so() -> None:
    sentence = (
        "llvmpipe, lavapipe and SwiftShader are separate drivers of this machine's processor "
        "(cpu@buildhost); trials on it are serialised"
    )
    for html in (INDEX, HTML["llvmpipe"], HTML["lavapipe"], HTML["SwiftShader"]):
        assert sentence in _text(html)
    assert sentence not in _text(HTML["NVIDIA-H200"])
    assert sentence in " ".join(_terminal().split())
    assert "separate drivers of this machine's processor" in render_markdown(MODEL)


def test_pairs_stand_on_the_gpus_page_and_on_both_drivers_pages() -> None:
    assert [p.names for p in _section(H200).pairs] == ["GLES and Vulkan on NVIDIA H200"]
    assert len(_section(LLVMPIPE).pairs) == 2
    assert len(_section(LAVAPIPE).pairs) == len(_section(SWIFTSHADER).pairs) == 1
    table = _table(HTML["NVIDIA-H200"], "Each row is one point, equal in everything but the API")
    rows = [[" ".join(c.text.split()) for c in r.all("td")] for r in table.all("tr")]
    first = next(r for r in rows if r and r[0] == "fp32 32x16 highp")
    assert first[1].endswith(" gpu")
    assert first[2].endswith(" gpu")
    assert first[3:6] == ["×0.66", "Vulkan", "same"]
    flaky = next(r for r in rows if r and r[0] == "fp32 32x16 mediump")
    assert flaky[1] == "✕ nondeterministic"
    assert flaky[3:6] == ["–", "–", "verdict differs"]
    assert "fastest on GLES tile=64x16" in _text(HTML["NVIDIA-H200"])


def test_pairs_are_one_sentence_elsewhere() -> None:
    sentence = (
        "GLES on llvmpipe and Vulkan on lavapipe: same bits on both APIs in 16 of 20 points; Vulkan faster"
    )
    assert sentence in _text(INDEX)
    assert sentence in _terminal()
    assert sentence.split(";")[0] in render_markdown(MODEL)


def test_every_correct_variant_has_a_place_under_its_ceilings() -> None:
    for section in (_section(H200), _section(LLVMPIPE)):
        rows = [r for t in section.tables for r in t.rows]
        assert all((r.roof is not None) is (r.verdict.value == "pass") for r in rows)
    table = _table(HTML["NVIDIA-H200"], "measured ceilings")
    assert _row(table, "copy 256 MiB, taken as DRAM") == ["4.27 TB/s"]
    svg = next(s for s in Page(HTML["NVIDIA-H200"]).all("svg") if s.attributes.get("class") == "roof")
    assert any(t.text.startswith("DRAM 4.27 TB/s") for t in svg.all("text"))
    assert "4.27 TB/s" in svg.all("desc")[0].text
    assert len([g for g in svg.all("g") if g.all("title")]) == len(_section(H200).rooflines[0].marks)
    variants = _table(HTML["NVIDIA-H200"], "share of the measured ceiling that binds")
    assert any("fp32" in cell for cell in _row(variants, "attention_flash")[7:9])


def test_without_probes_one_sentence_says_so() -> None:
    plain = build_report(sample(), None, TODAY)
    text = _text(render_soc(plain, plain.socs[0]))
    assert "gave no ceiling of gles in this run, so its variants are placed under none" in text
    assert "of ceiling" not in text
    assert "No canary vouched for this device's results" in text
    left_out = replace(sample(), run=replace(sample().run, probes=False))
    model = build_report(left_out, None, TODAY)
    assert "Probes were not run (--no-probes)" in _text(render_soc(model, model.socs[0]))
    assert "left out (--no-probes): no roofline" in _text(render_index(model))


def test_g1_13_precision_is_a_table_and_a_demotion_a_finding_at_the_top() -> None:
    """G1-13: asked fp32, got fp16 is a failure; asked mediump, got fp32 is information."""
    html = HTML["Tensor-G2"]
    table = _table(html, "gles: what was asked for")
    assert _row(table, "highp")[0] == "✕ fp16, less than asked"
    assert _row(table, "mediump")[:3] == ["fp32 more than asked", "23", "3.40e38"]
    assert "mediump runs as fp32 here: no gain to expect" in _text(html)
    first = _section(NARROW).findings[0]
    assert (first.probe, first.outcome) == (True, Outcome.FAILURE)
    assert first.reason.startswith("asked fp32 (highp), got fp16")
    assert html.index("asked fp32 (highp), got fp16") < html.index('id="d5-0-best"')
    assert "Pixel 7: asked fp32 (highp), got fp16; mediump runs as fp32, no gain (gles)" in _terminal()
    assert "mediump runs as fp32 here: no gain to expect (gles, vulkan)" in _text(INDEX)
    assert "mediump runs as fp32 here" in render_markdown(MODEL)


def test_g1_01_g1_02_a_race_shows_counts_box_and_a_rate_per_power_state() -> None:
    """G1-01, G1-02: distinct outputs, wrong runs and box are shown; 0 of 50 and 3 of 50 are never pooled."""
    html = HTML["NVIDIA-H200"]
    article = next(a for a in Page(html).all("article") if "nondeterministic" in a.text)
    text = " ".join(article.text.split())
    assert "4 distinct outputs in 100 executions: 3 unlike the compared one" in text
    assert "all within the box [0, 32, 16] to [0, 63, 47]: 1 × 32 × 32 elements" in text
    table = next(t for t in article.all("table") if "Power state" in t.text)
    assert _row(table, "back to back") == ["50", "0", "0.0 %", "1"]
    assert _row(table, "after a rest") == ["50", "3", "6.0 %", "4"]
    assert "3.0 %" not in text
    assert "Executions hashed in each row: 11 to 100" in _text(html)


def test_canary_shows_its_range_and_what_did_not_count_comes_first() -> None:
    table = _table(HTML["Tensor-G2"], "A tiny case with a known answer")
    vulkan = _row(table, "vulkan")
    assert vulkan[:2] == ["200 µs", "×4.00"]
    assert vulkan[-1] == "3"
    infra = MODEL.findings(Outcome.INFRA)
    assert [f.uncounted for f in infra] == [True, True, True, False, False]
    assert [f.reason for f in _section(NARROW).of(Outcome.INFRA)][-1] == "vanished"
    assert "Not counted: Pixel 7: 3 cases: canary took" in _text(INDEX)
    assert "not counted on Pixel 7: 3 cases" in _terminal()
    assert "- not counted on `Pixel 7`: `3 cases`: canary took" in render_markdown(MODEL)


def test_g1_07_failures_are_grouped_by_subgroup_size() -> None:
    """G1-07: measured on each device, 128 and 16 among them."""
    sentence = "attention_flash: 2 of 39 fail at subgroup 128, 1 of 40 at 32"
    for text in (_text(INDEX), _terminal(), render_markdown(MODEL).replace("\\", "")):
        assert sentence in text


def test_a_wrong_probe_comes_before_wrong_variants() -> None:
    failed = _section(WIDE).of(Outcome.FAILURE)
    assert [(f.probe, f.kernel) for f in failed] == [
        (True, "copy"), (False, "attention_flash"), (False, "attention_flash"),
    ]  # fmt: skip
    reached = [b.nbytes for c in _section(WIDE).rooflines for b in c.ceilings.bandwidths if c.api == "gles"]
    assert len(reached) == 3


def test_probes_are_in_no_table_list_or_map_of_variants() -> None:
    probes = {c for c, i in RUN.cases.items() if i.role == "probe"}
    for soc in MODEL.socs:
        for d in soc.devices:
            assert not probes & {r.case_id for t in d.tables for r in t.rows}
            assert not probes & {c for g in d.pruned for c in g.case_ids}
            assert all(b.kernel == "attention_flash" for g in d.best for b in g.rows)
            assert all(g.kernel == "attention_flash" for g in d.grids)
            assert not {p.case.kernel for t in d.pairs for p in t.pairs} - {"attention_flash"}
    assert [(u.label, u.why) for u in _section(SWIFTSHADER).unprobed] == [
        ("precision_probe vulkan fp16", "lacks float16"), ("fma vulkan fp16 highp 1024", "lacks float16"),
    ]  # fmt: skip
    assert "2 probes that this device cannot run" in _text(HTML["SwiftShader"])


def test_counts_agree_in_all_outputs() -> None:
    counts = MODEL.summary.counts
    assert counts.planned == len(RUN.trials) + len(RUN.pruned)
    assert sum(s.counts.planned for s in MODEL.socs) == counts.planned
    assert counts.failed == len(MODEL.findings(Outcome.FAILURE)) == 5
    root = ET.fromstring(render_junit(MODEL, RUN))
    assert int(root.get("tests", "")) == counts.planned
    assert int(root.get("failures", "")) == counts.failed
    assert int(root.get("errors", "")) == counts.not_obtained
    assert (
        sum(int(suite.get("skipped", "")) for suite in root)
        == counts.known + counts.unsupported + counts.pruned + counts.probes_unsupported
    )
    assert f"{counts.probes} of {counts.all_probes} probes" in render_markdown(MODEL)
    assert f"{counts.probes} of {counts.all_probes} probes" in _terminal()
    dl = {d.all("dt")[0].text: d.all("dd")[0].text for d in Page(INDEX).all("dl")[0].all("div")}
    assert dl["failed"] == str(counts.failed)
    assert dl["passed"] == str(counts.passed)
    assert dl["probes passed"] == str(counts.probes)
    assert MODEL.summary.exit_code == 1


def test_junit_holds_the_probe_that_failed() -> None:
    root = ET.fromstring(render_junit(MODEL, RUN))
    failures = [f.get("message") or "" for f in root.iter("failure")]
    assert any(m.startswith("asked fp32 (highp), got fp16") for m in failures)
    said = " ".join(out.text or "" for out in root.iter("system-out"))
    assert said.count("role=probe") == sum(t.probe for t in MODEL.trials)


def test_a_slower_probe_is_in_no_list_of_changes() -> None:
    before = replace(RUN, run=replace(RUN.run, run_id="20261130-010000-c3d4"))
    slower = [
        replace(t, timing=replace(t.timing, wall_ns=[n // 4 for n in t.timing.wall_ns]))
        if t.timing is not None and RUN.cases[t.case_id].role == "probe"
        else t
        for t in before.trials
    ]
    model = build_report(RUN, replace(before, trials=slower), TODAY, max_slowdown=1.05)
    assert model.slow == ()
    kernels = {RUN.cases[c.case_id].case.kernel for s in model.socs for d in s.devices for c in d.changes}
    assert kernels == {"attention_flash"}


def test_facts_of_both_profiles_are_shown() -> None:
    facts = _table(HTML["NVIDIA-H200"], "vulkan")
    vulkan = next(
        t for t in Page(HTML["NVIDIA-H200"]).all("table")
        if t.attributes.get("class") == "facts" and t.all("caption")[0].text.strip() == "vulkan"
    )  # fmt: skip
    assert facts is not None
    assert _row(vulkan, "Adapter") == ["13-NVIDIA (discrete)"]
    assert _row(vulkan, "Driver")[0].startswith("id 13, name NVIDIA, info Mesa 22.3.6")
    assert _row(vulkan, "Subgroup size") == ["advertised 32, measured 32"]
    assert "float16" in _row(vulkan, "Features that ran")[0]
    assert _row(vulkan, "Advertised, and failed when tried") == [
        "cooperative_matrix: probe shader: device lost"
    ]
    assert _row(vulkan, "Advertised only, never tried") == ["io16"]
    swift = HTML["SwiftShader"]
    assert (
        "float16, storage16"
        in _row(
            next(t for t in Page(swift).all("table") if "Features that it lacks" in t.text),
            "Features that it",
        )[0]
    )


def test_a_subgroup_size_that_lies_is_pointed_out() -> None:
    liar = RUN.devices[0]
    vulkan = replace(
        liar.profiles[1], subgroup=replace(liar.profiles[1].subgroup, measured=16, min=16, max=64)
    )
    run = replace(RUN, devices=[replace(liar, profiles=[liar.profiles[0], vulkan]), *RUN.devices[1:]])
    model = build_report(run, None, TODAY)
    text = _text(render_soc(model, model.socs[0]))
    assert "a shader may ask for 16 to 64 advertised and measured differ" in text

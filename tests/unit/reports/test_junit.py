import io
import xml.etree.ElementTree as ET

from reports.build import build_report
from reports.junit import render_junit
from reports.text import visible
from tests.results_fixture import TODAY
from tests.unit.reports.hostile import NASTY, hostile, hostile_previous
from tests.unit.reports.sample import sample, sample_previous


def _parse(text: str) -> ET.Element:
    """Strictly: anything that is not well-formed raises."""
    tree: ET.ElementTree[ET.Element] = ET.ElementTree(file=io.BytesIO(text.encode("utf-8")))
    return tree.getroot()


def _sample(bound: float | None = None) -> ET.Element:
    model = build_report(sample(), sample_previous(), TODAY, max_slowdown=bound)
    return _parse(render_junit(model, sample()))


def _cases(root: ET.Element, tag: str) -> list[ET.Element]:
    return [e for case in root.iter("testcase") for e in case.findall(tag)]


def test_one_suite_a_device_with_its_totals() -> None:
    root = _sample()
    assert [s.get("name") for s in root] == [
        "llvmpipe / llvmpipe (LLVM 15.0.6, 256 bits)",
        "SM8650 / Galaxy S24 Ultra (virtual)",
    ]
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(name) == str(sum(c.find(tag) is not None for c in cases))
    for name in ("tests", "failures", "errors", "skipped"):
        assert root.get(name) == str(sum(int(s.get(name, "")) for s in root))
    assert root.get("failures") == "6"


def test_every_planned_point_is_one_case() -> None:
    run = sample()
    assert len(list(_sample().iter("testcase"))) == len(run.trials) + len(run.pruned) + len(run.missing)


def test_shape_of_the_schema() -> None:
    """Attributes and child order that Jenkins' and GitLab's readers rely on."""
    for case in _sample().iter("testcase"):
        assert case.get("name")
        assert case.get("classname")
        assert float(case.get("time", "")) >= 0
        tags = [c.tag for c in case]
        assert set(tags) <= {"properties", "failure", "error", "skipped", "system-out", "system-err"}
        assert sum(t in ("failure", "error", "skipped") for t in tags) <= 1
        assert tags == sorted(
            tags, key=["properties", "failure", "error", "skipped", "system-out", "system-err"].index
        )


def test_failures_carry_verdict_reason_and_command() -> None:
    failures = _cases(_sample(), "failure")
    assert sorted({f.get("type") or "" for f in failures}) == [
        "compile_failed", "crashed", "hung", "mismatch", "nondeterministic",
    ]  # fmt: skip
    assert all("repeat: tilefarm run --suite smoke --case " in (f.text or "") for f in failures)


def test_infrastructure_is_an_error_and_never_a_failure() -> None:
    assert [e.get("type") for e in _cases(_sample(), "error")] == ["infra", "missing"]


def test_refused_pruned_and_known_are_skipped_with_their_reason() -> None:
    messages = [s.get("message") or "" for s in _cases(_sample(), "skipped")]
    assert sum("unsupported: shared_bytes" in m for m in messages) == 6
    assert sum(m == "unsupported: invocations 1024 > 512" for m in messages) == 1
    assert sum(m.startswith("known mismatch: ") and "owner kernels" in m for m in messages) == 2


def test_unexpected_pass_passes_and_says_so() -> None:
    notes = [e.text or "" for e in _cases(_sample(), "system-out")]
    assert len(notes) == 2
    assert all(n.startswith("unexpected pass: known failure mismatch no longer occurs") for n in notes)


def test_slower_than_the_bound_is_a_failure() -> None:
    slow = [f for f in _cases(_sample(1.1), "failure") if f.get("type") == "slower"]
    assert slow
    assert all("above the bound" in (f.get("message") or "") for f in slow)


def test_g4_07_hostile_texts_make_well_formed_xml() -> None:
    text = render_junit(build_report(hostile(), hostile_previous(), TODAY, max_slowdown=0.5), hostile())
    root = _parse(text)
    values = [v for e in root.iter() for v in (*e.attrib.values(), e.text or "")]
    assert any(visible(NASTY) in v for v in values)
    assert not any(c in text for c in "\x00\x1b\u202e\ufffe")

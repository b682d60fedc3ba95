import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from orchestrator.domain.finding import Finding, Findings, Group, Triage
from orchestrator.domain.verdict import Verdict
from reports import junit
from reports.build import build_report
from reports.junit import render_junit
from reports.machines import junit_changes
from reports.text import visible
from tests.results_fixture import TODAY, case, passing, results, trial
from tests.unit.reports.hostile import NASTY, hostile, hostile_previous
from tests.unit.reports.junit_grammar import parse
from tests.unit.reports.one_soc import TOGETHER, WHOLE
from tests.unit.reports.sample import sample, sample_previous
from tests.unit.reports.sample_findings import sample_findings
from tests.unit.reports.sample_many import many


def _sample(bound: float | None = None) -> ET.Element:
    model = build_report(sample(), sample_previous(), TODAY, max_slowdown=bound)
    return parse(render_junit(model, sample()))


def _cases(root: ET.Element, tag: str) -> list[ET.Element]:
    return [e for case in root.iter("testcase") for e in case.findall(tag)]


def test_one_suite_a_device_with_its_totals() -> None:
    root = _sample()
    assert [s.get("name") for s in root] == [
        "llvmpipe / llvmpipe (LLVM 15.0.6, 256 bits)",
        "SM8650 / Galaxy S24 Ultra (virtual)",
    ]
    assert root.get("failures") == "6"


def test_every_planned_point_is_one_case() -> None:
    run = sample()
    assert len(list(_sample().iter("testcase"))) == len(run.trials) + len(run.pruned) + len(run.missing)


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
    said = [e.text or "" for e in _cases(_sample(), "system-out")]
    notes = [n for n in said if n.startswith("unexpected pass: known failure mismatch no longer occurs")]
    assert len(notes) == 2
    assert all("outcome=unexpected pass role=op code_hash=" in n for n in notes)


def test_slower_than_the_bound_is_a_failure() -> None:
    slow = [f for f in _cases(_sample(1.1), "failure") if f.get("type") == "slower"]
    assert slow
    assert all("above the bound" in (f.get("message") or "") for f in slow)


def test_g4_07_hostile_texts_make_well_formed_xml() -> None:
    text = render_junit(build_report(hostile(), hostile_previous(), TODAY, max_slowdown=0.5), hostile())
    root = parse(text)
    values = [v for e in root.iter() for v in (*e.attrib.values(), e.text or "")]
    assert any(visible(NASTY) in v for v in values)
    assert not any(c in text for c in "\x00\x1b\u202e\ufffe")


SLOWER = Finding("f1", "speed", "regressed", "SM8650", "c1", cause="code", effect=0.05)


def _changes(found: Findings) -> ET.Element:
    sample = sample_findings()
    model = build_report(sample.results, None, TODAY, findings=found)
    root = parse(render_junit(model, sample.results))
    (suite,) = [s for s in root if s.get("name") == "changes"]
    return suite


def _failed(suite: ET.Element) -> list[str]:
    return [c.get("name") or "" for c in suite if c.find("failure") is not None]


def test_causes_are_test_cases_and_only_what_got_worse_fails() -> None:
    found = sample_findings().findings
    suite = _changes(found)
    texts = {c.get("name") or "": "".join(c.itertext()) for c in suite.iter("testcase")}
    assert _failed(suite)
    assert not [name for name in _failed(suite) if "improved" in name]
    improved = [c for c in suite.iter("testcase") if (c.get("name") or "").startswith("improved: ")]
    assert improved
    assert all("faster" in (c.findtext("system-out") or "") for c in improved)
    acknowledged = [f for f in found.findings if f.triage is not None]
    assert acknowledged
    for finding in acknowledged:
        (name,) = [n for n, text in texts.items() if f"({finding.finding_id}) acknowledged" in text]
        assert name not in _failed(suite)


def test_a_decision_turns_its_test_case_green_and_its_end_red_again() -> None:
    found = sample_findings().findings
    for triage, red in (
        (Triage("acknowledged"), False),
        (Triage("acknowledged", expires="2026-11-30"), True),
        (Triage("accepted"), False),
    ):
        decided = [replace(f, triage=triage) for f in found.findings]
        groups = [g for g in found.groups if g.findings]
        assert bool(_failed(_changes(replace(found, findings=decided, groups=groups)))) is red


def test_what_was_not_judged_is_skipped_with_its_reason() -> None:
    skipped = [s.get("message") or "" for s in _changes(sample_findings().findings).iter("skipped")]
    for word in ("inconclusive: 5 of 7 nights", "missing: not measured tonight", "new: first night"):
        assert any(word in s for s in skipped), word
    assert any(s.startswith("not measured: ") for s in skipped)


def test_names_of_causes_are_the_same_in_the_next_night() -> None:
    """Jenkins and GitLab follow a test by its name."""
    found = sample_findings().findings
    later = replace(
        found,
        groups=[replace(g, sentence="9.9 % slower since 3 Dec", effect=0.09) for g in found.groups],
        findings=[replace(f, effect=f.effect * 1.1) for f in found.findings],
    )
    names = [
        sorted(c.get("name") or "" for c in _changes(f).iter("testcase") if c.find("skipped") is None)
        for f in (found, later)
    ]
    assert names[0] == names[1]


def test_a_soc_that_got_slower_as_a_whole_fails() -> None:
    group = Group("all-S", TOGETHER, "environment", "regressed", "SM8650", findings=["whole"])
    suite = _changes(replace(sample_findings().findings, findings=[WHOLE], groups=[group]))
    assert _failed(suite) == ["regressed: all variants on SM8650 all-S"]


def test_g4_08_a_long_night_stays_a_file_that_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures first and whole, everything counted, and no log beyond the bound."""
    monkeypatch.setattr(junit, "MAX_BAD", 3)
    monkeypatch.setattr(junit, "MAX_CALM", 10)
    monkeypatch.setattr(junit, "MAX_LOGS", 5_000)
    points = [case(tile=f"{n}x8") for n in range(1, 41)]
    bad = [trial(p, "local-1", Verdict.MISMATCH, log="x" * 200_000) for p in points[:8]]
    run = results(trials=[passing(p, "local-1") for p in points[8:]] + bad, points=points)
    text = render_junit(build_report(run, None, TODAY), run)
    (suite,) = parse(text)
    assert (suite.get("tests"), suite.get("failures")) == ("15", "4")
    names = [c.get("name") for c in suite.iter("testcase")]
    assert names[-2:] == ["22 more: passed", "5 more: failure"]
    assert len(text) < 40_000


def test_more_causes_than_a_person_reads_are_one_test_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(junit_changes, "MAX_CARDS", 50)
    infos, found = many(400)
    every = [
        replace(SLOWER, finding_id=f"f{n}", soc="SM8650", case_id=s.case_id)
        for n, s in enumerate(found.series)
    ]
    run = replace(sample_findings().results, cases=infos, trials=[])
    model = build_report(run, None, TODAY, findings=replace(found, findings=every))
    text = render_junit(model, run)
    (suite,) = [s for s in parse(text) if s.get("name") == "changes"]
    assert (suite.get("tests"), suite.get("failures")) == ("52", "51")
    assert "350 smaller groups more, 350 of them worse" in text

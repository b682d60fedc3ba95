"""What a night did not measure stands before its good news, in every output: nights, phones, variants."""

import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from orchestrator.domain.results import Excluded, MissedNight, Missing, Pruned, RunResults
from orchestrator.domain.verdict import Verdict
from reports.build import build_report
from reports.html import render_index
from reports.junit import render_junit
from reports.markdown import render_markdown
from reports.scope import gone
from reports.terminal import one_sided_lines, print_summary
from tests.results_fixture import PREVIOUS_RUN_ID, TODAY, case, passing, results, run_info
from tests.unit.reports.pages import Page

POINT, OTHER, THIRD = case(tile="32x16"), case(tile="8x8"), case(tile="16x16")
MISSED = [
    MissedNight("2026-11-29-nightly", "nobody looked between A and B"),
    MissedNight("2026-11-30-nightly", "matrix.yaml:5: unknown key"),
]
BEFORE = results(
    trials=[passing(p, "local-1") for p in (POINT, OTHER, THIRD)],
    points=[POINT, OTHER, THIRD],
    run=run_info(PREVIOUS_RUN_ID),
)


def night(**changes: object) -> RunResults:
    made = results(trials=[passing(POINT, "local-1")], points=[POINT])
    run = replace(run_info(), night="2026-12-01-nightly", missed_nights=list(MISSED))
    return replace(replace(made, run=run), **changes)


def texts(run: RunResults, before: RunResults | None = None) -> dict[str, str]:
    """Every output as its reader sees it."""
    model = build_report(run, before, TODAY)
    file = io.StringIO()
    print_summary(model, Console(file=file, width=200))
    return {
        "terminal": file.getvalue(),
        "markdown": render_markdown(model).replace("\\", ""),
        "html": " ".join(Page(render_index(model)).root.text.split()),
        "junit": render_junit(model, run),
    }


@pytest.mark.parametrize(
    ("output", "then"), [("terminal", "SoC"), ("markdown", "| passed"), ("html", "One page a SoC")]
)
def test_missed_nights_stand_before_the_good_news(output: str, then: str) -> None:
    first = texts(night())[output].partition(then)[0]
    assert "No unexpected failure" not in first
    assert "2 nights before this one brought no results. 1 of 1 measured trials passed." in first
    for missed in MISSED:
        assert missed.night in first
        assert missed.why in first


def test_a_missed_night_is_an_error_in_junit_and_no_pass() -> None:
    root = ET.fromstring(texts(night())["junit"].partition("\n")[2])
    (suite,) = [s for s in root if s.get("name") == "nights before this one"]
    assert [c.get("name") for c in suite.iter("testcase")] == [m.night for m in MISSED]
    assert [e.get("message") for e in suite.iter("error")] == [m.why for m in MISSED]
    assert (root.get("tests"), root.get("errors")) == ("3", "2")


def test_the_exit_code_is_of_this_night_alone() -> None:
    """Its own results are all there; that the verdict is no plain success is seen all the same."""
    summary = build_report(night(), None, TODAY).summary
    assert (summary.exit_code, summary.bad) == (0, True)
    one = replace(run_info(), missed_nights=MISSED[:1])
    assert (
        "1 night before this one brought no results"
        in build_report(night(run=one), None, TODAY).summary.sentence
    )


def test_a_missing_phone_is_exit_3_and_never_a_pass() -> None:
    why = "took part in run X and is not served now: offline on farm-3"
    found = texts(night(missing=[Missing("adb-r58n-0", "", why)]))
    assert all(why in text for text in found.values())
    assert "1 device did not take part" in found["terminal"]
    assert build_report(night(missing=[Missing("a", "", why)]), None, TODAY).summary.exit_code == 3


@pytest.mark.parametrize("output", ["terminal", "markdown", "html", "junit"])
def test_a_case_that_is_not_measured_any_more_is_told_with_the_reason(output: str) -> None:
    exclude = Excluded("tile=8x8", 1, "takes minutes", "farm", "2027-02-01")
    text = texts(night(excluded=[exclude]), BEFORE)[output]
    assert "excluded in the other run: tile=8x8: takes minutes (owner farm, until 2027-02-01)" in text
    assert "not planned in the other run" in text
    if output != "junit":
        assert f"Measured in run {PREVIOUS_RUN_ID}, not in this one" in text
        assert "Nothing was left out" not in text


def test_what_is_pruned_now_is_one_skipped_point_in_junit() -> None:
    pruned = [Pruned("local-1", p.case_id, Verdict.UNSUPPORTED, ["lacks fp16"]) for p in (OTHER, THIRD)]
    run = replace(night(pruned=pruned), cases=BEFORE.cases)
    assert [g.what for g in gone(build_report(run, BEFORE, TODAY))] == ["2 cases"]
    root = ET.fromstring(texts(run, BEFORE)["junit"].partition("\n")[2])
    assert (root.get("tests"), len(list(root.iter("skipped")))) == ("5", 2)


def test_a_selection_drops_nothing() -> None:
    part = replace(run_info(), selection="tile=32x16")
    assert gone(build_report(night(run=part), BEFORE, TODAY)) == ()
    of_part = replace(BEFORE, run=replace(BEFORE.run, selection="tile=32x16"))
    assert gone(build_report(night(), of_part, TODAY)) == ()


def test_compared_runs_tell_what_only_one_of_them_measured() -> None:
    file = io.StringIO()
    Console(file=file, width=200).print(one_sided_lines(build_report(night(), BEFORE, TODAY)))
    expected = f"Only in {PREVIOUS_RUN_ID}\nlocal-1: 2 cases: not planned in the other run\n"
    assert file.getvalue() == "\n" + expected

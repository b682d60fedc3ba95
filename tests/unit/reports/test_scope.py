"""What a run says about the points that nobody asked it for."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from orchestrator.domain.results import Missing, RunResults
from reports.build import build_report
from reports.html import render_index, render_soc
from reports.markdown import render_markdown
from reports.scope import scope_note
from reports.terminal import print_summary
from tests.results_fixture import TODAY, case, expectation, passing, results, run_info
from tests.unit.reports.pages import Page

NOTE = "A selection of the suite: -k 'tile=8x8 and vector=4' --set vector=1,4"
COMPLETE = "every point of the suite has a result on every device."
PART = replace(run_info(), selection="tile=8x8 and vector=4", overrides=["vector=1,4"])


def _run(**changes: object) -> RunResults:
    made = results(
        trials=[passing(case(), "local-1")], points=[case()], expectations=[expectation("seq=4096")]
    )
    return replace(made, **changes)


def _index(run: RunResults) -> str:
    return " ".join(Page(render_index(build_report(run, None, TODAY))).root.text.split())


def test_a_whole_suite_is_called_complete_and_nothing_else() -> None:
    assert scope_note(run_info()) == ""
    assert COMPLETE in _index(_run())
    assert "selection" not in _index(_run()).split("Method")[0]


def test_a_selection_is_named_first_in_every_output() -> None:
    model = build_report(_run(run=PART), None, TODAY)
    file = io.StringIO()
    print_summary(model, Console(file=file, width=40))
    assert f"\n{NOTE}.\n" in file.getvalue()
    assert file.getvalue().index(NOTE) < file.getvalue().index("SoC")
    assert "\nA selection of the suite: " in render_markdown(model).split("| SoC")[0]
    for html in (render_index(model), render_soc(model, model.socs[0])):
        text = Page(html).root.text
        assert 0 < text.index(NOTE) < text.index("Median" if "Median" in text else "One page a SoC")


def test_a_selection_claims_nothing_about_the_rest() -> None:
    text = _index(_run(run=PART))
    assert "of the suite has a result" not in text
    assert "every point of the selection has a result on every device" in text
    assert "Matched nothing" in _index(_run())
    assert "Matched nothing" not in text


@pytest.mark.parametrize("wanted", [["local"], ["SM8650", "R5CT1"]])
def test_chosen_devices_are_named(wanted: list[str]) -> None:
    text = _index(_run(run=replace(run_info(), wanted=wanted)))
    assert f"Only devices that were asked for: {', '.join(wanted)}." in text
    assert "has a result on every device that was asked for." in text
    assert "Matched nothing" not in text


def test_nothing_measured_is_no_completeness() -> None:
    assert "Nothing was left out" not in _index(replace(_run(), devices=[], trials=[]))


def test_a_run_on_some_phones_of_each_soc_claims_no_more_than_that() -> None:
    shown = _index(_run(run=replace(run_info(), phones_per_soc=2)))
    assert "Each point on 2 phones of each SoC, not on all of them" in shown
    assert COMPLETE not in shown
    assert "every point of the suite has a result on as many phones of each SoC as were asked for" in shown
    assert "Each point on 1 phone of each" in _index(_run(run=replace(run_info(), phones_per_soc=1)))


def test_a_phone_that_a_soc_lacks_did_not_take_part_and_is_named() -> None:
    why = "2 phones of SM8650 wanted, 1 there (phone-a)"
    lacking = _run(missing=[Missing("SM8650 (phone 2 of 2)", "", why)])
    report = build_report(lacking, None, TODAY)
    assert "1 device did not take part" in report.summary.sentence
    assert report.summary.exit_code == 3
    assert why in _index(lacking)
    assert f"missing on `SM8650 (phone 2 of 2)`: `the whole device`: {why}" in render_markdown(report)

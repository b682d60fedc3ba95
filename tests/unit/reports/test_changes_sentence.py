"""A page's first sentence and its bar: never calm above a card that is not."""

from dataclasses import replace

from orchestrator.domain.finding import Triage
from tests.unit.reports.one_soc import DRIFT, TOGETHER, WHOLE, group, page


def test_a_night_in_which_only_the_whole_soc_moved_is_not_called_calm() -> None:
    soc = page([WHOLE], [group(TOGETHER, "whole")])
    assert soc.sentence == f"SM8650: {TOGETHER}; 4 of 4 variants could be judged."
    assert soc.moved


def test_a_phone_as_a_whole_is_told_likewise() -> None:
    said = "all 4 variants on adb-s24-1 since 27 Nov: 12.7 % slower together (this phone alone)"
    soc = page([replace(WHOLE, device_id="adb-s24-1")], [group(said, "whole")])
    assert "12.7 % slower together" in soc.sentence
    assert soc.moved


def test_variants_that_drift_are_counted_in_the_sentence() -> None:
    soc = page(
        [DRIFT], [group("scale on SM8650 since 20 Nov: 1 of 4 variants 2.4 % slower (a slow drift)", "drift")]
    )
    assert soc.sentence == "SM8650: 1 drifting slowly; 4 of 4 variants could be judged."
    assert soc.moved


def test_a_variant_of_one_phone_alone_is_told() -> None:
    soc = page([replace(DRIFT, device_id="adb-s24-1")], [])
    assert soc.sentence == "SM8650: 1 on one phone alone; 4 of 4 variants could be judged."
    assert soc.moved


def test_only_a_page_without_cards_says_that_nothing_was_found() -> None:
    soc = page([], [])
    assert soc.sentence == "SM8650: no change found; 4 of 4 variants could be judged."
    assert not soc.moved


def test_what_is_dealt_with_or_faster_moves_no_bar() -> None:
    known = replace(WHOLE, triage=Triage("acknowledged", "mk"))
    assert not page([known], [group(TOGETHER, "whole")]).moved
    faster = replace(WHOLE, what="improved", effect=-0.03)
    assert not page(
        [faster], [group("all 4 variants on SM8650 since 27 Nov: 3.0 % faster", "whole", what="improved")]
    ).moved


def test_a_soc_that_moved_while_nothing_else_could_be_judged() -> None:
    soc = page([WHOLE], [group(TOGETHER, "whole")], "inconclusive")
    assert soc.sentence == f"SM8650: {TOGETHER}; nothing could be judged: 4 inconclusive of 4 variants."

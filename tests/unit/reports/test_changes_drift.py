"""A slow drift: *same* tonight and not over the weeks; it has a word of its own, a count and a filter."""

import csv
import json

from reports.html import render_changes
from tests.unit.reports.one_soc import CASES, DRIFT, group, night, page, pages
from tests.unit.reports.pages import Page

SENTENCE = "scale on SM8650 since 20 Nov: 1 of 4 variants 2.4 % slower (a slow drift)"
MODEL = night([DRIFT], [group(SENTENCE, "drift")])
SOC = pages(MODEL)["SM8650"]


def test_card_entry_and_count_say_drifting() -> None:
    (card,) = SOC.cards
    assert card.word == card.entries[0].word == "drifting"
    assert (card.title, card.share) == ("scale on SM8650", "1 of 4 variants")
    assert {t.name: t.number for t in SOC.tallies if t.number} == {"drifting": 1, "same": 4}
    assert MODEL.changes is not None
    assert {t.name: t.number for t in MODEL.changes.tallies if t.number} == {"drifting": 1}
    assert "∿\u00a0drifting" in Page(render_changes(MODEL, SOC)).by_id("g1-t").text


def test_its_row_comes_before_the_same_ones_and_says_how_far_it_is() -> None:
    first, *others = SOC.first_rows
    assert (first.series.case_id, first.series.verdict) == (CASES[0], "same")
    assert (first.flags, first.why) == (("drifting",), "2.4 % slower since 20 Nov")
    assert not any(r.flags or r.why for r in others)


def test_the_script_can_filter_it_and_the_csv_has_it() -> None:
    data = json.loads(SOC.data)
    row = data["rows"][0]
    assert data["flags"].index("drifting") == 5
    assert row[9] == 1 << 5
    assert data["whys"][row[10]] == "2.4 % slower since 20 Nov"
    options = [o.attributes["value"] for o in Page(render_changes(MODEL, SOC)).by_id("verdict").all("option")]
    assert options[-1] == "drifting"
    rows = list(csv.DictReader(SOC.csv.splitlines()))
    assert [r["flags"] for r in rows] == ["drifting", "", "", ""]
    assert rows[0]["why"] == "2.4 % slower since 20 Nov"


def test_what_regressed_is_no_drift() -> None:
    moved = page([DRIFT], [group(SENTENCE, "drift")], "regressed")
    assert moved.cards[0].word == "regressed"
    assert moved.tally("drifting") == 0

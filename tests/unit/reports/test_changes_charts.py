"""Charts of changes can be read: two ticks at least, what a line is of, and no column without a number."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.build import build_report
from reports.changes.evidence import nights
from reports.changes.model import Changes
from reports.changes.samples import strips
from reports.changes.words import chance, error_change
from reports.html import render_changes
from reports.svg.history import Line, history_chart
from reports.svg.scale import Scale, around, percent_ticks
from reports.svg.shift import shift_chart
from reports.svg.strip import sensor_range
from tests.results_fixture import TODAY
from tests.unit.reports.one_soc import CASES, WHOLE, group, night, pages
from tests.unit.reports.pages import Page
from tests.unit.reports.sample_findings import Sample, sample_findings
from tests.unit.reports.sample_nights import NIGHTS, PHONES, TONIGHT, rows


def changes_of(sample: Sample) -> Changes:
    model = build_report(sample.results, None, TODAY, findings=sample.findings, series=sample.series)
    assert model.changes is not None
    return model.changes


ENDS = st.floats(-2.0, 2.0)


@given(ENDS, ENDS, st.integers(3, 5))
def test_an_axis_has_two_ticks(a: float, b: float, count: int) -> None:
    scale = Scale(*around([a, b], least=0.05), 0.0, 100.0)
    for ticks in (scale.ticks(count), percent_ticks(scale, count)):
        assert len(ticks) > 1
        assert all(scale.low - 1e-9 <= t <= scale.high + 1e-9 for t in ticks)


@pytest.mark.parametrize("value", [0.0, 0.004, -0.031, 0.04, 0.12])
def test_a_phones_nights_have_two_ticks(value: float) -> None:
    picture = shift_chart("i", "p", NIGHTS, [value * i / 14 for i in range(15)], [], [])
    assert len(re.findall(r'text-anchor="end">[+−±]?[\d.]+ %<', picture)) > 1


@pytest.mark.parametrize("value", [0.0, 0.02, 0.68, 2.5, 10.3])
def test_nmse_that_stays_has_two_ticks_too(value: float) -> None:
    line = Line("p", (*[0.0] * 14, value))
    picture = history_chart("i", "t", NIGHTS, [line], [], TONIGHT, "NMSE")
    assert len(set(re.findall(r'text-anchor="end">(×[\d.e]+)<', picture))) > 1


def test_sensors_say_their_range_in_the_caption() -> None:
    assert sensor_range([35.24, math.nan, 36.4], "°C", 1) == "35.2–36.4 °C"
    assert sensor_range([903.0, 903.2], "MHz", 0) == "903 MHz"
    seen = nights(rows(CASES[0], PHONES[:1], 3e6, lambda _phone, _night: 0.0))
    made = strips("f1", seen, PHONES[0].device_id, TONIGHT, TONIGHT, math.nan, {})
    captions = [chart.caption for _, charts in made for chart in charts]
    assert [re.sub(r"[\d.]+", "N", c) for c in captions[1:3]] == ["GPU clock, N–N MHz", "Temperature, N–N °C"]


def test_samples_that_are_all_the_same_have_two_ticks() -> None:
    found = rows(CASES[0], PHONES[:1], 3e6, lambda _phone, _night: 0.0)
    seen = nights([row | {"samples_ns": [3_000_000] * 20} for row in found])
    ((_, (first, *_)), *_) = strips("f1", seen, PHONES[0].device_id, TONIGHT, TONIGHT, math.nan, {})
    assert len(set(re.findall(r'text-anchor="end">([\d.]+ ms)<', first.picture))) > 1


def test_a_card_of_numerics_draws_nmse_or_nothing() -> None:
    sample = sample_findings()
    with_trials, without = changes_of(sample), changes_of(replace(sample, series={}))
    for changes in (with_trials, without):
        for card in changes.cards:
            numerics = bool(card.entries) and card.entries[0].finding.kind == "numerics"
            if numerics and changes is without:
                assert card.spark is None
            elif card.spark is not None:
                assert card.spark.what == ("NMSE" if numerics else "latency")
                assert ("NMSE" in card.spark.picture) == numerics
    (doubled,) = [c for c in with_trials.cards if c.group.what == "nmse_doubled"]
    assert doubled.spark is not None
    assert re.search(r"NMSE against its baseline, ×0\.\d+ to ×3\.\d+, last ×3\.\d+", doubled.spark.picture)


def test_what_a_whole_soc_did_has_no_column_without_numbers() -> None:
    model = night([WHOLE], [group("all 4 variants on SM8650 since 27 Nov: 3.0 % slower together", "whole")])
    table = next(
        t
        for t in Page(render_changes(model, pages(model)["SM8650"])).all("table")
        if "never pooled" in t.text
    )
    assert [h.text for h in table.all("th") if h.attributes["scope"] == "col"] == ["Phone", "Change"]


def test_no_more_digits_than_say_something() -> None:
    assert chance(3.1e-108, "= ") == "< 1e-9"
    assert chance(0.0, "= ") == "< 1e-9"
    assert chance(0.0031, "= ") == "= 0.0031"
    assert chance(math.nan, "= ") == "= NaN"
    assert error_change(10.273) == "NMSE ×1.9e10"
    assert error_change(0.6848) == "NMSE ×4.84"

"""What pages of changes say: each finding once, by cause, with what it was compared with."""

import json
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.finding import EVERYTHING, DeviceNight, Findings, Group, Triage
from reports.build import build_report
from reports.changes.method import parameters
from reports.changes.model import Card, Changes, Detail, SocChanges
from reports.changes.rows import COLUMNS
from reports.changes.wanted import wanted_trials
from reports.html import render_changes
from tests.results_fixture import TODAY, device, results, run_info
from tests.unit.reports.hostile import BIDI
from tests.unit.reports.hostile_findings import hostile_findings
from tests.unit.reports.sample_findings import Sample, sample_findings
from tests.unit.reports.sample_many import many
from tests.unit.reports.sample_nights import NIGHTS, TONIGHT, noise

SAMPLE = sample_findings()


def changes_of(sample: Sample) -> Changes:
    model = build_report(sample.results, None, TODAY, findings=sample.findings, series=sample.series)
    assert model.changes is not None
    return model.changes


CHANGES = changes_of(SAMPLE)


def page(soc: str, changes: Changes = CHANGES) -> SocChanges:
    return next(s for s in changes.socs if s.soc == soc)


def card(part: str, changes: Changes = CHANGES) -> Card:
    (found,) = [c for c in changes.cards if part in c.sentence]
    return found


def test_every_finding_is_in_one_card_and_on_its_socs_page() -> None:
    wanted = Counter(f.finding_id for f in SAMPLE.findings.findings)
    assert Counter(e.finding.finding_id for e in CHANGES.entries) == wanted
    on_pages = Counter(e.finding.finding_id for s in CHANGES.socs for c in s.cards for e in c.entries)
    assert on_pages == wanted
    assert all(e.finding.soc == s.soc for s in CHANGES.socs for c in s.cards for e in c.entries)


def test_one_cause_on_two_socs_is_one_card_with_an_effect_for_each() -> None:
    both = card("128x32 on 2 SoCs")
    assert [(p.soc, p.count, p.change) for p in both.parts] == [
        ("Tensor-G4", 3, "×2.29 slower"),
        ("SM8650", 1, "6.2 % slower"),
    ]
    assert both.since == "1 Dec"
    assert TONIGHT not in both.sentence
    (here,) = [c for c in page("SM8650").cards if c.anchor == both.anchor]
    assert [p.soc for p in here.parts] == ["Tensor-G4"]
    assert here.change == "6.2 % slower"
    assert len(here.entries) == 1


def test_a_soc_that_moved_as_a_whole_has_the_first_card() -> None:
    first = CHANGES.cards[0]
    assert first.sentence == "all variants of Tensor-G4 together"
    assert first.change == "3.1 % slower"
    assert first.entries == ()
    assert not first.settled
    assert first in page("Tensor-G4").cards
    assert first not in page("SM8650").cards


def test_findings_without_a_group_are_put_together_by_phone_and_by_flag() -> None:
    found = [f for f in SAMPLE.findings.findings if f.cause == "device"]
    others = enumerate(SAMPLE.findings.findings[:4])
    more = [replace(found[0], finding_id=f"d{i}", case_id=f.case_id) for i, f in others]
    flags = [f for f in SAMPLE.findings.findings if f.what == "nmse_doubled"]
    twice = [replace(flags[0], finding_id="other", soc="Tensor-G4")]
    every = replace(SAMPLE.findings, findings=[*found, *more, *flags, *twice], groups=[])
    changes = changes_of(replace(SAMPLE, findings=every))
    assert card("variants on Galaxy S24 (1) alone", changes).sentence.startswith("5 ")
    double = next(c for c in changes.cards if c.group.what == "nmse_doubled")
    assert double.sentence == "attention_flash fp16_storage 64x8 row on 2 SoCs"
    assert [p.soc for p in double.parts] == ["SM8650", "Tensor-G4"]


def test_what_is_dealt_with_comes_last_and_says_by_whom() -> None:
    assert CHANGES.cards[-1].settled
    assert CHANGES.cards[-1].sentence == "attention_flash tile=64x32 on Tensor-G4"
    assert sum(c.settled for c in CHANGES.cards) == 1
    expired = [
        replace(f, triage=Triage("acknowledged", "mk", expires="2026-11-01")) if f.triage else f
        for f in SAMPLE.findings.findings
    ]
    later = changes_of(replace(SAMPLE, findings=replace(SAMPLE.findings, findings=expired)))
    assert not any(c.settled for c in later.cards), "a decision that expired settles nothing"


def test_a_decision_of_the_matrix_settles_too() -> None:
    expected = [replace(f, expected="known to be slow") for f in SAMPLE.findings.findings]
    later = changes_of(replace(SAMPLE, findings=replace(SAMPLE.findings, findings=expected)))
    assert [c.settled for c in later.cards if c.entries] == [True] * (len(later.cards) - 1)


def test_the_oldest_shape_of_groups_is_read() -> None:
    """findings.json of before groups knew of SoCs, nights and effects."""
    old = [
        Group(g.group_id, f"{g.sentence} since {NIGHTS[12]}", g.cause, g.what, "SM8650", findings=g.findings)
        for g in SAMPLE.findings.groups[:2]
    ]
    changes = changes_of(replace(SAMPLE, findings=replace(SAMPLE.findings, groups=old)))
    first = card("all fp16_storage variants", changes)
    assert first.sentence.endswith("since 29 Nov")
    assert first.since == "29 Nov"
    assert first.change == "7.3 % slower"


def detail(what: str, soc: str = "SM8650") -> Detail:
    return next(d for d in page(soc).details if d.entry.finding.what == what)


def test_g4_03_a_finding_names_the_run_it_is_compared_with() -> None:
    found = [d for d in page("SM8650").details if d.entry.finding.kind == "speed"]
    driver = next(d for d in found if d.entry.finding.cause == "driver")
    facts = dict(driver.facts)
    assert facts["Baseline"] == (
        "11 accepted nights, 17 Nov 2026 to 28 Nov 2026; the last one is run 20261128-010000-2828"
    )
    assert facts["Driver and OS"] == "OpenGL ES 3.2 V@0744.9 → OpenGL ES 3.2 V@0762.9"
    assert facts["Code"] == "4be01aa2c3d4e5f6, unchanged"
    assert driver.duel == ""


def test_both_codes_are_measured_in_turns_only_where_the_code_changed() -> None:
    for soc in CHANGES.socs:
        for d in soc.details:
            changed = d.entry.finding.code_before != d.entry.finding.code_after
            assert bool(d.duel) == (changed and d.entry.finding.kind == "speed")
    told = next(d for d in page("Tensor-G4").details if d.duel)
    finding = told.entry.finding
    words = told.duel.split(" ")
    assert words[:4] == ["tilefarm", "duel", finding.baseline[-1], TONIGHT]
    assert words[4:6] == ["--case", finding.case_id]
    assert words[7] in {p.device_id for p in finding.phones}
    assert [t.duel.answer for t in told.duels] == ["different", "unknown"]


def test_charts_are_of_a_phone_whose_trials_are_known() -> None:
    """The history may have given the trials of another phone than the one that shows it most."""
    finding = next(f for f in SAMPLE.findings.findings if f.soc == "Tensor-G4" and len(f.phones) == 2)
    for phone in finding.phones:
        rows = [r for r in SAMPLE.series[finding.finding_id] if r["device_id"] == phone.device_id]
        only = replace(SAMPLE, series={finding.finding_id: rows})
        d = next(d for d in page("Tensor-G4", changes_of(only)).details if d.entry.finding == finding)
        assert len(d.strips) == 2
        assert phone.device_id in d.repro


def test_a_speed_finding_has_every_part() -> None:
    d = next(d for d in page("Tensor-G4").details if d.entry.finding.cause == "code")
    assert d.history is not None
    assert d.strips[0][0].startswith("Before: Pixel 9")
    assert [c.caption for c in d.tiles] == ["before, ms", "after, ms", "change"]
    assert d.roof is not None
    assert any(letter == "A" and "code" in text for letter, _, text in d.events)
    assert any(letter == "×" for letter, _, _ in d.events)
    assert d.repro.startswith("tilefarm run --suite nightly --case ")


def test_a_numerics_finding_has_numbers_and_a_map_of_its_error() -> None:
    d = detail("limit_crossed")
    assert d.errors is not None
    assert "1536 of 32768 elements" in d.errors.note
    assert d.errors.note.endswith("; the worst at [0, 312, 43], the first at [0, 288, 44].")
    assert d.numbers is not None
    assert d.numbers.rows[0][0] == "NMSE"
    flaky = detail("nondeterministic", "Tensor-G4")
    assert flaky.errors is not None
    assert "640 differ between executions" in flaky.errors.note


def test_what_has_no_verdict_is_counted_by_reason() -> None:
    assert page("SM8650").not_judged == (
        "4 variants inconclusive: 5 of 7 nights that a baseline needs",
        "3 variants missing: not measured tonight: the phone was held",
    )


def test_unconfirmed_changes_are_no_alarm_but_are_told() -> None:
    assert [e.finding.finding_id for s in CHANGES.socs for e in s.unconfirmed] == ["unconfirmed"]
    assert "unconfirmed" not in {e.finding.finding_id for e in CHANGES.entries}


def test_parameters_have_units_and_meaning() -> None:
    told = {p.name: p.value for p in CHANGES.parameters}
    assert told["smallest change that matters"] == "2.0 %"
    assert told["accepted nights in a baseline"] == "14"
    assert [p.value for p in parameters({"ceiling_mc": 40_000.0})] == ["40 °C"]
    assert told["false discovery rate"] == "5 %"


def test_detectable_changes_count_every_variant_once() -> None:
    for soc in CHANGES.socs:
        assert sum(s.count for s in soc.sensitivity) == len(soc.rows)
        assert math.isclose(sum(s.share for s in soc.sensitivity), 1.0)


def test_g4_07_nothing_ends_the_script_or_starts_a_formula() -> None:
    changes = changes_of(hostile_findings())
    for soc in changes.socs:
        for closer in ("</", "<script", "<!--", "&"):
            assert closer not in soc.data
        data = json.loads(soc.data)
        assert "NaN" not in soc.data.replace('"NaN', "")
        assert "Infinity" not in soc.data
        assert len(data["rows"]) == len(soc.rows)
        for line in soc.csv.splitlines():
            assert line[:1] not in ("=", "+", "-", "@")
        assert BIDI[4] not in soc.csv
    row = replace(SAMPLE.findings.series[0], case_id="=2+3")
    found = Findings(TONIGHT, "s", [TONIGHT], "x", {}, series=[row])
    assert "'=2+3" in changes_of(replace(SAMPLE, findings=found)).socs[0].csv


def test_the_csv_has_every_row_in_full() -> None:
    soc = page("SM8650")
    lines = soc.csv.splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert len(lines) == len(soc.rows) + 1
    assert "seq=512" in lines[1]
    assert "nan" not in soc.csv.lower()


def test_g4_08_a_month_of_twelve_phones_is_a_small_page_with_all_totals() -> None:
    infos, found = many(600, nights=30)
    phones = [f"p{i}" for i in range(12)]
    runs = [f"202611{d:02d}-010000-{d:04d}" for d in range(1, 31)]
    shifts = {p: [0.01 * noise(p, i) for i in range(30)] for p in phones}
    nights = [DeviceNight(p, "SM8650", shifts[p], [], "same", ["d"] * 30) for p in phones]
    trials: list[dict[str, Any]] = [
        {
            "run_id": run, "device_id": p, "verdict": "pass", "log_ns": 15.0, "driver": "d" * 200_000,
            "samples_ns": [3_200_000] * 20, "code_hash": "c",
        }
        for run in runs for p in phones
    ]  # fmt: skip
    found = replace(found, run_id=runs[-1], nights=runs, devices=nights)
    sample = Sample(
        results(infos=list(infos.values()), devices=[device(p) for p in phones], run=run_info(runs[-1])),
        found,
        {f.finding_id: trials for f in found.findings},
    )
    model = build_report(sample.results, None, TODAY, findings=found, series=sample.series)
    assert model.changes is not None
    (soc,) = model.changes.socs
    assert len(render_changes(model, soc).encode()) < 5_000_000
    assert sum(t.number for t in soc.tallies if t.name in ("regressed", "improved", "same")) == 600


@pytest.mark.parametrize("empty", [Findings(TONIGHT, "", [], "Nothing.", {}), Findings("", "", [], "", {})])
def test_nothing_at_all_is_no_page_and_no_crash(empty: Findings) -> None:
    changes = changes_of(replace(SAMPLE, findings=empty))
    assert changes.socs == ()
    assert changes.cards == ()


def test_trials_are_wanted_of_what_is_read_first_on_every_soc() -> None:
    wanted = wanted_trials(SAMPLE.results, SAMPLE.findings, 10)
    by_id = {f.finding_id: f for f in SAMPLE.findings.findings}
    assert len(wanted) == 10
    assert Counter(by_id[i].soc for i in wanted) == {"SM8650": 5, "Tensor-G4": 5}
    first = {s.soc: [d.entry.finding.finding_id for d in s.details[:5]] for s in CHANGES.socs}
    assert set(wanted) == {i for ids in first.values() for i in ids}
    for finding_id, keys in wanted.items():
        finding = by_id[finding_id]
        assert {device for device, _ in keys} == {p.device_id for p in finding.phones}
        assert {case_id for _, case_id in keys} <= {finding.case_id}


def test_a_finding_of_everything_shows_the_common_shift_and_asks_for_no_single_case() -> None:
    whole = replace(
        next(f for f in SAMPLE.findings.findings if f.soc == "Tensor-G4" and len(f.phones) == 2),
        finding_id="whole", case_id=EVERYTHING, cause="environment", q=1.0, baseline=[], code_after="",
    )  # fmt: skip
    group = replace(SAMPLE.findings.groups[-1], findings=["whole"])
    found = replace(
        SAMPLE.findings,
        findings=[*SAMPLE.findings.findings, whole],
        groups=[*SAMPLE.findings.groups[:-1], group],
    )
    changes = changes_of(replace(SAMPLE, findings=found))
    assert [e.label for e in changes.cards[0].entries] == [EVERYTHING]
    assert changes.cards[0].spark is not None
    (d,) = [d for d in page("Tensor-G4", changes).details if d.entry.finding.case_id == EVERYTHING]
    assert d.history is not None
    assert d.lines == ("Pixel 9 (1)", "Pixel 9 (2)")
    assert d.repro == d.duel == ""
    assert not {"Baseline", "False discovery rate"} & dict(d.facts).keys()
    assert "whole" not in wanted_trials(SAMPLE.results, found, 50)

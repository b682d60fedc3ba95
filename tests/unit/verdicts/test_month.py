"""The verdicts of the example's month against what really happened in it (``example.truth``)."""

from collections.abc import Mapping
from statistics import median

import pytest

from benchmarks.picture import picture
from orchestrator.analysis.numerics import coordinates
from orchestrator.analysis.roofline import ceilings, place
from orchestrator.cli.options import load_inputs
from orchestrator.domain.finding import EVERYTHING, Finding
from orchestrator.domain.verdict import Verdict
from orchestrator.example import matrix_file
from orchestrator.example.month import Month, number_of
from orchestrator.example.truth import CHANGES, MISSED, NIGHTS, Change
from tests.farm import REPOSITORY
from tests.unit.verdicts.month import WHOLE, Night, judged_month

FLAGS = ("nmse_doubled", "limit_crossed", "nondeterministic")
NAMED = {c.name: c for c in CHANGES}


@pytest.fixture(scope="module")
def month() -> Mapping[int, Night]:
    return judged_month(1)


@pytest.mark.parametrize(
    ("name", "sentence", "cause"),
    [
        (
            "new driver slows fp16_storage",
            "precision=fp16_storage on SM8650 since 18 Nov: 12 of 12 variants 5.6 % slower (driver 0744.1)",
            "driver",
        ),
        (
            "flash 64x16 rewritten",
            "tile=64x16 of attention_flash on all 5 SoCs since 22 Nov: 24 of 24 variants 8.1 % slower "
            "(code changed)",
            "code",
        ),
        (
            "products faster",
            "sgemm on all 5 SoCs since 25 Nov: 15 of 15 variants 10.1 % faster (code changed)",
            "code",
        ),
        (
            "blur slower, no key changed",
            "op=blur_tonemap on MT6989 since 27 Nov: 6 of 6 variants 6.2 % slower (same code and software)",
            "environment",
        ),
    ],
)
def test_a_change_of_five_percent_is_one_group_in_its_first_night(
    month: Mapping[int, Night], name: str, sentence: str, cause: str
) -> None:
    change = NAMED[name]
    night = month[change.night]
    (group,) = [g for g in night.findings.groups if g.sentence == sentence]
    assert (group.cause, group.what) == (cause, "regressed" if change.factor > 1 else "improved")
    assert night.told(group) == night.showing(change)
    assert set(group.socs) == {soc for soc, _ in night.showing(change)}
    assert number_of(group.since) == change.night


@pytest.mark.parametrize("change", [c for c in CHANGES if c.name not in WHOLE], ids=lambda c: c.name)
def test_a_change_keeps_its_group_its_cause_and_its_night_until_the_end(
    month: Mapping[int, Night], change: Change
) -> None:
    for night in month.values():
        if night.number < change.night:
            continue
        speed = {f.finding_id for f in night.findings.findings if f.kind == "speed"}
        groups = [g for g in night.findings.groups if speed.issuperset(g.findings)]
        own = [g for g in groups if night.told(g) & night.showing(change)]
        latest = [g for g in own if (number_of(g.since), g.cause) == (change.night, change.cause)]
        assert len(latest) == 1, (night.number, [g.sentence for g in own])
        assert night.told(latest[0]) <= night.showing(change), night.number
        assert len(night.told(latest[0])) >= 0.8 * len(night.showing(change)), night.number


def test_a_soc_that_is_slower_as_a_whole_is_one_finding_within_three_nights(
    month: Mapping[int, Night],
) -> None:
    change = NAMED["everything slower, no key changed"]
    for number in range(change.night + 2, NIGHTS + 1):
        (group,) = [g for g in month[number].findings.groups if g.sentence.startswith("all 50 variants")]
        assert (group.soc, group.cause, group.what, group.named) == (
            "S5E9945",
            "environment",
            "regressed",
            50,
        )
        (finding,) = [f for f in month[number].findings.findings if f.finding_id in group.findings]
        assert (finding.case_id, finding.device_id, len(finding.phones)) == (EVERYTHING, "", 2)
    last = month[NIGHTS].group("all 50 variants on S5E9945 since 20 Nov: 3.9 % slower together")
    assert number_of(last.since) == change.night


def test_a_worn_phone_is_one_item_of_its_health_and_no_finding_of_its_soc(month: Mapping[int, Night]) -> None:
    change = NAMED["one worn phone"]
    for number in range(change.night, NIGHTS + 1):
        night = month[number]
        (group,) = [g for g in night.findings.groups if "sm6375-2" in g.sentence]
        assert (group.cause, group.soc, number_of(group.since)) == ("device", "SM6375", change.night)
        assert night.told(group) == {("SM6375", EVERYTHING)}
        (phone,) = [d for d in night.findings.devices if d.device_id == "sm6375-2"]
        assert phone.verdict == "regressed"
        assert any("all its variants together" in item for item in phone.items)
        assert group.sentence in night.findings.sentence


def test_flags_of_numerics_are_the_truth_in_every_night(month: Mapping[int, Night]) -> None:
    for night in month.values():
        said = {(f.soc, f.case_id, f.what) for f in night.findings.findings if f.what in FLAGS}
        assert said == night.wrong_numbers, night.number
        flagged = [r for r in night.findings.series if set(r.flags) - {"improved"}]
        assert night.findings.counts["numerics"] == len(flagged)


def test_an_output_that_changed_is_news_in_its_first_night_only(month: Mapping[int, Night]) -> None:
    told = {n: sum(f.what == "hash_changed" for f in night.findings.findings) for n, night in month.items()}
    assert {n: count for n, count in told.items() if count} == {22: 24, 24: 5, 25: 15, 29: 1}


def test_wrong_numbers_of_one_cause_are_one_group(month: Mapping[int, Night]) -> None:
    group = month[NIGHTS].group(
        "blur_tonemap_fused precision=fp16_storage on all 5 SoCs since 24 Nov: 5 of 5"
    )
    assert (group.cause, group.what, number_of(group.since)) == ("code", "nmse_doubled", 24)
    race = month[NIGHTS].group("tile=128x16 api=gles of attention_flash on S5E9945 since 28 Nov")
    assert (race.cause, race.what) == ("environment", "nondeterministic")


def test_nothing_is_confirmed_that_did_not_happen(month: Mapping[int, Night]) -> None:
    false = [(n, f.soc, f.case_id) for n, night in month.items() for f in night.false if f.confirmed == "yes"]
    assert false == []


def test_alarms_without_a_cause_stand_only_where_no_second_look_was_paid_for(
    month: Mapping[int, Night],
) -> None:
    """docs/measurements/example.txt has more seeds."""
    false = {n: {f.confirmed for f in night.false} for n, night in month.items() if night.false}
    assert all(words == {"not asked"} for words in false.values())
    assert len(false) <= 2


def test_probes_are_of_every_phone_and_no_variant_is_above_their_roofline() -> None:
    """And the shares of different variants differ: a finding's details show its point under it."""
    inputs = load_inputs(matrix_file(), None)
    tonight = Month(inputs.matrix, inputs.kernels, 1).night(NIGHTS)
    for device in tonight.devices:
        found = ceilings(tonight.trials, tonight.cases, device.device_id)
        shares: list[float] = []
        for trial in tonight.trials:
            info = tonight.cases[trial.case_id]
            if trial.device_id == device.device_id and info.role == "op" and trial.timing is not None:
                point = place(found, info.cost, info.case, median(trial.timing.gpu_ns))
                assert point is not None
                assert point.note == ""
                shares.append(point.share)
        assert 0.05 < min(shares) < 0.5 < max(shares) < 1


def test_an_output_that_is_wrong_has_other_bits_and_errors_that_go_together() -> None:
    """Half a tile: its NMSE says that it is wrong, and so do ULPs and its hash."""
    inputs = load_inputs(matrix_file(), None)
    month = Month(inputs.matrix, inputs.kernels, 1)
    wrong = [t for t in month.night(29).trials if t.verdict is Verdict.MISMATCH]
    assert {t.device_id for t in wrong} == {"tensor-g3-1", "tensor-g3-9"}
    for now in wrong:
        before = next(
            t for t in month.night(28).trials if (t.device_id, t.case_id) == (now.device_id, now.case_id)
        )
        (bad,), (good,) = now.outputs, before.outputs
        assert bad.hash != good.hash
        assert bad.ulp_max > 1e6 > good.ulp_max
        assert bad.worst is not None
        assert bad.first_bad is not None
        assert bad.max_abs == pytest.approx(bad.worst.got - bad.worst.ref)
        shape = month.info(now.case_id, 29).output_shape["o"]
        assert coordinates(bad.first_bad.index, shape) == (1, 320, 0)
        assert coordinates(bad.worst.index, shape) == (1, 351, 22)


def test_an_answer_is_handed_on_for_as_long_as_its_finding_is_told(month: Mapping[int, Night]) -> None:
    """With its figures and its night; a finding that says "known" was told in an earlier night."""
    handed = 0
    told: dict[str, dict[int, Finding]] = {}
    for night in month.values():
        for finding in night.findings.findings:
            before = told.setdefault(finding.finding_id, {})
            if finding.confirmed_in:
                asked = before[number_of(finding.confirmed_in)]
                assert (asked.confirmed, asked.confirmed_in) == (finding.confirmed, "")
                assert asked.duels == finding.duels
                handed += 1
            if finding.not_asked == "known":
                assert number_of(finding.known_since) in before
            before[night.number] = finding
    assert handed > 20
    last = {f.not_asked for f in month[NIGHTS].findings.findings if f.confirmed == "not asked"}
    assert last == {"known", "numerics", "whole", "drift"}


def test_a_level_that_moved_is_never_part_of_a_baseline(month: Mapping[int, Night]) -> None:
    for night in month.values():
        for finding in night.findings.findings:
            case = night.cases.get(finding.case_id)
            if finding.kind != "speed" or case is None or finding.device_id:
                continue
            for change in CHANGES:
                if change.name not in WHOLE and change.holds(night.number, finding.soc, "", case):
                    assert max(map(number_of, finding.baseline)) < change.night, (
                        night.number,
                        finding.detail,
                    )


def test_a_swapped_phone_begins_anew_and_is_told(month: Mapping[int, Night]) -> None:
    (new,) = [d for d in month[16].findings.devices if d.device_id == "tensor-g3-9"]
    assert new.verdict == "new"
    assert new.items == ["in the place of tensor-g3-2 since 15 Nov: another phone, so its series began anew"]
    assert any(
        s.startswith("tensor-g3-9: in the place of tensor-g3-2") for s in month[16].findings.not_measured
    )
    assert not any("tensor-g3" in s for s in month[30].findings.not_measured)
    for night in month.values():
        assert not any(f.device_id == "tensor-g3-9" for f in night.findings.findings)


def test_nights_and_phones_that_are_missing_are_said_and_break_no_baseline(
    month: Mapping[int, Night],
) -> None:
    assert sorted(set(range(1, NIGHTS + 1)) - set(month)) == list(MISSED)
    assert month[11].findings.not_measured == [
        "night 2026-11-09-nightly: the host was off",
        "night 2026-11-10-nightly: the host was off",
    ]
    assert month[11].findings.counts["same"] == 245
    assert month[29].findings.not_measured == ["mt6989-3: offline on shelf-2: not in adb's list"]
    (gone,) = [d for d in month[29].findings.devices if d.device_id == "mt6989-3"]
    assert (gone.verdict, gone.items) == ("missing", ["not measured since 27 Nov"])


def test_a_drift_that_single_nights_do_not_confirm_is_found_by_the_weekly_scan(
    month: Mapping[int, Night],
) -> None:
    scale = {i for i, case in month[NIGHTS].cases.items() if case.kernel == "scale"}
    for night in month.values():
        own = [f for f in night.findings.findings if f.soc == "MT6989" and f.case_id in scale]
        assert sum(f.confirmed == "yes" for f in own) <= (night.number == NIGHTS), (
            "one, and by then it is 3 %"
        )
    group = month[NIGHTS].group("scale on MT6989 since")
    assert group.sentence.endswith("(a slow drift)")
    assert (group.cause, group.what) == ("environment", "regressed")
    assert {case_id for _, case_id in month[NIGHTS].told(group)} <= scale
    assert len(group.findings) >= 4
    assert 0.02 < group.effect < 0.035
    scanned = [n for n, night in month.items() if night.findings.counts["drifts"]]
    assert set(scanned) <= {2, 11, 16, 23, 30}, "the first nights of their weeks"


def test_the_picture_of_the_readme_is_of_this_month(month: Mapping[int, Night]) -> None:
    """Draw it again with the commands of benchmarks/picture.py."""
    assert (REPOSITORY / "docs" / "example.svg").read_text() == picture(month[NIGHTS].findings)

"""The plan: what runs where, what was dropped and why, how long it should take."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain import wire
from orchestrator.domain.errors import UsageError
from orchestrator.domain.results import RunInfo, RunResults
from orchestrator.domain.trial import Timing, Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.matrix import Matrix
from orchestrator.planning.plan import Plan, build_plan
from tests.unit.planning.toy import KERNELS, PHONE_LIMITS, device, load, profile

TEXT = """\
    version: 1
    suites:
      s:
        repeats: 4
        warmup: 1
        replays: 1
        budget: {minutes: 1}
        blocks:
          - kernel: attention_toy
            workloads: [{seq: [64, 128]}, {seq: 64, heads: 3, kv_heads: 2}]
            axes: {tile: [8x8, 128x16]}
          - kernel: copy_probe
    excludes:
      - {when: seq=128 and tile=8x8, reason: slow, owner: kernels, expires: 2027-01-01}
    expectations:
      - {when: tile=8x8, verdict: hung, soc: "*", driver: "*", reason: r, owner: o, expires: 2027-01-01}
    """
ROOMY = device("desk", profile(limits=PHONE_LIMITS | {"shared_bytes": 49_152}))
PHONE = device("phone", profile(), soc="SM8650", transport="adb", resource="phone")


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    return load(tmp_path, TEXT)


def labels(plan: Plan, device_id: str) -> list[str]:
    (found,) = [d for d in plan.devices if d.device.device_id == device_id]
    return [f"{c.case.kernel} {c.case.workload.get('seq')} {c.case.axes.get('tile')}" for c in found.cases]


def test_what_runs_where_and_why_not(matrix: Matrix):
    plan = build_plan(matrix, "s", KERNELS, [ROOMY, PHONE])
    assert labels(plan, "desk") == [
        "attention_toy 64 8x8",
        "attention_toy 64 128x16",
        "attention_toy 128 128x16",
        "copy_probe None None",
    ]
    assert labels(plan, "phone") == ["attention_toy 64 8x8", "copy_probe None None"]
    assert plan.trials == 6
    reasons = [(p.device_id, p.verdict.value, *p.reasons) for p in plan.pruned]
    invalid = ("invalid", "kv_heads 2 does not divide heads 3")
    small = ("unsupported", "shared_bytes 40960 > 16384")
    assert reasons == [
        *[("desk", *invalid)] * 2,
        *[("phone", *small)] * 2,
        *[("phone", *invalid)] * 2,
    ]
    assert [(e.when, e.count, e.reason) for e in plan.excluded] == [("seq=128 and tile=8x8", 1, "slow")]
    assert [e.when for e in plan.expectations] == ["tile=8x8"]


def test_every_point_is_planned_or_pruned_on_every_device_exactly_once(matrix: Matrix):
    plan = build_plan(matrix, "s", KERNELS, [ROOMY, PHONE])
    for planned in plan.devices:
        ran = [c.case_id for c in planned.cases]
        dropped = [p.case_id for p in plan.pruned if p.device_id == planned.device.device_id]
        assert sorted(ran + dropped) == sorted(plan.cases)
    assert all(case.case_id == case_id for case_id, case in plan.cases.items())


def test_selection_and_overrides(matrix: Matrix):
    plan = build_plan(
        matrix,
        "s",
        KERNELS,
        [ROOMY],
        selection="attention_toy and tile=16x16",
        overrides=["tile=16x16", "seq=9"],
    )
    assert [c.workload["seq"] for c in plan.cases.values()] == [9, 9]
    assert plan.suite.blocks[0].axes["tile"] == ("16x16",)
    assert plan.excluded == []


def test_notes_of_overrides_are_warnings(matrix: Matrix):
    plan = build_plan(matrix, "s", KERNELS, [ROOMY], overrides=["vector=4"])
    assert plan.warnings == ["--set vector: copy_probe does not take 4; block left out (suites.s.blocks.1)"]


def test_nothing_selected_is_a_usage_error(matrix: Matrix):
    with pytest.raises(UsageError, match=r'suite s has no case that -k "seq>1000" selects'):
        build_plan(matrix, "s", KERNELS, [ROOMY], selection="seq>1000")


def test_a_wrong_selection_is_a_usage_error(matrix: Matrix):
    with pytest.raises(UsageError, match=r'unknown axis "tyle"\. Did you mean "tile"'):
        build_plan(matrix, "s", KERNELS, [ROOMY], selection="tyle=8x8")


def test_all_that_was_selected_is_excluded_is_no_error(matrix: Matrix):
    plan = build_plan(matrix, "s", KERNELS, [ROOMY], selection="seq=128 and tile=8x8")
    assert (plan.trials, plan.excluded[0].count) == (0, 1)


def test_a_device_that_can_run_nothing_is_reported(matrix: Matrix):
    bare = device("bare", profile(api="vulkan"))
    plan = build_plan(matrix, "s", KERNELS, [bare], selection="copy_probe")
    assert plan.warnings == ["suite s: bare: nothing can run there; see the pruned points"]
    assert [p.reasons for p in plan.pruned] == [["lacks api gles"]]


def trial(device_id: str, case_id: str, *, wall_ms: float, verdict: Verdict = Verdict.PASS) -> Trial:
    wall_ns = int(wall_ms * 1e6)
    timing = Timing([100_000_000], 2 * wall_ns, [wall_ns, 9 * wall_ns, wall_ns // 2], [], "absent")
    return Trial("r", device_id, case_id, 1, verdict, "", "h", "2026-12-01T00:00:00Z", 1_500, timing=timing)


def results(*trials: Trial) -> RunResults:
    info = RunInfo("r", "s", "2026-12-01T00:00:00Z", "0", "host", "tilefarm run")
    return RunResults(info, [ROOMY, PHONE], {}, list(trials))


def test_times_come_from_history_where_there_is_any(matrix: Matrix):
    guessed = build_plan(matrix, "s", KERNELS, [ROOMY])
    assert guessed.devices[0].guessed == 4
    first, second, third, probe = (c.case_id for c in guessed.devices[0].cases)
    history = results(
        trial("desk", first, wall_ms=100),
        trial("phone", second, wall_ms=10),
        replace(trial("desk", third, wall_ms=1), timing=None),
        trial("desk", probe, wall_ms=1, verdict=Verdict.INFRA),
    )
    plan = build_plan(matrix, "s", KERNELS, [ROOMY], history=history)
    times = {c.case_id: c.estimate for c in plan.devices[0].cases}
    assert times[first].basis == "device"
    assert times[first].seconds == pytest.approx(0.05 + 0.1 + 0.2 + 6 * 0.1, abs=2e-3), "and its comparison"
    assert times[third].seconds == pytest.approx(1.5), "without timing, the trial's own duration"
    assert times[second].basis == "guess", "measured on another SoC"
    assert times[probe].basis == "guess", "a failed host says nothing"
    assert plan.devices[0].guessed == 2


def test_a_phone_of_the_same_soc_lends_its_times(matrix: Matrix):
    twin = device("twin", profile(), soc="SM8650", transport="adb", resource="twin")
    first = build_plan(matrix, "s", KERNELS, [PHONE]).devices[0].cases[0].case_id
    plan = build_plan(matrix, "s", KERNELS, [twin], history=results(trial("phone", first, wall_ms=7)))
    assert plan.devices[0].cases[0].estimate.basis == "soc"


def test_devices_of_one_resource_run_one_after_another(matrix: Matrix):
    one = device("one", profile())
    shared = build_plan(matrix, "s", KERNELS, [one, replace(one, device_id="two")])
    apart = build_plan(matrix, "s", KERNELS, [one, replace(one, device_id="two", resource="other")])
    assert shared.seconds == pytest.approx(2 * apart.seconds)
    assert apart.seconds == pytest.approx(apart.devices[0].seconds)


def test_over_budget_is_said_and_nothing_is_dropped(matrix: Matrix):
    first = build_plan(matrix, "s", KERNELS, [ROOMY]).devices[0].cases[0].case_id
    slow = results(trial("desk", first, wall_ms=20_000))
    plan = build_plan(matrix, "s", KERNELS, [ROOMY], history=slow)
    (warning,) = plan.warnings
    assert warning.startswith("suite s: desk: planned 16")
    assert "(3 of 4 times guessed) > budget 60 s; nothing is left out" in warning
    assert plan.trials == 4


def test_a_plan_travels_as_json(matrix: Matrix):
    plan = build_plan(matrix, "s", KERNELS, [ROOMY, PHONE])
    assert wire.from_json(Plan, wire.to_json(plan), "plan") == plan


def test_expired_entries_of_the_matrix_reach_the_plan(tmp_path: Path):
    old = load(
        tmp_path,
        TEXT.replace("expires: 2027-01-01}\n    expectations", "expires: 2026-01-01}\n    expectations"),
    )
    plan = build_plan(old, "s", KERNELS, [ROOMY])
    assert len(plan.cases) == 7
    assert "excludes.0: expired on 2026-01-01; its points run again" in plan.warnings[0]

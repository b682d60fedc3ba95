"""``probes:`` of the matrix, and how often each block's cases run: read, planned, left out when asked to."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from orchestrator.domain import wire
from orchestrator.domain.case import Case
from orchestrator.domain.errors import KernelFolderError, MatrixError, UsageError
from orchestrator.domain.job import CanaryLatency
from orchestrator.domain.kernel import Cost
from orchestrator.domain.results import CaseInfo, RunInfo, RunResults
from orchestrator.domain.trial import Canary, Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.dispatch import DispatchLimits
from orchestrator.planning.matrix import Matrix, Sampling
from orchestrator.planning.plan import BATCH_CASES, BATCH_S, DevicePlan, Plan, PlannedCase, build_plan
from tests.unit.planning.probe_toys import bird, kernels, load
from tests.unit.planning.toy import PHONE_LIMITS, device, profile

TEXT = """\
    version: 1
    suites:
      s:
        replays: 12
        blocks:
          - kernel: attention_toy
            workloads: [{seq: 64}]
            axes: {tile: 8x8, api: [gles, vulkan]}
          - kernel: attention_toy
            workloads: [{seq: [64, 128]}]
            axes: {tile: [8x8, 16x16], api: gles}
            replays: 59
            idle_replays: 50
            idle_s: 60
    probes:
      repeats: 3
      blocks:
        - kernel: gauge
          workloads: [{bytes: [1024, 4096]}]
          axes: {api: [gles, vulkan]}
        - kernel: bird
          axes: {api: [gles, vulkan]}
    """
GLES, VULKAN = profile(), profile(api="vulkan")
PHONE = device("phone", GLES, VULKAN, transport="adb", resource="phone")
OLD = device("old", GLES, transport="adb", resource="old")


@pytest.fixture
def matrix(tmp_path: Path) -> Matrix:
    return load(tmp_path, TEXT)


def planned(plan: Plan, device_id: str) -> DevicePlan:
    (found,) = [d for d in plan.devices if d.device.device_id == device_id]
    return found


def words(plan: DevicePlan) -> list[str]:
    return [f"{c.role} {c.case.kernel} {c.case.axes['api']}" for c in plan.cases]


def test_probes_run_on_every_device_beside_whatever_was_selected(matrix: Matrix) -> None:
    plan = build_plan(matrix, "s", kernels(), [PHONE, OLD], selection="api=vulkan", overrides=["tile=16x16"])
    assert words(planned(plan, "phone")) == [
        "probe gauge gles",
        "probe gauge vulkan",
        "probe gauge gles",
        "probe gauge vulkan",
        "op attention_toy vulkan",
    ]
    assert words(planned(plan, "old")) == ["probe gauge gles"] * 2
    assert [(c.api, c.case.kernel) for c in planned(plan, "phone").canaries] == [
        ("gles", "bird"),
        ("vulkan", "bird"),
    ]
    assert [c.api for c in planned(plan, "old").canaries] == ["gles"]
    assert plan.warnings == ["suite s: old: nothing can run there; see the pruned points"]
    dropped = {(p.device_id, plan.cases[p.case_id].kernel, *p.reasons) for p in plan.pruned}
    assert dropped == {
        ("old", "gauge", "lacks api vulkan"),
        ("old", "attention_toy", "lacks api vulkan"),
    }


def test_probes_are_pruned_by_the_profile_as_any_case(matrix: Matrix) -> None:
    small = device("small", profile(limits=PHONE_LIMITS | {"storage_bytes": 1024}))
    plan = build_plan(matrix, "s", kernels(), [small])
    reasons = [p.reasons for p in plan.pruned if plan.cases[p.case_id].kernel == "gauge"]
    assert ["storage_bytes 4096 > 1024"] in reasons


def test_no_probes_leaves_them_and_the_canary_out(matrix: Matrix) -> None:
    plan = build_plan(matrix, "s", kernels(), [PHONE], probes=False)
    assert {c.kernel for c in plan.cases.values()} == {"attention_toy"}
    assert planned(plan, "phone").canaries == []


def test_a_matrix_without_probes_has_neither(tmp_path: Path) -> None:
    text = TEXT.split("    probes:")[0]
    plan = build_plan(load(tmp_path, text), "s", kernels(), [PHONE])
    assert {c.kernel for c in plan.cases.values()} == {"attention_toy"}
    assert planned(plan, "phone").canaries == []
    assert plan.warnings == []


def test_a_probe_alone_can_be_repeated_by_its_case_id(matrix: Matrix) -> None:
    """The command that reports print for a probe that failed."""
    whole = build_plan(matrix, "s", kernels(), [PHONE])
    (one, *_) = [i for i, c in whole.cases.items() if c.kernel == "gauge"]
    again = build_plan(matrix, "s", kernels(), [PHONE], selection=f"case in ({one})")
    assert {c.kernel for c in again.cases.values()} == {"gauge", "bird"}
    assert again.warnings == []
    with pytest.raises(UsageError, match="no case that -k"):
        build_plan(matrix, "s", kernels(), [PHONE], selection=f"case in ({one})", probes=False)
    with pytest.raises(UsageError, match="no case that -k"):
        build_plan(matrix, "s", kernels(), [PHONE], selection="seq>1000")


def test_blocks_say_how_often_their_cases_run_and_the_first_block_counts(matrix: Matrix) -> None:
    plan = build_plan(matrix, "s", kernels(), [PHONE])
    found = {
        f"{c.kernel} {c.workload.get('seq')} {c.axes.get('tile')} {c.axes['api']}": plan.sampling_of(i)
        for i, c in plan.cases.items()
    }
    often = Sampling(replays=59, idle_replays=50, idle_ms=60_000)
    assert found["attention_toy 64 8x8 gles"] == Sampling(replays=12), "both blocks hold it"
    assert found["attention_toy 64 16x16 gles"] == often
    assert found["attention_toy 128 8x8 gles"] == often
    assert found["gauge None None gles"] == found["bird None None vulkan"] == Sampling(repeats=3)


def test_a_block_may_warm_up_longer_and_hardware_is_planned_with_it(tmp_path: Path) -> None:
    text = TEXT.replace("replays: 12", "warmup_ms: 100").replace("replays: 59", "warmup_ms: 20000")
    matrix = load(tmp_path, text)
    hardware = replace(GLES, renderer="Adreno (TM) 750")
    phone = device("phone", hardware, VULKAN, transport="adb", resource="phone")
    plan = build_plan(matrix, "s", kernels(), [phone, OLD])
    assert {plan.sampling_of(i).warmup_ms for i, c in plan.cases.items() if c.axes.get("tile")} == {
        100,
        20_000,
    }

    def least_s(device_id: str) -> list[float]:
        cases = planned(plan, device_id).cases
        warm = [c for c in cases if plan.sampling_of(c.case_id).warmup_ms == 20_000]
        return [c.estimate.seconds - plan.sampling_of(c.case_id).rest_ms / 1000 for c in warm]

    assert min(least_s("phone")) > 20
    assert max(least_s("old")) < 20, "a software driver warms up by count alone"


def test_g1_01_how_often_a_case_runs_is_no_part_of_its_id(matrix: Matrix, tmp_path: Path) -> None:
    """G1-01 wants the count on record with the test: it is, beside the id, so that history goes on (0013)."""
    more = load(tmp_path, TEXT.replace("replays: 12", "replays: 100"))
    ids = [set(build_plan(m, "s", kernels(), []).cases) for m in (matrix, more)]
    assert ids[0] == ids[1]


def test_rests_are_part_of_the_planned_time(matrix: Matrix) -> None:
    plan = build_plan(matrix, "s", kernels(), [PHONE])
    resting = [c for c in planned(plan, "phone").cases if plan.sampling_of(c.case_id).idle_replays]
    assert all(c.estimate.seconds > 50 * 60 for c in resting)
    assert len(resting) == 3


def test_a_plan_with_probes_travels_as_json(matrix: Matrix) -> None:
    plan = build_plan(matrix, "s", kernels(), [PHONE, OLD])
    assert wire.from_json(Plan, wire.to_json(plan), "plan") == plan


def history(
    *,
    device_id: str = "phone",
    driver: str = "",
    api: str = "gles",
    before_ns: int = 100,
    clock: Literal["", "gpu", "wall"] = "gpu",
) -> RunResults:
    """One trial of an earlier run with the canary's latencies around it."""
    case = next(c for c in _cases() if c.axes["api"] == api)
    trial = Trial(
        "r", device_id, case.case_id, 1, Verdict.PASS, "", "h", "2026-12-01T00:00:00Z", 1,
        driver=driver or f"{GLES.renderer}; {GLES.version}",
        canary=Canary(before_ns, 300, 50, 4.0, clock, "b1rd"),
    )  # fmt: skip
    info = RunInfo("r", "s", "2026-12-01T00:00:00Z", "0", "host", "tilefarm run")
    return RunResults(info, [PHONE], {case.case_id: _info(case)}, [trial])


def _cases() -> list[Case]:
    return [
        Case("attention_toy", "attention", {"seq": 1}, {"api": api, "precision": "fp32"})
        for api in ("gles", "vulkan")
    ]


def _info(case: Case) -> CaseInfo:
    return CaseInfo(case, "h", Cost(1, 1, 1), {}, (1, 1, 1), 0, 1)


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        (None, {"gles": 0, "vulkan": 0}),
        (history(), {"gles": 200, "vulkan": 0}),
        (history(before_ns=0), {"gles": 300, "vulkan": 0}),
        (history(clock="wall"), {"gles": 200, "vulkan": 0}),
        (history(clock=""), {"gles": 0, "vulkan": 0}),
        (history(api="vulkan"), {"gles": 0, "vulkan": 200}),
        (history(device_id="other"), {"gles": 0, "vulkan": 0}),
        (history(driver="Adreno (TM) 750; OpenGL ES 3.2 V@0676"), {"gles": 0, "vulkan": 0}),
    ],
)
def test_the_canary_s_latency_is_expected_from_the_same_device_api_and_driver(
    matrix: Matrix, earlier: RunResults | None, expected: dict[str, int]
) -> None:
    plan = build_plan(matrix, "s", kernels(), [PHONE], history=earlier)
    assert {c.api: c.expected_ns for c in planned(plan, "phone").canaries} == expected


def test_the_canary_s_latency_is_kept_apart_by_clock_and_code(matrix: Matrix) -> None:
    """The wall clock of a tiny case is several times its GPU time; other code takes another time."""
    earlier = history()
    (one,) = earlier.trials
    more = [
        Canary(9_000, 9_000, 50, 4.0, "gpu", "0ld"),
        Canary(100, 300, 50, 4.0, "gpu", "b1rd"),
        Canary(800, 1_000, 50, 4.0, "wall", "b1rd"),
    ]
    trials = [replace(one, attempt=n, canary=c) for n, c in enumerate(more)]
    plan = build_plan(matrix, "s", kernels(), [PHONE], history=replace(earlier, trials=trials))
    (gles,) = [c for c in planned(plan, "phone").canaries if c.api == "gles"]
    assert gles.expected == CanaryLatency("b1rd", gpu_ns=200, wall_ns=900)
    assert gles.expected_ns == 200


def test_software_drivers_have_more_leeway(matrix: Matrix) -> None:
    gpu = device("gpu", replace(GLES, renderer="Mali-G715"))
    plan = build_plan(matrix, "s", kernels(), [PHONE, gpu])
    assert [c.factor for c in planned(plan, "phone").canaries] == [20.0, 20.0]
    assert [c.factor for c in planned(plan, "gpu").canaries] == [4.0]


def test_canaries_run_around_every_batch_whether_cases_or_seconds_fill_it(matrix: Matrix) -> None:
    full = planned(build_plan(matrix, "s", kernels(), [OLD]), "old")
    (canary,) = full.canaries
    quick = replace(full.cases[0], estimate=replace(full.cases[0].estimate, seconds=0.5))
    slow = replace(quick, estimate=replace(quick.estimate, seconds=BATCH_S * 2.5))

    def canaries(*cases: PlannedCase) -> float:
        whole = DevicePlan(OLD, [*cases], [canary])
        return (whole.seconds - replace(whole, canaries=[]).seconds) / canary.estimate.seconds

    assert canaries(*[quick] * BATCH_CASES) == pytest.approx(2)
    assert canaries(*[quick] * (2 * BATCH_CASES + 1)) == pytest.approx(2 * 3)
    assert canaries(slow) == pytest.approx(2 * 3)


def test_the_plan_fills_batches_as_the_dispatcher_does() -> None:
    batch = DispatchLimits().batch
    assert (batch.cases, batch.seconds) == (BATCH_CASES, BATCH_S)


def test_a_canary_that_cannot_run_is_named_and_guards_nothing(matrix: Matrix) -> None:
    plan = build_plan(matrix, "s", kernels(bird(group=256)), [OLD])
    assert planned(plan, "old").canaries == []
    reasons = [p.reasons for p in plan.pruned if plan.cases[p.case_id].kernel == "bird"]
    assert reasons == [["invocations 256 > 128", "group_x 256 > 128"]]


@pytest.mark.parametrize("factor", [1, 0.5, float("nan"), "5", None])
def test_a_latency_factor_must_be_a_number_above_1(matrix: Matrix, factor: object) -> None:
    with pytest.raises(KernelFolderError, match="kernels/bird: latency_factor is"):
        build_plan(matrix, "s", kernels(bird(latency_factor=factor)), [PHONE])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "kernel: gauge\n          workloads: [{bytes: [1024, 4096]}]\n"
            "          axes: {api: [gles, vulkan]}",
            "kernel: copy_probe",
            '18: probes.blocks.0.kernel: "copy_probe": it measures no device',
        ),
        (
            "kernel: bird",
            "kernel: birt",
            '21: probes.blocks.1.kernel: there is no kernel "birt". Did you mean',
        ),
        ("repeats: 3", "repeat: 3", '16: probes.repeat: unknown key. Did you mean "repeats"?'),
        ("repeats: 3", "repeats: 0", "16: probes.repeats: must be a whole number from 1 to 10000"),
        ("idle_s: 60", "idle_s: 0", "14: suites.s.blocks.1.idle_s: must be a number above 0 and up to 600"),
        ("idle_s: 60", "idle_s: 601", "14: suites.s.blocks.1.idle_s: must be a number above 0 and up to 600"),
        ("idle_s: 60", "warmup: 2", "13: suites.s.blocks.1.idle_replays: rests of no length; give idle_s"),
        (
            "idle_replays: 50",
            "idle_replays: 9000",
            "13: suites.s.blocks.1.idle_replays: a case may take 150.0 h",
        ),
        (
            "replays: 59",
            "warmup_ms: 60001",
            "12: suites.s.blocks.1.warmup_ms: must be a whole number from 0 to 60000",
        ),
        (
            "replays: 59",
            "warmup_ms: 30000",
            "12: suites.s.blocks.1.warmup_ms: 30000 ms of warm-up leave nothing of the deadline of 30 s",
        ),
        ("replays: 12", "warmup_ms: 29999", None),
        (
            "replays: 59",
            "replays: 0",
            "12: suites.s.blocks.1.replays: must be a whole number from 1 to 10000",
        ),
        ("      repeats: 3\n", "", None),
        ("idle_s: 60", "idle_s: 0.5", None),
        ("replays: 12", "min_effect: 3 %", None),
        ("replays: 12", "min_effect: 0.1%", None),
        (
            "replays: 59",
            "min_effect: 0.03",
            "12: suites.s.blocks.1.min_effect: must be 0.1 % to 100 %, such as 3 %, not the number 0.03",
        ),
        (
            "replays: 59",
            "min_effect: 0.01 %",
            '12: suites.s.blocks.1.min_effect: must be 0.1 % to 100 %, such as 3 %, not text "0.01 %"',
        ),
        (
            "replays: 59",
            "min_effect: [3 %]",
            "12: suites.s.blocks.1.min_effect: must be 0.1 % to 100 %, such as 3 %, not a list",
        ),
    ],
)
def test_what_is_wrong_has_its_line(tmp_path: Path, old: str, new: str, expected: str | None) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    if expected is None:
        load(tmp_path, text)
        return
    with pytest.raises(MatrixError) as caught:
        load(tmp_path, text)
    assert any(p.startswith(f"matrix.yaml:{expected}") for p in caught.value.problems), caught.value


def test_a_canary_belongs_under_probes_once_an_api(tmp_path: Path) -> None:
    ordinary = TEXT[
        TEXT.index("kernel: attention_toy") : TEXT.index("          - kernel: attention_toy", 100)
    ]
    text = TEXT.replace(ordinary, "kernel: bird\n", 1)
    with pytest.raises(MatrixError, match=r'suites\.s\.blocks\.0\.kernel: "bird": a canary runs by itself'):
        load(tmp_path, text)
    for further in (
        "axes: {api: [gles, vulkan], vector: [1, 2]}",
        "axes: {api: gles}\n        - kernel: bird",
    ):
        with pytest.raises(MatrixError, match="more than one canary for an API"):
            load(
                tmp_path,
                TEXT.replace(
                    "- kernel: bird\n          axes: {api: [gles, vulkan]}",
                    f"- kernel: bird\n          {further}",
                ),
            )


def test_an_empty_probes_section_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=r"15: probes: must be a mapping, not nothing"):
        load(tmp_path, TEXT.split("      repeats: 3")[0])


def test_a_probe_may_also_stand_in_a_suite(tmp_path: Path) -> None:
    """Further sizes for somebody's own devices: a case of both is planned once, as the suite says."""
    extra = (
        "          - kernel: gauge\n            workloads: [{bytes: [1024, 8192]}]\n            repeats: 7\n"
    )
    matrix = load(tmp_path, TEXT.replace("    probes:", f"{extra}    probes:", 1))
    plan = build_plan(matrix, "s", kernels(), [OLD], selection="gauge")
    found = {
        c.case.workload["bytes"]: plan.sampling_of(c.case_id).repeats for c in planned(plan, "old").cases
    }
    assert found == {1024: 7, 8192: 7, 4096: 3}

"""matrix.yaml and docs/matrix.md as shipped, against the shipped kernels."""

import re
from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.kernel import Kernel
from orchestrator.domain.profile import Profile, SubgroupFacts
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.expand import expand_blocks
from orchestrator.planning.expression import SelectionError
from orchestrator.planning.kernel_folder import load_kernels
from orchestrator.planning.matrix import Matrix
from orchestrator.planning.matrix_reader import load_matrix
from orchestrator.planning.plan import DevicePlan, Plan, build_plan
from orchestrator.planning.prune import Drop, Needs, check, prune
from orchestrator.planning.select import compile_selection
from orchestrator.planning.slangc import MISSING
from orchestrator.planning.vocabulary import Vocabulary
from tests.unit.planning.toy import PHONE_LIMITS, device, profile, write

Points = dict[str, list[Case]]

ROOT = Path(__file__).parents[3]
DAY = date(2026, 12, 1)
VULKAN_FEATURES = (
    "pack_half", "timer_query", "float16", "storage16", "uniform16", "push16", "subgroup_size_control",
    "subgroup_basic", "subgroup_arithmetic", "subgroup_shuffle", "float_controls", "cooperative_matrix",
)  # fmt: skip
LLVMPIPE_LIMITS = PHONE_LIMITS | {
    "shared_bytes": 32_768,
    "invocations": 1_024,
    "group_x": 1_024,
    "group_y": 1_024,
    "group_z": 1_024,
    "storage_bindings": 32,
}


@pytest.fixture(scope="module")
def kernels() -> dict[str, Kernel]:
    return {name: loaded.kernel for name, loaded in load_kernels(ROOT / "kernels").items()}


@pytest.fixture(scope="module")
def matrix(kernels: dict[str, Kernel]) -> Matrix:
    return load_matrix(ROOT / "matrix.yaml", kernels, DAY)


def able(limits: dict[str, int]) -> Profile:
    """Vulkan with every feature that some shipped kernel may need."""
    vulkan = profile(limits=limits, features=dict.fromkeys(VULKAN_FEATURES, True), api="vulkan")
    return replace(vulkan, subgroup=SubgroupFacts(32, 32, 4, 128), matrices=["16x16x16 f16 f16 f32 f32"])


def smoke(matrix: Matrix, kernels: dict[str, Kernel]) -> Plan:
    """A laptop's two software drivers, and a small phone that has GLES only."""
    llvmpipe = device("llvmpipe", profile(limits=LLVMPIPE_LIMITS))
    lavapipe = device("lavapipe", able(LLVMPIPE_LIMITS))
    phone = device("phone", profile(), soc="SM8650", transport="adb", resource="phone")
    return build_plan(matrix, "smoke", kernels, [llvmpipe, lavapipe, phone])


def on_phone(plan: Plan) -> DevicePlan:
    return plan.devices[-1]


@pytest.fixture(scope="module")
def points(matrix: Matrix) -> Points:
    """Points of every suite, probes apart."""
    return {
        name: list({case.case_id: case for case, _ in expand_blocks(suite, matrix.excludes)}.values())
        for name, suite in matrix.suites.items()
    }


@pytest.fixture(scope="module")
def needs(matrix: Matrix, points: Points, kernels: dict[str, Kernel]) -> dict[str, Needs | Drop]:
    """By label, what every point of every suite and of the probes asks of a device."""
    assert matrix.probes is not None
    probes = (case for case, _ in expand_blocks(matrix.probes, matrix.excludes))
    return {c.label: check(kernels[c.kernel], c) for c in (*chain(*points.values()), *probes)}


def test_no_point_of_a_suite_is_invalid(needs: dict[str, Needs | Drop]):
    limits = dict.fromkeys(PHONE_LIMITS, 1 << 40)
    huge = device("huge", profile(limits=limits), able(limits))
    drops = {label: drop.reasons for label, need in needs.items() if (drop := prune(need, huge))}
    assert {label: why for label, why in drops.items() if why != (MISSING,)} == {}


PHONE_FEATURES = tuple(name for name in VULKAN_FEATURES if name != "cooperative_matrix")


def hardware(limits: dict[str, int], features: tuple[str, ...]) -> list[Profile]:
    """Both APIs of a GPU that is no software driver."""
    gles, vulkan = profile(limits=limits), able(limits)
    proven = {name: name in features for name in vulkan.features}
    return [
        replace(gles, renderer="a GPU"),
        replace(vulkan, renderer="a GPU", device_type="integrated", features=proven),
    ]


def phone_and_gpu(matrix: Matrix, kernels: dict[str, Kernel], suite: str) -> Plan:
    large = LLVMPIPE_LIMITS | {"shared_bytes": 49_152, "storage_bytes": 1 << 31, "count_x": 2**31 - 1}
    phone = device("phone", *hardware(LLVMPIPE_LIMITS, PHONE_FEATURES), transport="adb", resource="phone")
    gpu = device("gpu", *hardware(large, VULKAN_FEATURES), resource="gpu")
    return build_plan(matrix, suite, kernels, [phone, gpu])


@pytest.fixture(scope="module")
def nightly(matrix: Matrix, kernels: dict[str, Kernel]) -> Plan:
    return phone_and_gpu(matrix, kernels, "nightly")


@pytest.mark.parametrize(("suite", "hours"), [("smoke", 0.05), ("nightly", 3.0)])
def test_the_guess_for_a_phone_and_a_gpu_is_within_the_budget(
    matrix: Matrix, kernels: dict[str, Kernel], nightly: Plan, suite: str, hours: float
):
    """On a software driver nightly takes most of a day, and the plan says so."""
    plan = nightly if suite == "nightly" else phone_and_gpu(matrix, kernels, suite)
    assert plan.suite.budget_s == hours * 3600
    assert plan.warnings == []
    on_phone, on_gpu = plan.devices
    assert 0 < on_gpu.seconds < on_phone.seconds < hours * 3600
    assert len(on_gpu.cases) > 0.98 * len(plan.cases)


def test_the_documented_sums_of_nightly_are_about_the_real_ones(nightly: Plan):
    """A kernel that needs a little more or less is no reason to write another page."""
    phone = nightly.devices[0]
    page = (ROOT / "docs/matrix.md").read_text()
    found = re.search(
        r"suite nightly: (\d+) points\n  phone: (\d+) run, (\d+) pruned; about (\d+) min of a budget of 3 h",
        page,
    )
    assert found is not None
    pruned = sum(p.device_id == "phone" for p in nightly.pruned)
    real = (len(nightly.cases), len(phone.cases), pruned, phone.seconds / 60)
    assert [int(n) for n in found.groups()] == pytest.approx(real, rel=0.1)


def test_nightly_holds_what_the_issue_names(points: Points, kernels: dict[str, Kernel]):
    cases = points["nightly"]
    attention = [c.workload for c in cases if c.op == "attention"]
    assert {c.kernel for c in cases} == {name for name, k in kernels.items() if k.role == "op"}
    assert {64, 80, 96, 128, 256} < {w["head_dim"] for w in attention}
    assert any(int(w["head_dim"]) % 2 for w in attention)
    assert {w["align"] for w in attention if w["causal"]} == {"bottom_right", "top_left"}
    assert {w["mask"] for w in attention} == {"none", "additive", "boolean"}
    assert any(w["window"] and w["kv_heads"] != w["heads"] for w in attention)
    decode = [w for w in attention if w["seq"] == 1 and int(w["kv_seq"]) >= 4000]
    assert {w["kv_order"] for w in decode if w["kv_rows"] != w["kv_seq"]} == {"head", "row"}
    images = [c.workload for c in cases if c.op == "blur_tonemap"]
    assert {int(w["width"]) * int(w["height"]) for w in images} == {12_000_000}
    for axis, values in {"pad": {0, 1}, "layout": {"row", "column"}}.items():
        assert values <= {c.axes.get(axis) for c in cases if c.kernel == "attention_flash"}


def test_smoke_is_small_and_runs_whole_on_a_laptop(matrix: Matrix, kernels: dict[str, Kernel]):
    plan = smoke(matrix, kernels)
    llvmpipe, lavapipe, _ = plan.devices
    ran = [c.case_id for d in (llvmpipe, lavapipe) for c in [*d.cases, *d.canaries]]
    slang = {p.case_id for p in plan.pruned if p.reasons == [MISSING]}  # where no slangc is installed
    assert sorted(ran) == sorted(set(plan.cases) - slang), "each case on exactly one of the two drivers"
    assert plan.warnings == []
    variants = {c.kernel for c in plan.cases.values() if kernels[c.kernel].role == "op"}
    assert variants == {name for name, kernel in kernels.items() if kernel.role == "op"}


def _both(limits: dict[str, int]) -> list[DeviceRecord]:
    """One device an API."""
    return [device("gles", profile(limits=limits)), device("vulkan", able(limits))]


def test_g1_02_smoke_replays_every_case_twelve_times_and_nightly_some_59_times(matrix: Matrix):
    """G1-02: a low rate of wrong runs shows in many replays only, and some of it after a rest only."""
    smoke, nightly = (matrix.suite(name) for name in ("smoke", "nightly"))
    assert {smoke.sampling_of(block).replays for block in smoke.blocks} == {12}
    samplings = [nightly.sampling_of(block) for block in nightly.blocks]
    assert {s.replays for s in samplings} == {2, 59, 100}
    assert any(s.idle_replays and s.idle_ms for s in samplings)


def test_every_gles_point_of_smoke_runs_through_vulkan_too(points: Points):
    """So that the report can pair them."""
    cases = points["smoke"]
    of_api = {
        api: {
            (c.kernel, c.workload_id, *((n, v) for n, v in c.axes.items() if n != "api")): c.label
            for c in cases
            if c.axes["api"] == api
        }
        for api in ("gles", "vulkan")
    }
    attention = {
        api: [p for p in found if str(p[0]).startswith("attention_")] for api, found in of_api.items()
    }
    assert 60 < len(attention["gles"]) <= 100
    assert len(attention["vulkan"]) <= 120
    assert {label for point, label in of_api["gles"].items() if point not in of_api["vulkan"]} == set()


def test_smoke_holds_every_precision_halves_hint_layout_and_number_of_rows(
    points: Points, kernels: dict[str, Kernel]
):
    cases = points["smoke"]
    flash, naive = ("api", "precision", "halves", "vector", "hint", "layout", "rows"), ("api", "precision")
    for name, axes in (("attention_flash", flash), ("attention_naive", naive)):
        for axis in (a for a in kernels[name].axes if a.name in axes):
            assert {c.axes[axis.name] for c in cases if c.kernel == name} == set(axis.values or ())


def test_attention_of_every_suite_runs_both_apis_and_16_bit_arithmetic(points: Points):
    for cases in points.values():
        axes = [c.axes for c in cases if c.op == "attention"]
        assert {a["api"] for a in axes} == {"gles", "vulkan"}
        assert {"fp32", "fp16_storage", "fp16", "fp16_all"} == {a["precision"] for a in axes}
        assert {a["halves"] for a in axes} == {"packed", "native"}


def test_probes_use_every_probe_and_a_canary_on_each_api(matrix: Matrix, kernels: dict[str, Kernel]):
    for planned in build_plan(matrix, "smoke", kernels, _both(LLVMPIPE_LIMITS)).devices:
        assert [c.api for c in planned.canaries] == [planned.device.device_id]
        probes = {c.case.kernel for c in planned.cases if c.role == "probe"}
        assert probes == {n for n, k in kernels.items() if k.role == "probe"}


def test_smoke_runs_every_named_input_of_every_kernel_s_op(matrix: Matrix, kernels: dict[str, Kernel]):
    wanted = {name for kernel in kernels.values() if kernel.role == "op" for name in kernel.distributions}
    cases = smoke(matrix, kernels).cases.values()
    assert {c.inputs for c in cases if kernels[c.kernel].role == "op"} == wanted


def test_a_small_phone_drops_a_tile_in_fp32_that_it_runs_in_half_the_memory(
    matrix: Matrix, kernels: dict[str, Kernel]
):
    plan = smoke(matrix, kernels)
    phone = on_phone(plan)
    selected = compile_selection("attention_flash and api=gles and head_dim=128 and tile=64x32")
    ran = [c.case.axes["precision"] for c in phone.cases if selected(c.case)]
    reasons = {
        str(plan.cases[p.case_id].axes["precision"]): p.reasons
        for p in plan.pruned
        if p.device_id == "phone" and selected(plan.cases[p.case_id])
    }
    assert ran == ["fp16_storage"]
    assert "attention_flash (gles) tile 64x32: fp16_storage fits (16384 of 16384 shared_bytes), " + (
        "fp32 does not (32768)"
    ) in [f.sentence for f in phone.half_fits]
    assert reasons == {"fp32": ["shared_bytes 32768 > 16384"]}


def test_every_workload_of_the_small_phone_keeps_its_baseline(matrix: Matrix, kernels: dict[str, Kernel]):
    """Speed-ups refer to attention_naive: the main workload keeps one on 128 invocations."""
    phone = on_phone(smoke(matrix, kernels))
    baseline = compile_selection("attention_naive and seq=512 and precision=fp32")
    assert any(baseline(c.case) for c in phone.cases)


def test_every_flash_variant_on_ordinary_inputs_has_a_naive_one_to_be_compared_with(
    matrix: Matrix, kernels: dict[str, Kernel]
):
    """Equal workload, precision and API; inputs with a history are not there for their time."""
    cases = [c for c in smoke(matrix, kernels).cases.values() if c.inputs == "normal"]
    keys = {
        name: {
            (c.workload_id, c.axes["precision"], c.axes["api"]): c.label for c in cases if c.kernel == name
        }
        for name in ("attention_flash", "attention_naive")
    }
    lonely = {label for key, label in keys["attention_flash"].items() if key not in keys["attention_naive"]}
    assert len(keys["attention_flash"]) >= 24
    assert lonely == set()


def test_the_loop_limit_case_is_expected_to_fail_on_llvmpipe_whatever_the_soc(
    matrix: Matrix, kernels: dict[str, Kernel]
):
    (expectation,) = [
        e for e in matrix.expectations if e.verdict is Verdict.MISMATCH and "attention" in e.when
    ]
    covered = compile_selection(expectation.when)
    found = [c.axes for c in smoke(matrix, kernels).cases.values() if covered(c)]
    assert [(axes["api"], axes["vector"]) for axes in found] == [("gles", 1), ("vulkan", 1)]
    for soc in ("llvmpipe", "lavapipe", "SM8650"):  # lavapipe is llvmpipe behind Vulkan
        assert expectation.covers_device(soc, "llvmpipe (LLVM 15.0.6, 256 bits) OpenGL ES 3.2 Mesa 22.3.6")
        assert not expectation.covers_device(soc, "Adreno (TM) 750 OpenGL ES 3.2")


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    limits=st.fixed_dictionaries(
        {
            "shared_bytes": st.sampled_from((16_384, 32_768, 49_152)),
            "invocations": st.sampled_from((128, 256, 512, 1_024)),
            "group_x": st.sampled_from((128, 1_024)),
            "storage_bytes": st.sampled_from((1 << 27, 1 << 31)),
            "storage_bindings": st.sampled_from((4, 8)),
        }
    ),
    half=st.booleans(),
)
def test_every_point_runs_on_any_device_or_is_dropped_for_a_reason(
    needs: dict[str, Needs | Drop], limits: dict[str, int], half: bool
):
    target = device("d", profile(limits=limits, features={"pack_half": half}))
    drops = [prune(need, target) for need in needs.values()]
    assert any(drop is None for drop in drops)
    assert all(drop.reasons for drop in drops if drop is not None)


def test_the_documented_example_loads(tmp_path: Path, kernels: dict[str, Kernel]):
    (example,) = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/matrix.md").read_text(), re.DOTALL)
    matrix = load_matrix(write(tmp_path, example), kernels, DAY)
    plan = build_plan(matrix, "tiles", kernels, [device("d", profile(limits=LLVMPIPE_LIMITS))], probes=False)
    flash = compile_selection("attention_flash")
    shapes = 2 * 2 + 2
    assert sum(flash(c) for c in plan.cases.values()) == shapes * 2 * 3 * 2 * 2 - plan.excluded[0].count
    assert plan.excluded[0].count == 8
    assert (matrix.warnings, plan.suite.budget_s) == ((), 180.0)


def test_the_documented_error_of_a_selection_is_the_real_one(kernels: dict[str, Kernel]):
    with pytest.raises(SelectionError) as caught:
        compile_selection("attention_flash and precison=fp32", Vocabulary.of(kernels.values()))
    assert f"```\n{caught.value}\n```" in (ROOT / "docs/matrix.md").read_text()

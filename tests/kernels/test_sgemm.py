"""sgemm on three drivers: named inputs, every axis, odd shapes, what is not finite, replays, budgets.

Tiny workgroups and the short text throughout: software drivers compile the full one for seconds. All cases
of a driver are one job.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product

import numpy as np
import pytest

from orchestrator.domain.case import AxisValue, Case
from orchestrator.ops.gemm_inputs import DISTRIBUTIONS
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.kernels.drivers import DRIVERS, driver
from tests.kernels.harness import KERNELS, Bench, Outcome, make_case

SMALL: dict[str, AxisValue] = {"tile": "16x16", "chunk": 8, "unroll": "short"}
WAYS: tuple[dict[str, AxisValue], ...] = (
    {"precision": "fp32"},
    *({"precision": p, "halves": h} for p, h in product(("fp16_storage", "fp16"), ("packed", "native"))),
    {"hint": "mediump"},
    {"hint": "precise"},
)
"""GLES has fp32, packed fp16_storage and mediump, SwiftShader all but 16-bit types."""
ODD: dict[str, AxisValue] = {"m": 19, "n": 22, "k": 21}
TWO: dict[str, AxisValue] = {**ODD, "batch": 2, "b_batch": 1}

LAYOUTS: tuple[dict[str, AxisValue], ...] = (
    {"layout_a": "inner"},
    {"layout_b": "inner"},
    {"layout_a": "inner", "layout_b": "inner", "vector": 1},
    {"pipeline": "prefetch", "pad": 2},
    {"pipeline": "double", "pad": 0, "layout_a": "inner"},
    {"pipeline": "double", "unroll": "full"},
    {"source": "global", "pad": 0, "vector": 1},
    {"source": "global", "pad": 0, "unroll": "full"},
    {"tile": "32x32", "block": "8x8", "wave": "16x16", "lanes": "paired", "chunk": 4},
    {"tile": "16x32", "wave": "8x16", "lanes": "plain", "chunk": 16},
    {"tile": "16x32", "block": "4x8", "pipeline": "prefetch", "vector": 1},
    {"tile": "32x32", "block": "16x8", "chunk": 32},
)
SHAPES: tuple[dict[str, AxisValue], ...] = (
    {"m": 20, "n": 24, "k": 12, "trans_a": True, "alpha": 33, "beta": 50},
    {"m": 19, "n": 22, "k": 21, "trans_b": True, "alpha": 150, "beta": 100},
    {"m": 21, "n": 19, "k": 22, "trans_a": True, "trans_b": True, "alpha": -50, "beta": -100},
    {"m": 5, "n": 37, "k": 9, "batch": 6, "b_batch": 3, "beta": 33},
)
G1_07: tuple[dict[str, AxisValue], ...] = (
    {"m": 64, "n": 45, "k": 128, "batch": 8, "b_batch": 2},
    {"m": 128, "n": 45, "k": 64, "batch": 8, "b_batch": 2},
    {"m": 16, "n": 184, "k": 1024},
    {"m": 24, "n": 100, "k": 16},
    {"m": 1, "n": 1, "k": 1},
)
G1_01 = ("32x32", "64x16", "16x64", "8x128", "4x256")
"""Workgroups of 8x8, 4x16, 16x4, 32x2 and 64x1 invocations with blocks of 4x4."""
POISONED = ("nan_row", "inf_row", "nan_column", "inf_column")

Variant = Mapping[str, AxisValue]
Outcomes = Callable[[str], Mapping[str, Outcome]]
"""Driver -> case_id -> what became of it."""


@pytest.fixture(scope="module")
def sgemm() -> LoadedKernel:
    return load_kernel(KERNELS / "sgemm")


class Plan:
    """Cases of one driver, by what they are for."""

    def __init__(self, loaded: LoadedKernel, name: str) -> None:
        self._loaded, self._driver = loaded, driver(name)
        self.driver = name

    def case(self, workload: Variant, axes: Variant, inputs: str = "normal") -> Case:
        variant = {"api": self._driver.api, **SMALL, **axes}
        return make_case(self._loaded.kernel, workload, inputs=inputs, axes=variant)

    def possible(self, cases: list[Case]) -> list[Case]:
        return [case for case in cases if self._driver.refuses(self._loaded.kernel, case) is None]

    @property
    def ways(self) -> list[dict[str, AxisValue]]:
        return [way for way in WAYS if self.possible([self.case(ODD, way)])]

    def named(self) -> list[Case]:
        """Every distribution in fp32 and, in turns, in one other precision; ``normal`` in all of them. k is
        long enough to count beyond what fp16 sums can."""
        long: dict[str, AxisValue] = {"m": 3, "n": 5, "k": 521}
        counted = ("ones", "constant_16", "there_and_back")
        first, *others = self.ways
        turn = DRIVERS.index(self.driver)
        pairs = [(d, first) for d in DISTRIBUTIONS] + [("normal", way) for way in others]
        pairs += [(d, others[(turn + n) % len(others)]) for n, d in enumerate(DISTRIBUTIONS)]
        cases = [self.case(long if d in counted else TWO, way, d) for d, way in pairs]
        cases += [self.case({**TWO, "beta": 50}, way, "nan_in_c") for way in (first, others[turn])]
        if self.driver == "swiftshader":  # its packHalf2x16 makes NaN of infinities: tests of scale
            cases = [c for c in cases if c.axes["precision"] == "fp32" or not _infinite(c)]
        return self.possible(cases)

    def layouts(self) -> list[Case]:
        """Every layout, in turns with shapes and precisions; llvmpipe and lavapipe compile slowly and share
        them."""
        ways, turn = self.ways, DRIVERS.index(self.driver)
        return [
            self.case(SHAPES[(n + turn) % 4], {**layout, **ways[(n // 2 + turn) % len(ways)]})
            for n, layout in enumerate(LAYOUTS)
            if turn == 2 or n % 2 == turn
        ]

    def g1_07(self) -> list[Case]:
        """By invocation index, and by a wave that is the driver's subgroup: lavapipe's 8, SwiftShader's 4.

        lavapipe has each shape in one of the two geometries."""
        geometries: list[dict[str, AxisValue]] = [{"tile": "32x32", "chunk": 16}]
        if self._driver.api == "vulkan":
            size, wave = (4, "8x8") if self.driver == "swiftshader" else (8, "8x16")
            geometries.append({"tile": "16x16", "wave": wave, "subgroup": size})
        cases = [self.case(shape, geometry) for shape, geometry in product(G1_07, geometries)]
        return [c for n, c in enumerate(cases) if self.driver != "lavapipe" or n % 4 in (0, 3)]


def _infinite(case: Case) -> bool:
    return case.inputs.startswith("inf") or (case.inputs == "nan_in_c" and case.workload["beta"] != 0)


@pytest.fixture(scope="module")
def outcomes(sgemm: LoadedKernel, tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Every case of a driver, run when the first is asked for."""

    @cache
    def run(name: str) -> Mapping[str, Outcome]:
        plan = Plan(sgemm, name)
        cases = {c.case_id: c for c in (*plan.named(), *plan.layouts(), *plan.g1_07())}
        bench = Bench(tmp_path_factory.mktemp(name), name, keep=True, repeats=0)
        return dict(zip(cases, bench.run([(sgemm, case) for case in cases.values()]), strict=True))

    return run


@pytest.fixture(params=DRIVERS)
def plan(request: pytest.FixtureRequest, sgemm: LoadedKernel) -> Plan:
    return Plan(sgemm, request.param)


def _passing(outcomes: Outcomes, plan: Plan, cases: list[Case]) -> list[Outcome]:
    found = [outcomes(plan.driver)[case.case_id] for case in cases]
    wrong = [f"{o.case.label}: {o.verdict} {o.reason} {o.end.log}" for o in found if o.verdict != "pass"]
    assert found
    assert not wrong, "\n".join(wrong)
    return found


def test_named_inputs_pass_in_every_precision(plan: Plan, outcomes: Outcomes) -> None:
    _passing(outcomes, plan, plan.named())


def test_layouts_transposes_and_factors_pass(plan: Plan, outcomes: Outcomes) -> None:
    _passing(outcomes, plan, plan.layouts())


def test_g1_07_batches_that_share_b_and_partial_tiles_are_right(plan: Plan, outcomes: Outcomes) -> None:
    """G1-07: the shapes that were wrong on an Adreno and on Malis, with and without a wave for a subgroup.

    The report groups failures by the size that was measured (tests/unit/analysis/test_subgroups.py)."""
    found = _passing(outcomes, plan, plan.g1_07())
    sizes = {o.case.axes["subgroup"] for o in found}
    assert sizes == {"llvmpipe": {0}, "lavapipe": {0, 8}, "swiftshader": {0, 4}}[plan.driver]


def test_beta_0_reads_no_c_and_another_keeps_what_is_not_finite(plan: Plan, outcomes: Outcomes) -> None:
    for o in _passing(outcomes, plan, [c for c in plan.named() if c.inputs == "nan_in_c"]):
        flat = o.values.reshape(-1)
        if o.case.workload["beta"]:
            assert np.isnan(flat[::5]).all()
            assert np.isinf(np.delete(flat[::7], np.s_[::5])).all()
            assert np.isfinite(np.delete(flat, np.s_[::7])).mean() < 0.9
        else:
            assert np.isfinite(flat).all()


def test_times_the_identity_every_bit_of_a_comes_back(
    plan: Plan, sgemm: LoadedKernel, outcomes: Outcomes
) -> None:
    for o in _passing(outcomes, plan, [c for c in plan.named() if c.inputs == "identity"]):
        if o.case.axes["hint"] != "mediump":
            a = sgemm.kernel.inputs(o.case)["a"].astype(np.float64)
            np.testing.assert_array_equal(o.values[:, :, :21], a)
            assert (o.values[:, :, 21:] == 0.0).all()


def test_sums_count_on_where_fp16_would_stand_still_or_overflow(plan: Plan, outcomes: Outcomes) -> None:
    """521 products of 256 are 133,376; the sum of there_and_back passes 66,816 on its way to 256."""
    full = [c for c in plan.named() if c.axes["precision"] == "fp32" and c.axes["hint"] != "mediump"]
    right = {"ones": 521.0, "constant_16": 133376.0, "there_and_back": 256.0}
    for o in _passing(outcomes, plan, [c for c in full if c.inputs in right]):
        assert (o.values == right[o.case.inputs]).all()
    back = _passing(outcomes, plan, [c for c in plan.named() if c.inputs == "there_and_back"])
    assert len(back) == 2
    assert all((o.values == 256.0).all() for o in back)


def test_one_poisoned_element_reaches_its_row_or_column_and_nothing_else(
    plan: Plan, outcomes: Outcomes
) -> None:
    """Of A: one row of one product. Of B: a column of each product that shares it. Other bits stay."""
    named = plan.named()
    for case in [c for c in named if c.inputs in POISONED]:
        clean, *_ = [c for c in named if c.inputs == "normal" and c.axes == case.axes]
        before, after = _passing(outcomes, plan, [clean, case])
        odd = ~np.isfinite(after.values)
        expected = np.zeros_like(odd)
        if case.inputs.endswith("row"):
            expected[1, 19 // 2] = True
        else:
            expected[:, :, 22 // 2] = True
        np.testing.assert_array_equal(odd, expected)
        np.testing.assert_array_equal(after.values[~odd], before.values[~odd])


def test_budgets_are_above_the_errors_and_less_than_a_hundred_times(plan: Plan, outcomes: Outcomes) -> None:
    """mediump apart: Vulkan drivers pass over RelaxedPrecision, and its budget is for those that obey."""
    cases = [c for c in plan.named() if c.inputs in ("normal", "cancelling") and c.axes["hint"] != "mediump"]
    for o in _passing(outcomes, plan, cases):
        used = float((np.abs(o.values - o.reference) / o.allowed).max())
        assert 0.01 < used < 1.0, o.case.label
        assert o.numerics.nmse > o.tolerance.nmse / 1e4, o.case.label


def test_g1_01_every_replay_of_every_workgroup_shape_gives_the_same_bits(
    any_bench: Bench, sgemm: LoadedKernel
) -> None:
    """G1-01: an Adreno was wrong in 23 of 100 executions with workgroups of 8x8 and 4x16. The shape of the
    report, 1500 x 384 x 384 with 100 replays, is a block of the nightly suite; the sizes here are a tenth."""
    plan = Plan(sgemm, any_bench.name)
    any_bench.replays = 10
    cases = [plan.case({"m": 150, "n": 40, "k": 40}, {"tile": tile}) for tile in G1_01]
    shapes = {sgemm.kernel.passes(case)[0].workgroup for case in cases}
    assert shapes == {(8, 8, 1), (4, 16, 1), (16, 4, 1), (32, 2, 1), (64, 1, 1)}
    found = any_bench.passing([(sgemm, case) for case in cases])
    assert all(list(o.numerics.hashes.values()) == [10 + any_bench.repeats] for o in found)
    assert len({o.numerics.hash for o in found}) == 1, "sums have one order, whatever the shape"


def test_points_that_do_not_exist(sgemm: LoadedKernel) -> None:
    def why(inputs: str = "normal", shape: Mapping[str, AxisValue] = ODD, **axes: AxisValue) -> str | None:
        return sgemm.kernel.invalid(make_case(sgemm.kernel, shape, inputs=inputs, axes=axes))

    assert why() is None
    assert why(precision="fp16") == "precision fp16 needs api vulkan; on GLES use hint mediump"
    assert why(precision="fp16", hint="mediump", api="vulkan") is not None
    assert why(halves="native", api="vulkan") is not None
    assert why(halves="native", precision="fp16_storage") is not None
    assert why(hint="precise") is not None
    assert why(inputs="beyond_half") is None
    assert why(inputs="beyond_half", precision="fp16_storage") is not None
    assert why(inputs="beyond_half", hint="mediump") is not None
    assert why(inputs="cancelling", precision="fp16", api="vulkan") is not None
    assert why(inputs="there_and_back", shape={**ODD, "k": 20}) is not None
    assert why(inputs="constant_16", shape={**ODD, "k": 521}, precision="fp16_storage") is not None
    assert why(shape={**ODD, "batch": 8, "b_batch": 3}) == "b_batch 3 does not divide batch 8"
    assert why(tile="16x16", block="8x16") is None
    assert why(tile="16x16", block="8x8", wave="8x16") is None
    assert why(tile="16x16", block="8x8", wave="16x32") == "wave 16x32 does not divide tile 16x16"
    assert why(tile="16x16", block="8x16", wave="8x8") == "block 8x16 does not divide wave 8x8"
    assert why(source="global") == "source global has no tiles in shared memory: pad must be 0"
    assert why(source="global", pad=0) is None


def test_g1_07_a_wave_that_is_not_a_subgroup_is_invalid(sgemm: LoadedKernel) -> None:
    """G1-07: (BM/WM)*(BN/WN) waves must be workgroup/subgroup subgroups, or no device is asked."""

    def why(**axes: AxisValue) -> str | None:
        axes = {"api": "vulkan", "tile": "64x64", **axes}
        return sgemm.kernel.invalid(make_case(sgemm.kernel, ODD, axes=axes))

    right = {4: "8x8", 8: "8x16", 16: "16x16", 32: "16x32", 64: "32x32", 128: "32x64"}
    for size, wave in right.items():
        for other in right.values():
            waves = 64 * 64 // (int(other.split("x")[0]) * int(other.split("x")[1]))
            reason = f"(BM/WM)*(BN/WN) = {waves} != {256 // size} = workgroup/subgroup"
            assert why(subgroup=size, wave=other) == (None if other == wave else reason)
    assert why(subgroup=32) is not None
    assert why(subgroup=32, wave="16x32", api="gles") is not None

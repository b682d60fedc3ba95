"""What two runs must have in common before they are compared: executions, compiler, features, one clock."""

from dataclasses import replace

import pytest

from orchestrator.analysis.compare import Comparison, compare, epoch_changes
from orchestrator.domain.profile import SubgroupFacts
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.results_fixture import PREVIOUS_RUN_ID, case, hardware, info, passing, results, run_info, timing

GPU = "local-buildhost-h200"
POINT = case(api="vulkan")


def _run(made: Trial, *, replays: int = 12, idle: int = 0, compiler: str = "glslang 1") -> RunResults:
    planned = replace(info(POINT), replays=replays, idle_replays=idle)
    run = replace(run_info(made.run_id), compiler=compiler)
    return results(trials=[made], infos=[planned], devices=[hardware()], run=run)


def _passed(run_id: str = "", bits: str = "a") -> Trial:
    made = passing(POINT, GPU, bits=bits)
    return replace(made, run_id=run_id or made.run_id)


def _wavering() -> Trial:
    return replace(_passed(bits="b"), verdict=Verdict.NONDETERMINISTIC)


def _compared(before: RunResults, after: RunResults) -> Comparison:
    return compare(before, after)


def test_other_numbers_of_executions_are_not_compared_for_steadiness() -> None:
    before = _run(_passed(PREVIOUS_RUN_ID))
    found = _compared(before, _run(_wavering(), replays=59, idle=8))
    change = found.changes[0]
    assert not change.verdict_changed
    assert not change.notable
    assert change.hash_changed is None
    assert change.not_comparable == "executions changed: 12 → 59 + 8 after a rest; steadiness is not compared"
    assert found.notes == (
        "1 case was executed another number of times (12 → 59 + 8 after a rest): "
        "whether results are steady is not compared there",
    )


def test_equal_numbers_of_executions_are() -> None:
    found = _compared(_run(_passed(PREVIOUS_RUN_ID)), _run(_wavering()))
    assert found.changes[0].verdict_changed
    assert found.changes[0].notable
    assert found.notes == ()


def test_other_numbers_of_executions_hide_no_mismatch() -> None:
    wrong = replace(_passed(), verdict=Verdict.MISMATCH)
    assert _compared(_run(_passed(PREVIOUS_RUN_ID)), _run(wrong, replays=59)).changes[0].verdict_changed


@pytest.mark.parametrize(
    ("compiler", "cause"), [("glslang 2", "code"), ("glslang 1", "environment"), ("", "environment")]
)
def test_another_spirv_compiler_is_other_code(compiler: str, cause: str) -> None:
    slower = passing(POINT, GPU, timing(32_000_000), bits="a")
    found = _compared(_run(_passed(PREVIOUS_RUN_ID)), _run(slower, compiler=compiler))
    assert found.changes[0].cause == cause
    assert found.compiler_changed == (cause == "code")
    assert any("SPIR-V compiler changed: glslang 1 → glslang 2" in n for n in found.notes) == (
        cause == "code"
    )


def test_the_spirv_compiler_makes_no_gles_code() -> None:
    point = case(api="gles")

    def run(made: Trial, compiler: str) -> RunResults:
        base = replace(run_info(made.run_id), compiler=compiler)
        return results(trials=[made], points=[point], devices=[hardware()], run=base)

    before = run(passing(point, GPU, run_id=PREVIOUS_RUN_ID), "glslang 1")
    after = run(passing(point, GPU, timing(32_000_000)), "glslang 2")
    assert _compared(before, after).changes[0].cause == "environment"


def test_g1_24_subgroup_size_feature_and_adapter_open_an_epoch() -> None:
    """G1-24: what else of a device decides how its code runs."""
    old = hardware()
    gles, vulkan = old.profiles
    changed = replace(
        vulkan,
        adapter="4-other",
        subgroup=SubgroupFacts(advertised=32, measured=16),
        features=vulkan.features | {"float16": False, "unheard_of": True},
    )
    found = epoch_changes(old, replace(old, profiles=[gles, changed]))
    assert {(e.what, e.before, e.after, e.kind) for e in found} == {
        ("vulkan adapter", vulkan.adapter, "4-other", "device"),
        ("vulkan feature float16", "yes", "no", "device"),
        ("vulkan subgroup size (measured)", "32", "16", "device"),
    }
    assert epoch_changes(old, old) == []


def test_g4_05_two_clock_states_have_no_ratio() -> None:
    """G4-05: no single-number regression from two modes."""
    two = replace(timing(), wall_ns=[10_000_000, 14_000_000] * 10)
    found = _compared(_run(_passed(PREVIOUS_RUN_ID)), _run(passing(POINT, GPU, two, bits="a")))
    assert found.changes[0].ratio is None
    assert found.changes[0].not_comparable == "times in two modes in one run or both"
    assert found.slowdowns(0.1) == ()

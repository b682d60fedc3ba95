"""What ``tilefarm devices`` asks of each API, and what it makes of the answers."""

from dataclasses import replace

from orchestrator.cli.device_probes import SUITE, probed, quick_suite
from orchestrator.cli.options import BUILT_IN_KERNELS
from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Cost
from orchestrator.domain.results import CaseInfo, Missing, Pruned, RunResults
from orchestrator.domain.verdict import Verdict
from orchestrator.planning.expand import expand_blocks
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernels
from tests.results_fixture import device, lavapipe, results, run_info, trial


def kernels() -> dict[str, LoadedKernel]:
    return load_kernels(BUILT_IN_KERNELS)


def cases() -> list[Case]:
    suite = quick_suite({name: k.kernel for name, k in kernels().items()})
    return [case for case, _ in expand_blocks(suite)]


def test_every_point_exists() -> None:
    """A point that no device could run would be noise in the listing."""
    found = cases()
    loaded = kernels()
    assert [c.label for c in found if loaded[c.kernel].kernel.invalid(c)] == []
    asked = [(c.axes["api"], c.axes["asked"]) for c in found if "asked" in c.axes]
    assert len(set(asked)) == len(asked) == 9
    assert {(c.axes["precision"], c.axes["hint"]) for c in found if c.kernel == "fma"} == {
        ("fp32", "highp"), ("fp32", "mediump"), ("fp32", "precise"), ("fp16", "highp"),
    }  # fmt: skip


def _results(**changes: object) -> RunResults:
    infos = {
        c.case_id: CaseInfo(c, "0" * 16, Cost(1, 4, 4), {}, (64, 1, 1), 0, 1, role="probe") for c in cases()
    }
    bare = results(trials=[], points=[], devices=[device("g"), lavapipe("v")], run=run_info(suite=SUITE))
    return replace(bare, cases=infos, **changes)


def _case(api: str, asked: str) -> Case:
    return next(c for c in cases() if c.axes["api"] == api and c.axes.get("asked") == asked)


def test_wrong_and_lost_probes_are_told() -> None:
    wrong = trial(_case("gles", "highp"), "g", Verdict.MISMATCH, reason="exact: 1 of 7")
    found = probed(_results(trials=[wrong]))
    (failed,) = found.failed
    assert (failed.device_id, failed.api, failed.verdict) == ("g", "gles", Verdict.MISMATCH)
    assert found.complete

    lost = Missing("v", _case("vulkan", "fp16").case_id, "the worker went away")
    found = probed(_results(missing=[lost]))
    assert (found.failed[0].api, found.failed[0].reason) == ("vulkan", "the worker went away")
    assert not found.complete


def test_what_a_device_lacks_is_told_and_an_api_that_it_lacks_is_not() -> None:
    def dropped(device_id: str, why: str) -> Pruned:
        return Pruned(device_id, _case("vulkan", "fp16").case_id, Verdict.UNSUPPORTED, [why])

    found = probed(_results(pruned=[dropped("v", "lacks float16"), dropped("g", "lacks api vulkan")]))
    assert found.lacking == {("v", "vulkan"): ["fp16: lacks float16"]}

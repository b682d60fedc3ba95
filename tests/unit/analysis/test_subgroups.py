from dataclasses import replace

from orchestrator.analysis.outcome import judge
from orchestrator.analysis.subgroups import KernelBySize, failures_by_subgroup
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import fma_case, probe_info, probed
from tests.results_fixture import TODAY, case, device, expectation, hardware, info, passing, results, trial

POINTS = [case(api="vulkan", tile=f"{n}x8") for n in range(1, 5)]
OTHER = case("sgemm_tiled", api="vulkan")
DEVICES = [hardware("wide", subgroup=128), hardware("narrow", subgroup=64)]


def _found(*trials: Trial) -> list[KernelBySize]:
    infos = [*(info(p) for p in (*POINTS, OTHER)), probe_info(fma_case("vulkan"))]
    return list(
        failures_by_subgroup(judge(results(trials=trials, infos=infos, devices=DEVICES), TODAY).trials)
    )


def _bad(n: int, where: str = "wide") -> Trial:
    return trial(POINTS[n], where, Verdict.MISMATCH, reason="r")


def test_g1_07_failures_are_grouped_by_measured_subgroup_size() -> None:
    """G1-07: 2 of the cases fail where subgroups measure 128, none where they measure 64."""
    good = [passing(p, "wide") for p in POINTS[2:]] + [passing(p, "narrow") for p in POINTS[:3]]
    found = _found(_bad(0), _bad(1), *good, passing(OTHER, "wide"), passing(OTHER, "narrow"))
    assert [f.sentence for f in found] == [
        "attention_flash: 2 of 4 fail at subgroup 128, 0 of 3 at 64",
    ]


def test_the_measured_size_counts_and_not_the_advertised_one() -> None:
    liar = hardware("wide", subgroup=128)
    profile = liar.profiles[1]
    liar = replace(
        liar, profiles=[replace(profile, subgroup=replace(profile.subgroup, advertised=32, measured=16))]
    )
    run = results(trials=[_bad(0), passing(POINTS[0], "narrow")], points=POINTS, devices=[liar, DEVICES[1]])
    assert failures_by_subgroup(judge(run, TODAY).trials)[0].sizes[0].size == 16


def test_g1_07_a_size_that_the_case_fixes_counts_and_not_the_device_s_default() -> None:
    """G1-07: variants forced to 64 fail on a device that runs 128 by itself; those of its default pass."""
    forced = [replace(p, axes={**p.axes, "subgroup": 64}) for p in POINTS[:2]]
    free = [replace(p, axes={**p.axes, "subgroup": 0}) for p in POINTS[:3]]
    bad = [trial(p, "wide", Verdict.MISMATCH, reason="r") for p in forced]
    run = results(
        trials=[*bad, *(passing(p, "wide") for p in free)], points=[*forced, *free], devices=DEVICES
    )
    assert [f.sentence for f in failures_by_subgroup(judge(run, TODAY).trials)] == [
        "attention_flash: 2 of 2 fail at subgroup 64, 0 of 3 at 128"
    ]


def test_one_size_or_no_failure_says_nothing() -> None:
    assert _found(_bad(0), passing(POINTS[1], "wide")) == []
    assert _found(passing(POINTS[0], "wide"), passing(POINTS[0], "narrow")) == []
    gone = trial(POINTS[0], "narrow", Verdict.INFRA, reason="gone")
    assert _found(_bad(0), gone) == []
    probe = fma_case("vulkan")
    assert _found(probed(probe, "wide", verdict=Verdict.MISMATCH), probed(probe, "narrow")) == []


def test_a_size_that_nothing_measured_is_named_so_and_is_no_second_size() -> None:
    def run(*where: str) -> RunResults:
        trials = [trial(case(), "cpu", Verdict.MISMATCH, reason="r"), *(passing(case(), w) for w in where)]
        return results(trials=trials, points=[case()], devices=[device("cpu"), *DEVICES])

    assert failures_by_subgroup(judge(run("narrow"), TODAY).trials) == ()
    assert failures_by_subgroup(judge(run("narrow", "wide"), TODAY).trials)[0].sentence == (
        "attention_flash: 0 of 1 fail at subgroup 128, 0 of 1 at 64, 1 of 1 at a size that no probe counted"
    )


def test_known_failures_count_as_failures() -> None:
    known = replace(expectation(), soc="*", driver="*")
    run = results(
        trials=[_bad(0), passing(POINTS[1], "narrow")], points=POINTS, devices=DEVICES, expectations=[known]
    )
    found = failures_by_subgroup(judge(run, TODAY).trials)
    assert found[0].sizes[0].failed == 1

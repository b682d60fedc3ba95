from dataclasses import replace

from orchestrator.analysis.hints import HintEffect, hint_effects
from orchestrator.analysis.metrics import baselines, speedup
from orchestrator.analysis.outcome import judge
from orchestrator.domain.case import Case
from orchestrator.domain.device import Soc
from orchestrator.domain.trial import Timing, Trial
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import fma_case, probe_info, probed
from tests.results_fixture import TODAY, case, device, passing, results, timing, trial

HIGH, MEDIUM = (case(hint=h) for h in ("highp", "mediump"))


def _effects(*trials: Trial, points: tuple[Case, ...] = (HIGH, MEDIUM)) -> list[HintEffect]:
    devices = [device(i) for i in dict.fromkeys(t.device_id for t in trials)]
    return hint_effects(judge(results(trials=trials, points=points, devices=devices), TODAY).trials)


def _ran(point: Case, on: str, bits: str, time: Timing | None = None) -> Trial:
    return passing(point, on, time or timing(16_000_000), bits=bits)


def test_g1_14_a_soc_that_ignores_the_hint_and_one_that_obeys_it() -> None:
    ignores = [_ran(HIGH, "ignores", "a"), _ran(MEDIUM, "ignores", "a", timing(16_100_000))]
    obeys = [_ran(HIGH, "obeys", "a"), _ran(MEDIUM, "obeys", "b", timing(9_000_000))]
    first, second = _effects(*ignores, *obeys)
    assert first.device_id == "ignores"
    assert first.no_effect
    assert first.without_effect == ((HIGH.case_id, MEDIUM.case_id),)
    assert first.sentence == (
        "hint has no effect here: highp and mediump gave the same bits in the same time within noise "
        "in all 1 comparison of attention_flash (gles)"
    )
    assert not second.no_effect
    assert second.sentence == (
        "hint changes bits here: highp and mediump differed in 1 of 1 comparison of attention_flash (gles)"
    )


def test_g1_14_same_bits_at_another_speed_is_an_effect() -> None:
    effect = _effects(_ran(HIGH, "d", "a"), _ran(MEDIUM, "d", "a", timing(12_000_000)))[0]
    assert not effect.no_effect
    assert effect.sentence == (
        "hint changes no bits here: highp and mediump differed in time beyond noise "
        "in 1 of 1 comparison of attention_flash (gles)"
    )


def test_g1_14_same_time_by_another_clock_is_no_proof() -> None:
    other = timing(16_000_000, gpu_timer="trusted")
    assert not _effects(_ran(HIGH, "d", "a"), _ran(MEDIUM, "d", "a", other))[0].no_effect


def test_wide_spread_is_noise_and_a_small_one_is_not() -> None:
    def same(spread: float) -> bool:
        slow, fast = timing(16_000_000, spread=spread), timing(15_000_000, spread=spread)
        return _effects(_ran(HIGH, "d", "a", slow), _ran(MEDIUM, "d", "a", fast))[0].no_effect

    assert same(0.09)
    assert not same(0.01)


def test_order_of_trials_does_not_matter() -> None:
    there = _effects(_ran(HIGH, "d", "a"), _ran(MEDIUM, "d", "a"))
    assert there == _effects(_ran(MEDIUM, "d", "a"), _ran(HIGH, "d", "a"))


def test_nothing_is_said_without_two_correct_timed_results() -> None:
    assert _effects(_ran(HIGH, "d", "a")) == []
    assert _effects(_ran(HIGH, "d", "a"), trial(MEDIUM, "d", Verdict.MISMATCH, time=timing())) == []
    assert _effects(_ran(HIGH, "d", "a"), _ran(case(hint="mediump", tile="8x8"), "d", "a"),
                    points=(HIGH, case(hint="mediump", tile="8x8"))) == []  # fmt: skip


def test_g1_14_baselines_are_never_shared_across_socs() -> None:
    """G1-14: a naive time of the SoC that ignores the hint is no baseline for the one that obeys it."""
    naive = case("attention_naive", tile="16x16")
    other = replace(device("b"), soc=Soc("Mali-G715", "ARM", "Mali-G715", "GL_RENDERER", "certain"))
    run = results(
        trials=[_ran(HIGH, "a", "a"), passing(naive, "a", timing(96_000_000)), _ran(HIGH, "b", "a")],
        points=[HIGH, naive],
        devices=[device("a"), other],
    )
    judged = judge(run, TODAY).trials
    known = baselines(judged)
    assert {key[0] for key in known} == {"a"}
    assert [speedup(j, known) for j in judged if j.device.device_id == "b"] == [None]


def test_probes_say_nothing_about_a_hint() -> None:
    probes = [fma_case(hint=h) for h in ("highp", "mediump")]
    run = results(trials=[probed(p, "local-1") for p in probes], infos=[probe_info(p) for p in probes])
    assert hint_effects(judge(run, TODAY).trials) == []

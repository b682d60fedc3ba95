from dataclasses import replace

from orchestrator.analysis.canaries import canary_facts, refused_by_canary
from orchestrator.analysis.outcome import JudgedTrial, judge
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.probes_fixture import vouched
from tests.results_fixture import TODAY, case, hardware, passing, results, trial

TILES = [case(api=api, tile=t) for api in ("gles", "vulkan") for t in ("8x8", "16x8", "32x8")]
GPU = "gpu"
REASON = "canary after the batch took 2.1 ms, expected 0.05 ms to 0.8 ms: throttled"


def _judged(*trials: Trial) -> tuple[JudgedTrial, ...]:
    return judge(results(trials=trials, points=TILES, devices=[hardware(GPU)]), TODAY).trials


def test_range_over_the_batches_of_an_api() -> None:
    good = [
        vouched(passing(TILES[0], GPU), 190_000, 230_000),
        vouched(passing(TILES[1], GPU), 190_000, 230_000),
        vouched(passing(TILES[2], GPU), 210_000, 180_000),
        vouched(passing(TILES[3], GPU), 100_000, 110_000),
    ]
    gles, vulkan = canary_facts(_judged(*good))
    assert (gles.api, gles.low_ns, gles.high_ns, gles.batches, gles.trials) == (
        "gles", 180_000, 230_000, 2, 3,
    )  # fmt: skip
    assert (gles.expected_ns, gles.factor, gles.lost) == (200_000, 4.0, 0)
    assert (vulkan.api, vulkan.high_ns) == ("vulkan", 110_000)


def test_a_batch_that_it_did_not_vouch_for_is_counted_as_lost() -> None:
    refused = trial(TILES[0], GPU, Verdict.INFRA, reason=REASON)
    gone = trial(TILES[1], GPU, Verdict.INFRA, reason="phone vanished with the canary")
    judged = _judged(refused, gone, vouched(passing(TILES[2], GPU)))
    assert [refused_by_canary(j) for j in judged] == [True, False, False]
    facts = canary_facts(judged)[0]
    assert (facts.lost, facts.trials) == (1, 1)


def test_without_a_canary_nothing_is_claimed() -> None:
    assert canary_facts(_judged(passing(TILES[0], GPU))) == ()
    alone = canary_facts(_judged(replace(passing(TILES[0], GPU), verdict=Verdict.INFRA, reason=REASON)))
    assert (alone[0].expected_ns, alone[0].low_ns, alone[0].batches, alone[0].lost) == (0, 0, 0, 1)

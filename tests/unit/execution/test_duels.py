"""Two codes in turns: the job's entries, what samples become, and how many looks are taken."""

from dataclasses import replace
from math import isnan, log
from pathlib import Path

import numpy as np
import pytest

from orchestrator.analysis.speed.confirm import LOOKS
from orchestrator.domain.confirmation import Duel, Wanted
from orchestrator.domain.errors import UsageError
from orchestrator.domain.job import CaseJob
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.duel_jobs import (
    ENTRY_WARMUP_MS,
    Codes,
    NotThere,
    brought_together,
    entries,
    job_of,
)
from orchestrator.execution.duel_samples import duel_of
from orchestrator.execution.duels import Meter, measure_in_turns
from orchestrator.execution.manifest import Manifest, Pool
from orchestrator.storage.blobs import BlobStore
from tests.results_fixture import device, results, run_info
from tests.unit.execution.duel_farm import RUN, Answer, DuelFarm, canary, failed, job, timed

WANTED = Wanted("phone", "5d41402abc4b2a76", "turns", "old", "new", "20261130T010000Z-nightly-aaaa", p=0.001)
CODES = Codes(job(), job(code="new"), "memory://blobs", [canary()])
FIRST = 2 * LOOKS[0].pairs


def answered(effect: float, noise: float = 0.005, seed: int = 1) -> Answer:
    rng = np.random.default_rng(seed)

    def answer(each: CaseJob) -> Trial:
        factor = np.exp(rng.normal(0, noise) + (effect if each.code_hash == "new" else 0.0))
        return timed(each, round(1_000_000 * factor))

    return answer


def fought(farm: DuelFarm, meter: Meter | None = None, *asked: Wanted) -> list[Duel]:
    told: list[Duel] = []
    duels = measure_in_turns(
        [(w, CODES) for w in asked or (WANTED,)], farm.errands(), meter or Meter(), told.append
    )
    assert all(duel in told for duel in duels)
    return duels


def farm(answer: Answer) -> DuelFarm:
    return DuelFarm(workers={"phone": "worker-1", "other": "worker-2"}, answer=answer)


def test_entries_take_turns_and_time_nothing_else() -> None:
    made = entries(CODES, 0, 8)
    assert [e.code_hash for e in made] == ["old", "new", "new", "old", "old", "new", "new", "old"]
    assert [e.case_id for e in made][:3] == [f"5d41402abc4b2a76-0{n}" for n in ("0A", "1B", "2B")]
    assert len({e.case_id for e in made}) == 8
    for e in made:
        assert (e.repeats, e.replays, e.idle_replays, e.idle_ms, e.checks, e.kept) == (1, 1, 0, 0, [], ())
    assert [e.warmup_ms for e in made] == [400, 400, *[ENTRY_WARMUP_MS] * 6]
    assert [e.warmup for e in made] == [2, *[1] * 7]


def test_a_later_look_goes_on_where_the_first_one_ended() -> None:
    whole = [e.case_id for e in entries(CODES, 0, 96)]
    assert whole == [e.case_id for part in ((0, 32), (32, 56), (56, 96)) for e in entries(CODES, *part)]


def test_a_software_driver_is_not_warmed_up() -> None:
    cold = replace(CODES, before=job(warmup_ms=0), after=job(code="new", warmup_ms=0))
    assert {e.warmup_ms for e in entries(cold, 0, 8)} == {0}


def test_codes_that_differ_clearly_need_one_look() -> None:
    made = farm(answered(0.1))
    (duel,) = fought(made)
    assert (duel.answer, duel.pairs, duel.valid, duel.clock, duel.why) == ("different", 16, 16, "gpu", "")
    assert duel.effect == pytest.approx(0.1, abs=0.01)
    assert duel.low < 0.1 < duel.high
    assert (len(duel.latency_ns), len(duel.gpu_hz), len(duel.throttled)) == (32, 32, 32)
    assert [len(batch.cases) for batch, _ in made.sent] == [FIRST]
    assert made.sent[0][0].canaries == [canary()]


def test_a_faster_code_has_a_negative_effect() -> None:
    (duel,) = fought(farm(answered(-0.1)))
    assert (duel.answer, duel.effect < -0.05) == ("different", True)


def test_equal_codes_are_the_same() -> None:
    (duel,) = fought(farm(answered(0.0)))
    assert duel.answer == "same"


def test_an_open_answer_takes_all_looks_and_stays_open() -> None:
    made, meter = farm(answered(0.0, 0.2)), Meter()
    (duel,) = fought(made, meter)
    assert (duel.answer, duel.pairs) == ("unknown", 48)
    assert [len(batch.cases) for batch, _ in made.sent] == [32, 24, 40]
    assert meter.used == 96
    assert len({c.case_id for batch, _ in made.sent for c in batch.cases}) == 96


def test_a_later_look_is_taken_only_where_the_budget_reaches_it() -> None:
    made, meter = farm(answered(0.0, 0.2)), Meter(budget=2 * FIRST + 24)
    surer = replace(WANTED, device_id="other", p=0.00001)
    duels = fought(made, meter, WANTED, surer)
    assert [(d.wanted.device_id, d.pairs) for d in duels] == [("phone", 16), ("other", 28)]
    assert meter.used == meter.budget


def test_who_had_no_second_look_has_no_third() -> None:
    """The surer one's second look came to nothing and left its budget."""
    noisy = answered(0.0, 0.2)

    def answer(each: CaseJob) -> Trial | None:
        place = int(each.case_id[-3:-1])
        if each.deadline_ms == 1 and place >= FIRST:
            return failed(each, Verdict.CRASHED, "signal 11")
        return noisy(each)

    surer = replace(WANTED, device_id="other", p=0.00001)
    hurried = replace(CODES, before=job(deadline_ms=1), after=job(code="new", deadline_ms=1))
    made, meter = farm(answer), Meter(budget=2 * FIRST + 45)
    duels = measure_in_turns([(WANTED, CODES), (surer, hurried)], made.errands(), meter, lambda _: None)
    assert [(d.answer, d.pairs) for d in duels] == [("unknown", 16)] * 2


def test_throttled_pairs_do_not_count() -> None:
    def answer(each: CaseJob) -> Trial:
        return timed(each, 1_000_000, throttled=each.case_id.endswith(("01B", "30B")))

    (duel,) = fought(farm(answer))
    assert (duel.pairs, duel.valid) == (16, 14)


def test_pairs_at_two_clocks_do_not_count() -> None:
    def answer(each: CaseJob) -> Trial:
        return timed(each, 1_000_000, hz=600_000_000 if each.case_id.endswith("01B") else 900_000_000)

    (duel,) = fought(farm(answer))
    assert duel.valid == 15


def test_one_clock_times_all_samples() -> None:
    """A GPU timer that is trusted for one code only would make 50 µs of submission a difference."""

    def answer(each: CaseJob) -> Trial:
        return timed(each, 1_000_000, "disagrees" if each.code_hash == "new" else "trusted")

    (duel,) = fought(farm(answer))
    assert (duel.clock, duel.answer) == ("wall", "same")
    assert set(duel.latency_ns) == {1_050_000}


def test_a_few_samples_without_the_gpu_s_timer_are_left_out() -> None:
    def answer(each: CaseJob) -> Trial:
        return timed(each, 1_000_000, "disagrees" if each.case_id.endswith("04A") else "trusted")

    (duel,) = fought(farm(answer))
    assert (duel.clock, duel.valid, duel.latency_ns[4]) == ("gpu", 15, 0)


def test_a_code_that_fails_gives_no_answer_and_its_reason() -> None:
    def answer(each: CaseJob) -> Trial:
        if each.code_hash == "new":
            return failed(each, Verdict.CRASHED, "the runner's process died in timing: signal 11")
        return timed(each, 1_000_000)

    (duel,) = fought(farm(answer))
    assert (duel.answer, duel.pairs) == ("unknown", 0)
    assert duel.why == "the runner's process died in timing: signal 11"
    assert isnan(duel.effect)


def test_a_later_look_that_comes_to_nothing_leaves_what_was_known() -> None:
    made = farm(answered(0.0, 0.2))
    noisy = made.answer
    assert noisy is not None
    made.answer = lambda each: noisy(each) if len(made.sent) == 1 else failed(each, Verdict.INFRA, "it went")
    (duel,) = fought(made)
    assert (duel.answer, duel.pairs, duel.why) == ("unknown", 16, "it went")


def test_a_phone_that_goes_costs_its_own_duel_only() -> None:
    made = farm(answered(0.1))
    del made.workers["phone"]
    duels = fought(made, None, WANTED, replace(WANTED, device_id="other"))
    assert [(d.answer, d.pairs) for d in duels] == [("unknown", 0), ("different", 16)]
    assert duels[0].why.startswith("no worker for ")


def test_repeats_make_a_sample_a_median() -> None:
    trials = [timed(e, 1_000_000) for e in entries(CODES, 0, FIRST, 3)]
    first = trials[0].timing
    assert first is not None
    trials[0] = replace(trials[0], timing=replace(first, gpu_ns=[1_000_000, 9_000_000, 1_000_000]))
    assert duel_of(WANTED, list(trials)).latency_ns[0] == 1_000_000


def test_an_effect_below_the_case_s_own_threshold_is_none() -> None:
    (duel,) = fought(farm(answered(0.05, 0.002)), None, replace(WANTED, threshold=log(1.10)))
    assert duel.answer == "same"


def manifest(jobs: dict[str, list[CaseJob]], pools: dict[str, Pool] | None = None) -> Manifest:
    planned = results(devices=[device(d) for d in jobs], run=run_info(RUN))
    return Manifest(planned, jobs, "memory://blobs", "nightly", pools=pools or {})


def test_a_phone_gets_its_own_job_else_another_phone_s() -> None:
    own, others = job(estimate_ms=7), job(estimate_ms=9)
    made = manifest({"other": [others], "phone": [own]})
    assert job_of(made, "phone", own.case_id, "old") == own
    assert job_of(made, "third", own.case_id, "old") == others
    pool = manifest({"phone": []}, {"pool0-x": Pool("x", ["phone"], [others])})
    assert job_of(pool, "phone", own.case_id, "old") == others


def test_a_job_of_another_code_is_refused() -> None:
    made = manifest({"phone": [job()]})
    with pytest.raises(NotThere, match=r"has code old of case .*, not new as judged"):
        job_of(made, "phone", job().case_id, "new")
    with pytest.raises(NotThere, match="has no job of case 0bad"):
        job_of(made, "phone", "0bad")


@pytest.fixture
def stores(tmp_path: Path) -> tuple[BlobStore, BlobStore]:
    return BlobStore(f"file://{tmp_path}/old"), BlobStore(f"file://{tmp_path}/new")


def with_blobs(made: CaseJob, store: BlobStore) -> CaseJob:
    shader = store.put(f"shader of {made.code_hash}".encode())
    data = store.put(b"input")
    return replace(
        made,
        passes=[replace(p, shader=shader) for p in made.passes],
        buffers=[replace(b, blob=data) if b.role == "in" else b for b in made.buffers],
    )


def test_an_old_shader_is_brought_to_tonight_s_store(stores: tuple[BlobStore, BlobStore]) -> None:
    old, new = stores
    before, after = with_blobs(job(), old), with_blobs(job(code="new"), new)
    codes = brought_together(before, old.url, after, new.url, [canary(), canary("vulkan")])
    assert new.get(before.passes[0].shader) == b"shader of old"
    assert codes.canaries == [canary()]


def test_a_shader_that_is_gone_is_named(stores: tuple[BlobStore, BlobStore]) -> None:
    old, new = stores
    before, after = with_blobs(job(), old), with_blobs(job(code="new"), new)
    digest = before.passes[0].shader
    (Path(old.url.removeprefix("file://")) / digest[:2] / digest).unlink()
    for url in (old.url, new.url):
        with pytest.raises(NotThere, match=f"its shader {digest[:12]} is no longer in "):
            brought_together(before, url, after, new.url, [])


def test_two_apis_are_not_measured_in_turns(stores: tuple[BlobStore, BlobStore]) -> None:
    with pytest.raises(UsageError, match=r"runs on gles and .* on vulkan"):
        brought_together(job(), stores[0].url, job(api="vulkan"), stores[0].url, [])

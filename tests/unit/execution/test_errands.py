"""Batches beside a run: sent, waited for, and given up without harm."""

from dataclasses import replace

import pytest

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.names import Lane
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.errands import SENDINGS, Done, Errand, ErrandLimits, Errands
from tests.unit.execution.duel_farm import RUN, DuelFarm, canary, failed, job, timed

LIMITS = ErrandLimits(gone_s=60, wait_s=900, silent_s=120, outage_s=10)
TWO = [job("00a1"), job("00b2", "new")]


def farm(*devices: str) -> DuelFarm:
    return DuelFarm(workers=dict.fromkeys(devices or ("phone",), "worker-1"))


def carried_out(errands: Errands, *wanted: Errand) -> list[tuple[str, Done]]:
    found: list[tuple[str, Done]] = []
    errands.run(wanted, lambda errand, done: found.append((errand.device_id, done)))
    return found


def errand(device_id: str = "phone") -> Errand:
    return Errand(device_id, "memory://blobs", TWO, [canary()])


def silent(_job: CaseJob) -> Trial | None:
    return None


def test_a_batch_goes_through_the_device_s_queue_under_an_id_of_its_own() -> None:
    made = farm()
    ((device_id, done),) = carried_out(made.errands(LIMITS), errand())
    ((batch, lane),) = made.sent
    assert (device_id, done.why, sorted(done.trials)) == ("phone", "", ["00a1", "00b2"])
    assert (batch.device_id, lane, batch.canaries) == ("phone", "nightly", [canary()])
    assert batch.run_id != RUN
    assert batch.run_id.startswith("20261201T010000Z-confirm-")
    assert {t.run_id for t in done.trials.values()} == {batch.run_id}
    assert not made.called_back


def test_one_batch_of_a_device_at_a_time_and_devices_beside_each_other() -> None:
    made = farm("phone", "other")
    answers: list[str] = []

    def answer(each: CaseJob) -> Trial | None:
        answers.append(each.case_id)
        return timed(each, 1000)

    made.answer = answer
    errands = made.errands(LIMITS)
    waiting: list[int] = []
    first, second, third = errand(), errand(), errand("other")
    made.at_poll = {1: lambda: waiting.append(len(made.sent))}
    assert len(carried_out(errands, first, second, third)) == 3
    assert waiting == [2], "one to each device"
    assert len(made.sent) == 3


def test_a_worker_that_died_is_sent_the_whole_batch_once_more_under_another_id() -> None:
    made = farm()
    made.answer = silent

    def restart() -> None:
        made.workers["phone"] = "worker-2"
        made.answer = None

    made.at_poll = {5: restart}
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == ""
    first, second = (batch for batch, _ in made.sent)
    assert first.run_id != second.run_id
    assert list(made.called_back) == [first.run_id], "its queued copy is dropped by whoever gets it"


def test_a_worker_that_dies_twice_is_enough() -> None:
    made = farm()
    made.answer = silent
    made.at_poll = {
        5: lambda: made.workers.update(phone="worker-2"),
        20: lambda: made.workers.update(phone="worker-3"),
    }
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == "its worker died in the last of 2 tries"
    assert len(made.sent) == 2
    assert set(made.called_back) == {batch.run_id for batch, _ in made.sent}


def test_a_device_without_a_worker_is_given_up_with_what_is_known_of_it() -> None:
    made = farm("other")
    made.known["phone"] = "offline on shelf-2"
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == "no worker for 60 s (offline on shelf-2)"


def test_a_turn_that_does_not_come_is_not_waited_for() -> None:
    made = farm()
    made.busy = True
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == "its turn did not come within 900 s"


def test_a_device_that_cannot_be_had_is_waited_for_once() -> None:
    made = farm("other")
    errands = made.errands(LIMITS)
    began = made.clock
    found = carried_out(errands, errand(), errand(), errand("other"))
    assert [(d, done.why) for d, done in found] == [
        ("other", ""),
        ("phone", "no worker for 60 s"),
        ("phone", "no worker for 60 s"),
    ]
    assert carried_out(errands, errand())[0][1].why == "no worker for 60 s"
    assert made.clock - began < 2 * LIMITS.gone_s


def test_all_errands_together_take_no_longer_than_a_report_may_wait() -> None:
    made = farm()
    made.busy = True
    errands = made.errands(replace(LIMITS, total_s=300))
    ((_, done),) = carried_out(errands, errand())
    assert done.why == errands.ended == "it took longer than 5 min"
    assert list(made.called_back) == [made.sent[0][0].run_id]


def test_a_batch_that_falls_silent_is_given_up() -> None:
    made = farm()
    made.answer = silent
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == "no news for 150 s", "the longest case may take 30 s"


def test_a_device_that_a_person_holds_is_not_waited_for() -> None:
    made = farm()
    made.answer, made.waits_no_more = silent, {"phone": "held by anna: demo"}
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == "held by anna: demo"


def test_what_a_canary_doubts_is_measured_once_more_and_then_doubted() -> None:
    made = farm()
    made.answer = lambda each: failed(each, Verdict.INFRA, "canary before the batch took 9 ms")
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == "canary before the batch took 9 ms"
    assert len(made.sent) == 2


def test_the_end_of_the_run_ends_all_of_them() -> None:
    made = farm("phone", "other")
    made.answer = silent
    made.at_poll = {9: lambda: made.ended.update({RUN: "the night's deadline of 6 h"})}
    errands = made.errands(LIMITS)
    found = carried_out(errands, errand(), errand(), errand("other"))
    assert [done.why for _, done in found] == ["the night's deadline of 6 h"] * 3
    assert errands.ended == "the night's deadline of 6 h"
    assert set(made.called_back) == {batch.run_id for batch, _ in made.sent}


def test_a_short_outage_is_endured() -> None:
    made = farm()
    made.answer = silent

    def gone() -> None:
        made.redis = ""

    def back() -> None:
        made.redis = "redis-1"
        made.answer = None
        made.waiting = [batch for batch, _ in made.sent]

    made.at_poll = {3: gone, 20: back}
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == ""


def test_a_broker_that_stays_away_costs_the_answers_only() -> None:
    made = farm()
    made.answer = silent

    def gone() -> None:
        made.redis = ""

    made.at_poll = {3: gone}
    errands = made.errands(LIMITS)
    ((_, done),) = carried_out(errands, errand())
    assert done.why == errands.ended
    assert done.why.startswith("the broker stayed away: ")


def test_workers_have_the_usual_time_after_an_outage() -> None:
    """None of them could register, begin or tell anything, for longer than each of these may take."""
    made = farm("phone", "slow")
    made.answer = silent
    workers = dict(made.workers)

    def gone() -> None:
        made.redis = ""
        made.workers.clear()

    def back() -> None:
        made.redis = "redis-1"
        made.answer = None
        made.waiting = [batch for batch, _ in made.sent]

    made.at_poll = {3: gone, 4600: back, 4900: lambda: made.workers.update(workers)}
    found = carried_out(made.errands(replace(LIMITS, outage_s=1000)), errand(), errand("slow"))
    assert made.clock > 1000 + LIMITS.wait_s
    assert [done.why for _, done in found] == ["", ""]
    assert len(made.sent) == 2


def test_what_redis_may_have_lost_is_sent_once_more_under_another_id() -> None:
    made = farm("phone", "other")
    made.answer = silent

    def restart() -> None:
        made.restart()
        made.waiting.clear()
        made.answer = None

    made.at_poll = {3: restart}
    found = carried_out(made.errands(LIMITS), errand(), errand("other"))
    assert [done.why for _, done in found] == ["", ""]
    first = [batch.run_id for batch, _ in made.sent[:2]]
    assert list(made.called_back) == first, "a copy that was kept is dropped by whoever gets it"
    assert {t.run_id for _, done in found for t in done.trials.values()}.isdisjoint(first)
    assert len(made.sent) == 4


def test_what_the_first_sending_still_delivers_after_a_restart_of_redis_is_ignored() -> None:
    """Its queue was kept, or its worker had it in hand and did not hear that nobody waits for it."""
    made = farm()
    made.answer = silent

    def late() -> None:
        (first, _), *_ = made.sent
        for each in TWO:
            made.tell(first.run_id, replace(timed(each, 7), run_id=first.run_id))

    def answers() -> None:
        made.answer = None
        made.waiting = [batch for batch, _ in made.sent[1:]]

    made.at_poll = {3: made.restart, 9: late, 15: answers, 16: late}
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert made.polls >= 15
    assert done.why == ""
    assert {t.run_id for t in done.trials.values()} == {made.sent[1][0].run_id}
    assert 7 not in [t.timing.gpu_ns[0] for t in done.trials.values() if t.timing]


def test_what_was_all_in_when_redis_was_restarted_is_not_sent_again() -> None:
    made = farm()
    made.answer = silent

    def delivered() -> None:
        ((batch, _),) = made.sent
        for each in TWO:
            made.tell(batch.run_id, replace(timed(each, 1000), run_id=batch.run_id))
        made.restart()

    made.at_poll = {4: delivered}
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert (done.why, len(made.sent), sorted(done.trials)) == ("", 1, ["00a1", "00b2"])


def test_a_redis_that_is_restarted_again_and_again_costs_the_answer() -> None:
    made = farm()
    made.answer = silent
    made.at_poll = {3: made.restart, 9: made.restart}
    ((_, done),) = carried_out(made.errands(LIMITS), errand())
    assert done.why == "Redis was restarted meanwhile"
    assert len(made.sent) == SENDINGS
    assert set(made.called_back) == {batch.run_id for batch, _ in made.sent}


def test_a_redis_that_goes_away_amid_sending_again_has_each_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = farm("phone", "other")
    made.answer = silent
    send, fails = DuelFarm.send, iter([False, False, False, True])

    def sending(there: DuelFarm, batch: Batch, lane: Lane) -> None:
        if next(fails, False):
            raise BrokerUnavailable("broker redis://made-up: away")
        send(there, batch, lane)

    def restart() -> None:
        made.restart()
        made.answer = None

    monkeypatch.setattr(DuelFarm, "send", sending)
    made.at_poll = {3: restart}
    found = carried_out(made.errands(LIMITS), errand(), errand("other"))
    assert [done.why for _, done in found] == ["", ""]
    assert [batch.device_id for batch, _ in made.sent] == ["phone", "other", "phone", "other"]


def test_whoever_stops_waiting_calls_back_what_is_queued() -> None:
    made = farm()
    made.answer = silent

    def interrupt() -> None:
        raise KeyboardInterrupt

    made.at_poll = {4: interrupt}
    try:
        carried_out(made.errands(LIMITS), errand())
    except KeyboardInterrupt:
        assert list(made.called_back) == [made.sent[0][0].run_id]
    else:
        raise AssertionError("the interruption was swallowed")

"""Results in a real Redis: inserted once, whoever inserts them and how often."""

import threading
from collections.abc import Generator
from dataclasses import replace

import pytest
import structlog

from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch, BufferJob, CaseJob
from orchestrator.domain.names import RUN_KEYS_TTL_S, celery_settings, events_key, trials_key
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import MAX_MESSAGE_BYTES, pack
from orchestrator.execution.broker import Broker
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.redis_client import RedisClient, connect
from tests.results_fixture import case, trial
from tests.unit.execution.redis_fixture import raw_client, seconds_left
from workers import run_watch
from workers.results import ResultSink
from workers.run_watch import RunWatch

POINT = case()
TRIAL = trial(POINT, "phone")


@pytest.fixture
def broker(redis_url: str) -> Generator[Broker]:
    found = Broker(redis_url)
    yield found
    found.close()


def job(case_id: str, attempt: int = 1) -> CaseJob:
    return CaseJob(case_id, attempt, case_id, "gles", "c0de", [], [], [])


def stored(broker: Broker, run_id: str) -> list[Trial]:
    return [e for e in told(broker, run_id) if isinstance(e, Trial)]


def told(broker: Broker, run_id: str) -> list[Trial | Progress | None]:
    return [event for _, event in broker.events(run_id, "0", 1)]


def test_the_second_result_of_a_key_is_dropped(client: RedisClient, broker: Broker) -> None:
    sink = ResultSink(client, "run-twice")
    assert sink.insert(replace(TRIAL, reason="first"))
    assert not sink.insert(replace(TRIAL, reason="second", verdict=Verdict.MISMATCH))
    assert sink.insert(replace(TRIAL, attempt=2, reason="another attempt"))
    assert [t.reason for t in stored(broker, "run-twice")] == ["first", "another attempt"]


def test_g2_04_of_twenty_at_once_one_wins_each_round(redis_url: str, broker: Broker) -> None:
    rounds, threads = 10, 20
    clients = [connect(redis_url) for _ in range(threads)]
    together = threading.Barrier(threads)
    wins: list[tuple[int, int]] = []

    def compete(me: int) -> None:
        sink = ResultSink(clients[me], "run-race")
        for number in range(rounds):
            together.wait()
            if sink.insert(replace(TRIAL, attempt=number + 1, reason=f"by {me}")):
                wins.append((number, me))

    competitors = [threading.Thread(target=compete, args=(n,)) for n in range(threads)]
    for one in competitors:
        one.start()
    for one in competitors:
        one.join()
    for client in clients:
        client.close()
    assert sorted(number for number, _ in wins) == list(range(rounds))
    kept = {(t.attempt - 1, int(t.reason.split()[1])) for t in stored(broker, "run-race")}
    assert kept == set(wins), "the one that was told it won is the one whose result is there"


def test_a_result_that_is_too_long_to_send_is_told_without_its_measurement(
    client: RedisClient, broker: Broker
) -> None:
    """Its case would be waited for otherwise, and run again and again."""
    assert ResultSink(client, "run-long").insert(replace(TRIAL, log="x" * MAX_MESSAGE_BYTES))
    (found,) = stored(broker, "run-long")
    assert (found.key, found.verdict) == (TRIAL.key, Verdict.INFRA)
    assert "its pass cannot be sent: Trial: 1049001 bytes" in found.reason


def test_a_repeated_batch_leaves_out_what_is_done(client: RedisClient) -> None:
    sink = ResultSink(client, "run-again")
    sink.insert(TRIAL)
    jobs = [job(POINT.case_id), job(POINT.case_id, 2), job("other")]
    assert sink.not_done("phone", jobs) == jobs[1:]
    assert sink.not_done("another-phone", jobs) == jobs
    assert ResultSink(client, "another-run").not_done("phone", jobs) == jobs


def test_progress_and_trials_share_one_order(client: RedisClient, broker: Broker) -> None:
    sink = ResultSink(client, "run-order-2")
    news = [Progress("phone", "batch", detail="b1"), Progress("phone", "started", POINT.case_id)]
    for one in news:
        sink.progress(one)
    sink.insert(TRIAL)
    assert told(broker, "run-order-2") == [*news, TRIAL]


def test_g3_08_what_a_run_leaves_in_redis_ends_by_itself(client: RedisClient, redis_url: str) -> None:
    ResultSink(client, "run-ttl").insert(TRIAL)
    for key in (trials_key("run-ttl"), events_key("run-ttl")):
        assert 0 < seconds_left(redis_url, key) <= RUN_KEYS_TTL_S


def test_g3_08_messages_carry_ids_and_digests_and_nobody_answers_them() -> None:
    """G3-08: tensors of gigabytes make no message longer, and no reply is kept for anybody."""
    buffers = [BufferJob("q", "in", "f32", count, "a" * 64) for count in (4, 1 << 30)]
    small, large = (
        len(pack(Batch("run", "b", "phone", "memory://b", [replace(job("case"), buffers=[buffer])])))
        for buffer in buffers
    )
    assert large - small < 16
    settings = celery_settings()
    assert settings["task_ignore_result"]
    assert not settings["worker_enable_remote_control"], "inspect would leave a reply queue at each call"


def test_g3_08_news_alone_ends_by_itself_too(client: RedisClient, redis_url: str) -> None:
    """A run whose batches all ended without a result."""
    ResultSink(client, "run-news").progress(Progress("phone", "waiting"))
    assert 0 < seconds_left(redis_url, events_key("run-news")) <= RUN_KEYS_TTL_S


def test_news_that_cannot_be_told_costs_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try may take seconds on a link that hangs, in which the runner's output is not read."""
    monkeypatch.setattr(run_watch, "POLL_S", 0.0)
    with private_redis() as url:
        client = connect(url)
    sink, run = ResultSink(client, "run-gone"), RunWatch(client, "run-gone", "phone")
    with structlog.testing.capture_logs() as logs:
        for n in range(3):
            sink.progress(Progress("phone", "started", f"case-{n}"))
            run.check()
    client.close()
    events = [entry["event"] for entry in logs]
    assert events == ["progress not told", "whether the run goes on is not known"], "each is tried once"


def test_g3_03_connections_that_are_cut_cost_nothing(
    client: RedisClient, broker: Broker, redis_url: str
) -> None:
    """CLIENT KILL of everybody, three times, between and before every kind of call."""
    sink = ResultSink(client, "run-cut")
    for attempt in range(1, 4):
        with raw_client(redis_url) as raw:
            raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        sink.progress(Progress("phone", "batch", detail=f"b{attempt}"))
        assert sink.not_done("phone", [job(POINT.case_id, attempt)]) == [job(POINT.case_id, attempt)]
        assert sink.insert(replace(TRIAL, attempt=attempt))
        broker.send(Batch("run-cut", f"b{attempt}", "cut-phone", "memory://b"), "ondemand")
    assert [t.attempt for t in stored(broker, "run-cut")] == [1, 2, 3]
    with raw_client(redis_url) as raw:
        assert raw.llen("tilefarm:celery:device.cut-phone.ondemand") == 3

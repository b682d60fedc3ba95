"""The orchestrator's side of a real Redis."""

import base64
import json
import socket
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest
import redis

from orchestrator.domain.agent import AgentReport, PhoneReport
from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.health import Condition
from orchestrator.domain.job import Batch
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import (
    RUN_BATCH_TASK,
    RUN_KEYS_TTL_S,
    agent_key,
    device_key,
    device_queue,
    events_key,
    hold_key,
    run_key,
    worker_queues,
)
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import pack, unpack
from orchestrator.execution.broker import Broker
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.redis_client import RedisClient, connect, shown
from tests.results_fixture import device
from tests.unit.domain.messages import BATCH, TRIAL
from tests.unit.execution.redis_fixture import raw_client, seconds_left


@pytest.fixture
def broker(redis_url: str) -> Generator[Broker]:
    found = Broker(redis_url)
    yield found
    found.close()


@pytest.fixture
def redis_py(redis_url: str) -> Generator[Any]:
    with raw_client(redis_url) as found:
        yield found


def read(broker: Broker, run_id: str, after: str = "0") -> list[tuple[str, Trial | Progress | None]]:
    return list(broker.events(run_id, after, block_ms=1))


def test_events_come_in_order_and_after_the_one_given(broker: Broker, redis_py: Any) -> None:
    key = events_key("run-order")
    told = [Progress("phone", "started", f"case-{n}") for n in range(3)]
    for news in told:
        redis_py.xadd(key, {"progress": pack(news)})
    redis_py.xadd(key, {"key": TRIAL.key, "device": TRIAL.device_id, "trial": pack(TRIAL)})
    found = read(broker, "run-order")
    assert [e for _, e in found[:3]] == told
    assert isinstance(found[3][1], Trial)
    assert found[3][1].key == TRIAL.key
    after_second = found[1][0]
    assert [e for _, e in read(broker, "run-order", after_second)][:1] == told[2:]
    assert read(broker, "run-order", found[3][0]) == []


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (pack(TRIAL).replace('"wire": 1', '"wire": 2'), "wire version 2, and this Tilefarm reads version 1"),
        (pack(TRIAL).replace(TRIAL.case_id, "other"), "lies under"),
        (pack(TRIAL)[:-9], "no JSON"),
    ],
)
def test_a_result_of_another_version_ends_no_run(broker: Broker, redis_py: Any, told: str, says: str) -> None:
    """Its case is told as one of infrastructure, with both versions; what comes after it is read."""
    run_id = f"run-{len(told)}"
    redis_py.xadd(events_key(run_id), {"key": TRIAL.key, "device": "phone-7", "trial": told})
    redis_py.xadd(events_key(run_id), {"progress": "nothing that we know"})
    redis_py.xadd(events_key(run_id), {"key": "no/key", "trial": told})
    redis_py.xadd(events_key(run_id), {"key": TRIAL.key, "trial": pack(TRIAL)})
    refused, *others, good = [event for _, event in read(broker, run_id)]
    assert isinstance(refused, Trial)
    assert (refused.key, refused.device_id, refused.verdict) == (TRIAL.key, "phone-7", Verdict.INFRA)
    assert says in refused.reason
    assert others == [None, None]
    assert repr(good) == repr(TRIAL)


def test_a_run_without_events_gives_none(broker: Broker) -> None:
    assert read(broker, "run-that-nobody-started") == []


def test_runs_do_not_see_each_others_events(broker: Broker, redis_py: Any) -> None:
    redis_py.xadd(
        events_key("run-theirs"), {"key": TRIAL.key, "device": TRIAL.device_id, "trial": pack(TRIAL)}
    )
    assert read(broker, "run-ours") == []


def test_registrations_are_those_of_living_workers(broker: Broker, client: RedisClient) -> None:
    names = ["reg-b", "reg-a"]
    for name in names:
        registration = Registration(device(name), f"worker-{name}", "2026-12-01T01:00:00+00:00", 4711)
        client.set(device_key(name), pack(registration), ex=100)
    found = {d: r for d, r in broker.registrations().items() if d.startswith("reg-")}
    assert list(found) == ["reg-a", "reg-b"]
    assert found["reg-b"].worker_id == "worker-reg-b"
    client.delete(device_key("reg-a"))
    assert "reg-a" not in broker.registrations()
    client.delete(device_key("reg-b"))


def test_a_batch_lies_in_its_devices_queue_as_plain_json(redis_url: str, broker: Broker) -> None:
    broker.send(BATCH, "nightly")
    library: Any = redis
    raw = library.Redis.from_url(redis_url.replace("redis+socket://", "unix://"))
    queue = f"tilefarm:celery:{device_queue(BATCH.device_id, 'nightly')}"
    message = json.loads(raw.lpop(queue))
    raw.close()
    assert message["content-type"] == "application/json"
    assert message["headers"]["task"] == RUN_BATCH_TASK
    arguments = json.loads(base64.b64decode(message["body"]))[0]
    assert unpack(Batch, arguments[0], "queue") == BATCH


def test_a_run_is_known_from_its_first_batch_on(broker: Broker, redis_url: str) -> None:
    """It may wait behind a nightly run for hours, without any news: it can be cancelled all the same."""
    assert not broker.cancel("queued-run", "wrong branch")
    broker.send(replace(BATCH, run_id="queued-run", device_id="queued"), "nightly")
    assert broker.cancel("queued-run", "wrong branch")
    assert broker.cancelled("queued-run") == "wrong branch"
    assert 0 < seconds_left(redis_url, run_key("queued-run")) <= RUN_KEYS_TTL_S
    broker.go_on("queued-run")
    assert broker.cancelled("queued-run") == ""


def test_what_is_known_of_a_device_without_a_worker(broker: Broker, client: RedisClient) -> None:
    phones = [
        PhoneReport("R58", "where-lost", Condition.RECOVERING, "reboot failed", "2026-12-01T01:00:00+00:00"),
        PhoneReport("R59", "where-new", Condition.ONLINE, "", "2026-12-01T01:00:00+00:00"),
    ]
    report = AgentReport("shelf-1", 1, "2026-12-01T01:00:00+00:00", "adb", phones)
    hold = Hold("where-held", "anna@desk", "new battery", "2026-12-01T01:00:00+00:00")
    client.set(agent_key("shelf-1"), pack(report), ex=60)
    broker.hold(hold)
    try:
        names = ("where-lost", "where-new", "where-held", "where-nobody-knows")
        assert [broker.whereabouts(name) for name in names] == [
            "recovering on shelf-1: reboot failed",
            "online on shelf-1",
            hold.sentence,
            "",
        ]
    finally:
        broker.release(hold)
        client.delete(agent_key("shelf-1"))


def test_one_host_of_another_version_does_not_hide_the_others(broker: Broker, client: RedisClient) -> None:
    good = Registration(device("version-good"), "worker-1", "2026-12-01T01:00:00+00:00", 4711)
    report = AgentReport("version-good", 1, "2026-12-01T01:00:00+00:00", "adb")
    keys = {
        device_key("version-bad"): '{"wire": 99}',
        device_key("version-good"): pack(good),
        agent_key("version-bad"): "no JSON",
        agent_key("version-good"): pack(report),
        hold_key("version-held"): '{"wire": 99}',
    }
    for key, text in keys.items():
        client.set(key, text, ex=60)
    try:
        assert "version-good" in broker.registrations()
        assert "version-bad" not in broker.registrations()
        assert report in broker.agents()
        assert "cannot be read" in broker.holds()["version-held"].why, "it keeps workers out all the same"
    finally:
        for key in keys:
            client.delete(key)


def test_on_demand_work_is_served_before_nightly_work() -> None:
    queues = worker_queues("phone", "Adreno (TM) 750")
    soc = "soc.adreno-tm-750-cef2777b"
    assert queues == ["device.phone.ondemand", f"{soc}.ondemand", "device.phone.nightly", f"{soc}.nightly"]


def test_nothing_there_says_so_at_once() -> None:
    with pytest.raises(BrokerUnavailable, match=r"broker redis\+socket:///nowhere/redis\.sock"):
        Broker("redis+socket:///nowhere/redis.sock")


def test_a_server_that_takes_calls_and_never_answers_is_not_waited_for_longer_than_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        with pytest.raises(BrokerUnavailable, match=f"broker {url}"):
            connect(url, answer_s=0.05)


@pytest.mark.parametrize("url", ["http://somewhere", "redis://[broken", "nonsense"])
def test_a_url_that_is_none_is_unavailable(url: str) -> None:
    with pytest.raises(BrokerUnavailable, match="TILEFARM_BROKER"):
        connect(url)


def test_g3_03_a_server_that_goes_away_is_an_error_of_ours() -> None:
    """Each call says so and how to go on, instead of a traceback of the client library."""
    with private_redis() as url:
        broker = Broker(url)
        broker.send(BATCH, "ondemand")
    for call in (
        lambda: broker.send(BATCH, "ondemand"),
        broker.registrations,
        lambda: read(broker, "run-1"),
    ):
        with pytest.raises(BrokerUnavailable, match="--resume"):
            call()
    broker.close()


def test_passwords_stay_out_of_messages() -> None:
    assert shown("redis://user:secret@farm:6379/0") == "redis://farm:6379/0"
    assert shown("redis+socket:///tmp/redis.sock") == "redis+socket:///tmp/redis.sock"
    assert shown("rediss://:se/cr@et@farm:6379/0?password=secret") == "rediss://farm:6379/0"
    for url in ("redis://:secret@127.0.0.1:1/0", "redis://:secret/cut@farm/0", "redis://farm?cret=secret"):
        with pytest.raises(BrokerUnavailable) as caught:
            connect(url)
        assert "secret" not in str(caught.value)

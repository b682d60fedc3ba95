"""Redis blips and a worker that lives and consumes nothing (field case G3-03)."""

import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from celery import signals
from kombu.transport import redis as transport
from kombu.transport import virtual

from orchestrator.domain.names import CELERY_PREFIX, trials_key
from orchestrator.domain.trial import Trial, trial_key
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.broker import Broker
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.redis_client import RedisClient, connect
from tests.unit.execution.redis_fixture import raw_client
from tests.unit.workers.fake_device import FakeDevice, bench
from tests.unit.workers.jobs import Stock
from tests.unit.workers.test_outage import Server, server
from workers.acks import ForgetfulQoS
from workers.consumption import STALL_S, Consumption
from workers.lifetime import dies_with_us

BATCHES = 30
_WORKER = """
import sys
from orchestrator.storage.redis_client import connect
from tests.unit.workers.fake_device import FakeDevice, bench
from workers.serve import work
from workers.tasks import make_app
client, phone = connect(sys.argv[1]), bench(FakeDevice())
work(make_app(sys.argv[1], phone, client, "worker-1"), phone)
"""


@pytest.fixture
def farm() -> Generator[Server]:
    with server(keeps=True) as found:
        yield found


@contextmanager
def worker(farm: Server, folder: Path) -> Generator[None]:
    """A real Celery worker with a phone of memory."""
    with (folder / "worker.log").open("wb") as log:
        words = dies_with_us([sys.executable, "-c", _WORKER, farm.url])
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def until(true: Callable[[], bool]) -> None:
    for _ in range(6000):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came to that")


def test_g3_03_thirty_batches_over_three_cuts_and_a_restart(
    farm: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G3-03: CLIENT KILL of everybody three times, one restart: all batches end, each case once.

    What Redis had given away on a link that was cut just then is in no queue (kombu takes with BRPOP): it is
    sent again, as dispatchers do after a restart and after some minutes of silence.

    G3-08: what is in Redis afterwards does not grow with their number.
    """
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of its locks
    stock = Stock(BlobStore((tmp_path / "blobs").as_uri()))

    def there() -> set[bytes]:
        client = connect(farm.url)
        found = client.hgetall(trials_key("blips"))
        client.close()
        return set(found)

    def done() -> int:
        return len(there())

    def send_missing() -> None:
        broker, known = Broker(farm.url), there()
        for n in range(BATCHES):
            if trial_key("fake-1", f"case-{n}", 1).encode() not in known:
                job = stock.job(f"case-{n}")
                broker.send(stock.batch(job, run_id="blips", batch_id=f"b{n}"), "nightly")
        broker.close()

    send_missing()

    with worker(farm, tmp_path):
        for cut in range(1, 4):
            until(lambda cut=cut: done() >= 5 * cut)
            with raw_client(farm.url) as raw:
                raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        until(lambda: done() >= 20)
        farm.kill()
        farm.start()
        send_missing()
        until(lambda: done() == BATCHES)
    broker = Broker(farm.url)
    trials = [e for _, e in broker.events("blips", "0", 1) if isinstance(e, Trial)]
    assert sorted(t.case_id for t in trials) == sorted(f"case-{n}" for n in range(BATCHES))
    assert {t.verdict for t in trials} == {Verdict.PASS}
    broker.close()
    client = connect(farm.url)
    kept = [key.decode() for key in client.scan_iter(match="*")]
    client.close()
    assert len(kept) < BATCHES
    assert not [key for key in kept if "reply" in key or "pidbox" in key or "meta" in key]


def test_what_a_phone_may_not_do_keeps_it_from_no_other_work(
    farm: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody takes the batch on demand that is for another phone of the SoC; the night goes on meanwhile."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of its locks
    stock, broker = Stock(BlobStore((tmp_path / "blobs").as_uri())), Broker(farm.url)
    theirs = stock.batch(stock.job("case-1"), run_id="theirs")
    soc = bench(FakeDevice()).record.soc.name
    broker.send(replace(theirs, device_id="", soc=soc, only_on=["other"], planned_for="pool0-x"), "ondemand")
    for n in range(2):
        broker.send(stock.batch(stock.job(f"case-{n}"), run_id="ours", batch_id=f"b{n}"), "nightly")
    with worker(farm, tmp_path):
        client = connect(farm.url)
        until(lambda: len(client.hgetall(trials_key("ours"))) == 2)
        assert client.hgetall(trials_key("theirs")) == {}
        client.close()
    broker.close()


def test_g3_03_a_batch_whose_end_redis_did_not_hear_of_leaves_its_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G3-03: with one batch at a time the worker would take no other one, and live on."""

    def cut(_qos: object, _tag: str) -> None:
        raise redis.ConnectionError("reset by peer")

    monkeypatch.setattr(transport.QoS, "ack", cut)
    qos = ForgetfulQoS(SimpleNamespace(do_restore=False), prefetch_count=1)
    virtual.QoS.append(qos, "a message", "tag")
    assert not qos.can_consume()
    with pytest.raises(redis.ConnectionError):
        qos.ack("tag")
    assert qos.can_consume()


class Watched:
    """A consumption whose clock is ours, and that tells instead of leaving."""

    def __init__(self, client: RedisClient, queue: str) -> None:
        self.now = 1000.0
        self.left = 0
        self.consumption = Consumption(client, ["empty", queue], clock=lambda: self.now, leave=self._leave)

    def _leave(self) -> None:
        self.left += 1

    def after(self, seconds: float) -> int:
        self.now += seconds
        self.consumption.look()
        return self.left


def queued(redis_url: str, queue: str) -> None:
    with raw_client(redis_url) as raw:
        raw.rpush(CELERY_PREFIX + queue, "a batch")


def test_g3_03_a_worker_that_takes_nothing_makes_room_for_another(
    client: RedisClient, redis_url: str
) -> None:
    """G3-03: alive, heartbeat fine, consumes nothing."""
    watched = Watched(client, "stalled")
    assert watched.after(10 * STALL_S) == 0, "nothing waits"
    queued(redis_url, "stalled")
    assert watched.after(1) == 0
    assert watched.after(STALL_S - 1) == 0
    assert watched.after(2) == 1


def test_a_long_batch_is_no_stall(client: RedisClient, redis_url: str) -> None:
    watched = Watched(client, "busy")
    queued(redis_url, "busy")
    watched.after(0)
    watched.consumption.start()
    try:
        signals.task_prerun.send(None)
        assert watched.after(100 * STALL_S) == 0
        signals.task_postrun.send(None)
        assert watched.after(STALL_S - 1) == 0, "it has a moment to take the next one"
        assert watched.after(STALL_S - 1) == 0
        assert watched.after(2) == 1
    finally:
        watched.consumption.stop()
    signals.task_prerun.send(None)
    assert watched.after(STALL_S) == 2, "once stopped it hears of no batch"


def test_a_redis_that_is_away_is_no_stall(
    client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(client, "away")
    queued(redis_url, "away")
    watched.after(0)

    def away(name: str) -> int:
        raise redis.ConnectionError(name)

    with monkeypatch.context() as patched:
        patched.setattr(client, "llen", away)
        assert watched.after(10 * STALL_S) == 0
    assert watched.after(1) == 0, "it waits anew"
    assert watched.after(STALL_S) == 1

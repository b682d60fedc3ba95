"""Redis ends in the middle of a batch and comes back: nothing is measured twice, and nobody is blamed."""

import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis
from celery.worker import state as celery_state

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.event import Registration
from orchestrator.domain.job import CaseJob
from orchestrator.domain.names import begun_key, device_key, lease_key
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import pack
from orchestrator.execution.private_redis import redis_server_program
from orchestrator.storage.redis_client import RedisClient, connect
from tests.unit.workers.fake_device import FakeDevice, bench
from tests.unit.workers.jobs import Stock
from tests.unit.workers.told import trials
from workers import locks, patience, run_watch
from workers.lifetime import dies_with_us
from workers.losses import Losses
from workers.tasks import handle


class Server:
    """A redis-server of one test alone, which may be killed and started again."""

    def __init__(self, folder: Path, *, keeps: bool) -> None:
        self.url = f"redis+socket://{folder / 'redis.sock'}"
        self._command = [redis_server_program(), "--port", "0", "--save", "", "--dir", str(folder)]
        self._command += ["--unixsocket", str(folder / "redis.sock")]
        if keeps:
            self._command += ["--appendonly", "yes", "--appendfsync", "always"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(dies_with_us(self._command), stdout=subprocess.DEVNULL)
        for _ in range(500):
            with suppress(BrokerUnavailable):
                connect(self.url).close()
                return
            threading.Event().wait(0.02)
        raise AssertionError("redis-server did not start")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def server(*, keeps: bool) -> Generator[Server]:
    with tempfile.TemporaryDirectory(prefix="tilefarm-") as folder:  # a socket's path must be short
        found = Server(Path(folder), keeps=keeps)
        found.start()
        try:
            yield found
        finally:
            found.kill()


@pytest.fixture(autouse=True)
def _quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks of its own, and a poll at every line of output."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(locks, "lock_folder", lambda: folder)
    monkeypatch.setattr(run_watch, "POLL_S", 0.0)
    monkeypatch.setattr(patience, "POLL_S", 0.02)


def once(act: Callable[[], None]) -> Callable[[bytes], bytes]:
    """Do it while the phone's output comes in, the first time."""
    left = [act]

    def hook(text: bytes) -> bytes:
        if left:
            left.pop()()
        return text

    return hook


@pytest.mark.parametrize("keeps", [True, False], ids=["with its data", "empty"])
def test_g3_03_a_redis_that_restarts_during_a_batch_costs_nothing(
    phone: FakeDevice, stock: Stock, *, keeps: bool
) -> None:
    """G3-03: the cancel poll, renewals, results and notes all meet the outage; the batch runs once."""
    with server(keeps=keeps) as redis_server:
        client = connect(redis_server.url)
        back = threading.Timer(0.3, redis_server.start)

        def restart() -> None:
            redis_server.kill()
            back.start()

        phone.stdout = once(restart)
        batch = stock.batch(stock.job("case-1"), stock.job("case-2"), run_id="outage")
        handle(batch, bench(phone), client, "worker-1")
        back.join()
        assert [t.verdict for t in trials(redis_server.url, "outage")] == [Verdict.PASS] * 2
        assert len(phone.jobs) == 1
        assert client.hgetall(begun_key("outage")) == {}
        client.close()


def test_outages_without_end_blame_no_shader(
    phone: FakeDevice, stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results cannot be told, twice, while the case runs alone: the worker lives all the same."""
    monkeypatch.setattr(patience, "OUTAGE_S", 0.0)
    batch = stock.batch(stock.job("case-1"), run_id="outage-long")
    with server(keeps=True) as redis_server:
        for _ in range(3):
            client = connect(redis_server.url)
            client.delete(lease_key("fake-1"))  # it would have ended by itself after 15 s
            phone.stdout = once(redis_server.kill)
            with pytest.raises(redis.RedisError):
                handle(batch, bench(phone), client, "worker-1")
            client.close()
            redis_server.start()
        client = connect(redis_server.url)
        client.delete(lease_key("fake-1"))
        assert client.hgetall(begun_key("outage-long")) == {b"fake-1/case-1/1": b"worker-1"}
        phone.stdout = lambda text: text
        handle(batch, bench(phone), client, "worker-1")
        assert [t.verdict for t in trials(redis_server.url, "outage-long")] == [Verdict.PASS]
        assert client.hgetall(begun_key("outage-long")) == {}
        client.close()


def test_a_worker_that_is_told_to_stop_does_not_wait_for_a_redis_that_ended_with_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its run was killed, and the private Redis with it: nobody starts that again."""
    monkeypatch.setattr(patience, "STOPPING_S", 0.0)
    with server(keeps=False) as redis_server:
        client = connect(redis_server.url)
    tries: list[int] = []

    def ping() -> bool:
        tries.append(1)
        if len(tries) == 3:
            monkeypatch.setattr(celery_state, "should_stop", 0)  # as its handler of SIGTERM does
        return client.ping()

    with pytest.raises(redis.RedisError):
        patience.patiently("anything", ping)
    assert len(tries) == 3
    client.close()


def _in_hand(client: RedisClient, run_id: str, holder: str, job: CaseJob) -> Losses:
    """Noted by a worker that then dies, or is still at it."""
    losses = Losses(client, run_id, bench(FakeDevice()).record, holder)
    with suppress(KeyboardInterrupt), losses.noted([job]):
        raise KeyboardInterrupt
    return losses


@pytest.mark.parametrize(
    ("noted_by", "alone"),
    [
        (["worker-1"], False),
        (["worker-1", "worker-1"], False),
        (["registered"], False),
        (["dead"], True),
        (["dead", "worker-1", "registered"], True),
    ],
)
def test_only_notes_of_the_dead_count(
    client: RedisClient, stock: Stock, noted_by: Sequence[str], *, alone: bool
) -> None:
    job, run_id = stock.job("case-1"), f"notes-{len(noted_by)}-{noted_by[0]}"
    registration = Registration(bench(FakeDevice()).record, "registered", "2026-12-01T01:00:00+00:00", 1)
    client.set(device_key("fake-1"), pack(registration), ex=60)
    try:
        for holder in noted_by:
            _in_hand(client, run_id, holder, job)
        mine = Losses(client, run_id, bench(FakeDevice()).record, "worker-1")
        found = mine.sort([job])
        assert (len(found.alone), len(found.together), found.dead) == (alone, not alone, [])
        with mine.noted([job]):
            pass
        others = " ".join(w for w in dict.fromkeys(noted_by) if w != "worker-1").encode()
        assert client.hget(begun_key(run_id), "fake-1/case-1/1") == (others or None)
    finally:
        client.delete(device_key("fake-1"))

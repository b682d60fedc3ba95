"""A case that ends its worker is found, and everything else of its batch gets its result."""

import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.job import Batch
from orchestrator.domain.names import begun_key, lease_key
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import to_json
from orchestrator.execution.broker import Broker
from orchestrator.storage.redis_client import RedisClient
from tests.unit.workers.fake_device import FakeDevice, bench
from tests.unit.workers.jobs import Stock
from workers import locks
from workers.tasks import handle


class WorkerDied(BaseException):
    """Stands for SIGKILL: nothing of the worker runs after it."""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: RedisClient) -> Generator[None]:
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(locks, "lock_folder", lambda: folder)
    yield
    for pattern in ("tilefarm:poison:*", "tilefarm:*:fake-1"):  # a dead worker's lease outlives it
        for key in client.scan_iter(match=pattern):
            client.delete(key.decode())


def trials(redis_url: str, run_id: str) -> dict[str, Trial]:
    broker = Broker(redis_url)
    found = [event for _, event in broker.events(run_id, "0", 1) if isinstance(event, Trial)]
    broker.close()
    assert len({t.case_id for t in found}) == len(found), "each case has one result"
    return {t.case_id: t for t in found}


def deliver(phone: FakeDevice, batch: Batch, client: RedisClient) -> int:
    """The batch again and again, as Celery would, until a worker lives to its end; returns how many died."""
    for deaths in range(10):
        try:
            handle(batch, bench(phone), client, f"worker-{deaths}")
        except WorkerDied:
            continue
        return deaths
    raise AssertionError("delivered for ever")


def deadly(phone: FakeDevice, case_id: str) -> Callable[[bytes], bytes]:
    def kill(text: bytes) -> bytes:
        if f"case {case_id}" in phone.jobs[-1]:
            raise WorkerDied
        return text

    return kill


def test_g3_06_the_case_that_ends_its_worker_is_named_and_the_rest_goes_on(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    """G3-06: after 2 losses a verdict, whatever Celery thinks of the task."""
    phone.stdout = deadly(phone, "case-2")
    jobs = [replace(stock.job(f"case-{n}"), code_hash=f"c0de{n}") for n in range(4)]
    assert deliver(phone, stock.batch(*jobs, run_id="loss-one"), client) == 2
    found = trials(redis_url, "loss-one")
    assert {i for i, t in found.items() if t.verdict is Verdict.PASS} == {"case-0", "case-1", "case-3"}
    assert found["case-2"].verdict is Verdict.CRASHED
    assert "it ended 2 workers in run loss-one, the last one while it ran alone" in found["case-2"].reason


_WORKER = """
import os, signal, sys
from orchestrator.domain.job import Batch
from orchestrator.domain.wire import from_json
from orchestrator.storage.redis_client import connect
from tests.unit.workers.fake_device import FakeDevice, bench
from workers.tasks import handle

def kill(text):
    if "case case-2" in phone.jobs[-1]:
        os.kill(os.getpid(), signal.SIGKILL)
    return text

url, worker_id, batch = sys.argv[1:]
phone = FakeDevice(stdout=kill)
handle(from_json(Batch, batch.encode(), "test"), bench(phone), connect(url), worker_id)
"""


def test_g3_06_a_process_that_is_really_killed_leaves_its_notes_and_no_lock(
    phone: FakeDevice,
    stock: Stock,
    client: RedisClient,
    redis_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """G3-06: nothing of a worker runs after SIGKILL; its flock ends with it, its lease after 15 s."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of its locks
    jobs = [replace(stock.job(f"case-{n}"), code_hash=f"dead{n}") for n in range(1, 4)]
    batch = stock.batch(*jobs, run_id="loss-killed")
    for n in range(2):
        words = [sys.executable, "-c", _WORKER, redis_url, f"killed-{n}", to_json(batch)]
        assert subprocess.run(words, check=False, timeout=60).returncode == -signal.SIGKILL
        assert (client.get(lease_key("fake-1")) or b"").endswith(f"killed-{n}".encode())
        client.delete(lease_key("fake-1"))
    assert client.hgetall(begun_key("loss-killed")) == {
        b"fake-1/case-1/1": b"killed-0",
        b"fake-1/case-2/1": b"killed-0 killed-1",
        b"fake-1/case-3/1": b"killed-0",
    }, "the second one ran case-1 alone, to its end, and never came to case-3"
    handle(batch, bench(phone), client, "worker-1")
    found = trials(redis_url, "loss-killed")
    assert {i: t.verdict for i, t in found.items()} == {
        "case-1": Verdict.PASS,
        "case-2": Verdict.CRASHED,
        "case-3": Verdict.PASS,
    }


def test_a_quarantined_shader_is_not_run_by_the_next_run_and_others_are(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    phone.stdout = deadly(phone, "case-2")
    bad = replace(stock.job("case-2"), code_hash="poison")
    deliver(phone, stock.batch(bad, run_id="loss-first"), client)
    ran = len(phone.jobs)
    phone.stdout = lambda text: text
    mended = replace(stock.job("case-3"), code_hash="mended")
    assert deliver(phone, stock.batch(bad, mended, run_id="loss-next"), client) == 0
    found = trials(redis_url, "loss-next")
    assert found["case-2"].verdict is Verdict.CRASHED
    assert "in run loss-first" in found["case-2"].reason
    assert found["case-3"].verdict is Verdict.PASS
    assert len(phone.jobs) == ran + 1


def test_a_worker_that_is_killed_once_blames_nobody(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    deaths = [WorkerDied]

    def once(text: bytes) -> bytes:
        if deaths:
            raise deaths.pop()
        return text

    phone.stdout = once
    jobs = [stock.job(f"case-{n}") for n in range(3)]
    assert deliver(phone, stock.batch(*jobs, run_id="loss-once"), client) == 1
    assert {t.verdict for t in trials(redis_url, "loss-once").values()} == {Verdict.PASS}
    assert len(phone.jobs) == 4, "one by one the second time"

"""Redis and workers with the real Celery in a line, for tests of what they do to each other."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.domain.names import CELERY_PREFIX, worker_queues
from orchestrator.domain.trial import Trial
from orchestrator.execution.broker import Broker
from orchestrator.storage.blobs import BlobStore
from tests.farm import wait_for
from tests.integration.celery_worker import SOC
from tests.redis_server import RedisServer
from tests.unit.execution.redis_fixture import raw_client
from tests.unit.workers.jobs import Stock

_WORKER = [sys.executable, "-m", "tests.integration.celery_worker"]


class Line:
    """A Redis, jobs, and what the phones of its workers saw."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.redis = RedisServer(folder / "redis")
        self.stock = Stock(BlobStore((folder / "store").as_uri()))

    @property
    def url(self) -> str:
        return self.redis.url

    @contextmanager
    def worker(self, device_id: str, *words: str) -> Generator["subprocess.Popen[bytes]"]:
        with (self.folder / f"{device_id}.out").open("ab") as log:
            process = subprocess.Popen(
                [*_WORKER, self.url, device_id, str(self.folder), *words],
                env=os.environ | {"TMPDIR": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            wait_for(lambda: self.pid(device_id) == process.pid, f"the worker of {device_id}")
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(60)

    def pid(self, device_id: str) -> int:
        broker = Broker(self.url)
        try:
            found = broker.registrations().get(device_id)
            return found.pid if found else 0
        finally:
            broker.close()

    @contextmanager
    def paused(self, device_id: str) -> Generator[None]:
        """A worker that stands still, all threads of it, until the end of the block."""
        pid = self.pid(device_id)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def refusals(self, device_id: str) -> int:
        """Batches whose lease its worker had lost."""
        return (self.folder / f"{device_id}.out").read_text("utf-8").count("batch under a lost lease")

    def send(self, run_id: str, device_id: str, *cases: str) -> None:
        broker = Broker(self.url)
        batch = self.stock.batch(*map(self.stock.job, cases), run_id=run_id, batch_id=f"b-{cases[0]}")
        broker.send(replace(batch, device_id=device_id), "ondemand")
        broker.close()

    def results(self, run_id: str) -> Counter[str]:
        """Case → how often its result was told."""
        broker = Broker(self.url)
        try:
            events = [event for _, event in broker.events(run_id, "0", 1)]
        finally:
            broker.close()
        return Counter(e.case_id for e in events if isinstance(e, Trial))

    def executed(self, device_id: str) -> Counter[str]:
        """Case → how often its phone saw it."""
        log = self.folder / f"{device_id}.log"
        return Counter(log.read_text("utf-8").split() if log.is_file() else [])

    def cut(self) -> None:
        """Every connection to Redis, as a blip of the network does."""
        with self.raw() as raw:
            raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    def raw(self) -> Any:
        return raw_client(self.url)

    def order(self, device_id: str) -> list[list[str]]:
        """Cases of each execution that its phone saw, in their order."""
        log = self.folder / f"{device_id}.log"
        return [row.split() for row in log.read_text("utf-8").splitlines()] if log.is_file() else []

    def queued(self, device_id: str) -> int:
        with self.raw() as raw:
            return sum(int(raw.llen(CELERY_PREFIX + queue)) for queue in worker_queues(device_id, SOC))

    def in_hand(self) -> int:
        """Messages that nobody has acknowledged."""
        with self.raw() as raw:
            return int(raw.hlen(f"{CELERY_PREFIX}unacked"))

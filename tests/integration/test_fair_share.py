"""Who has the next batch: two real dispatchers on one worker, told by the order in which its phone saw them.

The first batch of the long run takes until the other run has queued something: nothing depends on time.
"""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from orchestrator.domain.event import Progress
from orchestrator.domain.names import Lane
from orchestrator.domain.trial import Trial
from orchestrator.execution.broker import Broker
from orchestrator.execution.dispatch import Dispatcher
from orchestrator.execution.manifest import Manifest
from orchestrator.execution.run_folder import RunFolder
from tests.farm import wait_for
from tests.integration.celery_line import Line
from tests.integration.celery_worker import SOC
from tests.results_fixture import device, results, run_info

PHONE = "phone-one"
LONG, SHORT = "20261201T010000Z-smoke", "20261201T020000Z-smoke"


class Nobody:
    """Follows a run and says nothing."""

    def trial(self, trial: Trial) -> None:
        del trial

    def progress(self, news: Progress) -> None:
        del news

    def lost(self, target: str, cases: int, why: str) -> None:
        del target, cases, why

    def tick(self) -> None:
        pass


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Generator[Line]:
    found = Line(tmp_path_factory.mktemp("share"))
    found.redis.start()
    try:
        with found.worker(PHONE):
            yield found
    finally:
        found.redis.kill()


def run(line: Line, run_id: str, cases: list[str], lane: Lane, user: str) -> None:
    """To its end."""
    jobs = [replace(line.stock.job(case), estimate_ms=100) for case in cases]
    planned = results(devices=[device(PHONE, serial=PHONE, soc=SOC)], run=run_info(run_id, finished=False))
    manifest = Manifest(planned, {PHONE: jobs}, line.stock.store.url, lane, user=user)
    folder = RunFolder.create(line.folder / "out", manifest)
    broker = Broker(line.url)
    try:
        assert Dispatcher(broker, folder).run(folder.unfinished(), Nobody()).keys() <= {
            (PHONE, case) for case in cases
        }
    finally:
        broker.close()


@contextmanager
def both(line: Line, name: str, *, first: Lane, others: int, user: str) -> Generator[list[str]]:
    """A run of 1,000 cases whose first batch runs, and one of others; yields whose each batch was."""
    gate = f"wait-{name}"
    long = [gate, *(f"long-{name}-{n}" for n in range(999))]
    short = [f"short-{name}-{n}" for n in range(others)]
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(run, line, f"{LONG}-{name}", long, first, f"anna-{name}")
        wait_for(lambda: line.executed(PHONE)[gate] == 1, "the long run's first batch to begin")
        wait_for(lambda: line.queued(PHONE) == 1, "its second batch to be queued")
        quick = pool.submit(run, line, f"{SHORT}-{name}", short, "ondemand", f"{user}-{name}")
        wait_for(lambda: line.queued(PHONE) >= 2, "the other run's first batch to be queued")
        (line.folder / name).touch()
        quick.result()
        broker = Broker(line.url)
        assert broker.cancel(f"{LONG}-{name}", "the other one is done")
        broker.close()
        slow.result()
    assert line.results(f"{SHORT}-{name}") == dict.fromkeys(short, 1)
    rows = [cases[0] for cases in line.order(PHONE) if name in cases[0]]
    yield ["short" if case.startswith("short") else "long" for case in rows]


def test_an_on_demand_run_begins_after_the_batch_that_runs(line: Line) -> None:
    """Though another batch of the night was queued before."""
    with both(line, "nightly", first="nightly", others=10, user="anna") as order:
        assert order[:2] == ["long", "short"]
        assert order.count("short") == 1


def test_ten_cases_of_one_person_wait_for_two_batches_of_anothers_thousand(line: Line) -> None:
    """One runs, and one was queued before; the other 976 cases come after them."""
    with both(line, "ten", first="ondemand", others=10, user="ben") as order:
        assert order[:3] == ["long", "long", "short"]


def test_thirty_cases_take_turns_with_a_thousand(line: Line) -> None:
    with both(line, "thirty", first="ondemand", others=30, user="ben") as order:
        last = len(order) - order[::-1].index("short")
        assert order[:last].count("long") <= 2 + order.count("short"), order

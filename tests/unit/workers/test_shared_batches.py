"""Batches of a SoC's queue: done by a phone that may and can, handed back by every other one."""

from dataclasses import replace
from pathlib import Path

import pytest
from celery.worker import state as celery_state
from kombu.exceptions import OperationalError

from orchestrator.domain.health import Vitals
from orchestrator.domain.job import Batch
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import RUN_BATCH_TASK
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import pack, unpack
from orchestrator.execution.broker import Broker
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from tests.unit.workers.fake_device import FakeDevice, bench
from tests.unit.workers.jobs import Stock
from tests.unit.workers.told import trials
from workers import locks, patience, tasks
from workers.locks import exclusive
from workers.tasks import HAND_BACKS, handle, make_app

DEVICE = "fake-1"
POOL = "pool0-sm8650"


@pytest.fixture(autouse=True)
def lock_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one that real workers of this machine use."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(locks, "lock_folder", lambda: folder)


def shared(stock: Stock, run_id: str, *only_on: str) -> Batch:
    batch = stock.batch(stock.job("case-1"), run_id=run_id)
    return replace(batch, device_id="", soc="SM8650", only_on=list(only_on), planned_for=POOL)


def test_a_phone_that_may_do_it_does_it_once_for_the_pool(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    batch = shared(stock, "shared-done", "other", DEVICE)
    assert handle(batch, bench(phone), client, "worker-1") is None
    (found,) = trials(redis_url, "shared-done")
    assert (found.device_id, found.target, found.verdict) == (DEVICE, POOL, Verdict.PASS)
    twin = replace(bench(phone), record=replace(bench(phone).record, device_id="other"))
    assert handle(batch, twin, client, "worker-2") is None
    assert len(phone.jobs) == 1, "what one phone has done no other one does again"


def test_a_phone_that_may_not_do_it_hands_it_back_untouched(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    batch = shared(stock, "shared-not-mine", "other")
    assert handle(batch, bench(phone), client, "worker-1") == replace(batch, handed_back=1)
    assert (phone.jobs, phone.pushed, trials(redis_url, "shared-not-mine")) == ([], [], [])


def test_a_held_phone_leaves_it_to_others(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    held = Hold(DEVICE, "anna@desk", "new battery", "12:00")
    Leases(client).hold(held)
    try:
        again = handle(shared(stock, "shared-held", DEVICE), bench(phone), client, "worker-1")
    finally:
        Leases(client).release(held)
    assert again is not None
    assert (phone.jobs, trials(redis_url, "shared-held")) == ([], [])
    broker = Broker(redis_url)
    assert broker.given_up("shared-held") == {}, "the run wants its other batches done here"
    broker.close()


def test_a_hot_phone_leaves_it_to_others_at_once(
    phone: FakeDevice, stock: Stock, client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hot(_device: object, at: float, _timeout_s: float) -> Vitals:
        return Vitals(at, battery_c=44.0)

    monkeypatch.setattr(tasks, "read_vitals", hot)
    again = handle(shared(stock, "shared-hot", DEVICE), bench(phone), client, "worker-1")
    assert again is not None
    assert again.handed_back == 1
    assert phone.jobs == []


def test_what_all_phones_hand_back_ends_as_infra_with_the_last_reason(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    """Each of them half an hour: 29 hot ones do not use up the patience of the one that is only busy."""
    batch = replace(shared(stock, "shared-never", "other", "another"), handed_back=2 * HAND_BACKS - 1)
    last = replace(batch, handed_back=2 * HAND_BACKS)
    assert handle(batch, bench(phone), client, "worker-1") == last
    assert handle(last, bench(phone), client, "worker-1") is None
    (found,) = trials(redis_url, "shared-never")
    assert (found.verdict, found.target) == (Verdict.INFRA, POOL)
    assert "not one of the phones" in found.reason


@pytest.mark.parametrize("own", [True, False], ids=["of its queue", "of a pool"])
def test_who_is_told_to_stop_hands_back_what_only_waits(
    phone: FakeDevice,
    stock: Stock,
    client: RedisClient,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    own: bool,
) -> None:
    """Half an hour of a phone that cools is no reason to keep a host's agent from its restart."""
    monkeypatch.setattr(celery_state, "should_stop", 0)  # as its handler of SIGTERM does
    run_id = f"shared-stop-{own}"
    batch = stock.batch(stock.job("case-1"), run_id=run_id) if own else shared(stock, run_id, DEVICE)
    with exclusive("resource-cpu@buildhost", timeout_s=0):
        again = handle(batch, bench(phone), client, "worker-1")
    assert again == batch
    assert (phone.jobs, trials(redis_url, run_id)) == ([], [])
    broker = Broker(redis_url)
    assert broker.given_up(run_id) == {}, "the next worker does it"
    broker.close()
    assert Leases(client).leased([DEVICE]) == frozenset()


def test_a_cancelled_runs_batch_is_handed_to_nobody(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    broker = Broker(redis_url)
    batch = shared(stock, "shared-over", "other")
    broker.send(batch, "nightly")
    broker.cancel("shared-over", "wrong branch")
    broker.close()
    assert handle(batch, bench(phone), client, "worker-1") is None
    assert trials(redis_url, "shared-over") == []


def test_a_batch_is_handed_back_through_an_outage(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own message is acknowledged whatever happens: the batch would be in no queue any more."""
    monkeypatch.setattr(patience, "POLL_S", 0.0)
    monkeypatch.setattr(tasks, "HAND_BACK_S", 0.0)
    app = make_app(redis_url, bench(phone), client, "worker-1")
    answers, sent = iter([OperationalError("gone"), ConnectionResetError("gone")]), list[Batch]()

    def send(name: str, *, args: list[str], queue: str) -> None:
        del name, queue
        if (error := next(answers, None)) is not None:
            raise error
        sent.append(unpack(Batch, args[0], "test"))

    monkeypatch.setattr(app, "send_task", send)
    batch = shared(stock, "shared-outage", "other")
    app.tasks[RUN_BATCH_TASK](pack(batch))
    assert sent == [replace(batch, handed_back=1)]
    app.close()

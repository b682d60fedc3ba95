"""A worker under a lease: it waits, renews, notices the loss, and never writes what no longer counts."""

import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from orchestrator.domain.errors import InfraError, LeaseLost
from orchestrator.domain.event import Progress
from orchestrator.domain.health import Vitals
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import lease_key
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.broker import Broker
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from tests.unit.workers.fake_device import FakeDevice, bench
from tests.unit.workers.jobs import Stock
from workers import leasing, locks, tasks
from workers.leasing import leased
from workers.tasks import handle

DEVICE = "fake-1"
"""Of the fake device's bench."""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: RedisClient) -> Generator[None]:
    """Locks of its own, no lease or hold left behind for other tests, and no pause between tries."""
    folder = tmp_path / "locks"
    folder.mkdir()
    monkeypatch.setattr(locks, "lock_folder", lambda: folder)
    monkeypatch.setattr(leasing, "POLL_S", 0.001)
    _forget(client)
    yield
    _forget(client)


def _forget(client: RedisClient) -> None:
    for key in client.scan_iter(match=f"tilefarm:*:{DEVICE}"):
        client.delete(key.decode())


def told(redis_url: str, run_id: str) -> list[Trial | Progress]:
    broker = Broker(redis_url)
    found = [event for _, event in broker.events(run_id, "0", 1)]
    broker.close()
    return found


def wait_until(true: Callable[[], bool]) -> None:
    for _ in range(2000):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError("waited in vain")


def taken_over(client: RedisClient) -> None:
    """The worker was paused for longer than its lease lasts, and another one had the device."""
    client.delete(lease_key(DEVICE))
    other = Leases(client).claim(DEVICE, "worker-2")
    assert other is not None
    Leases(client).end(other)


def test_a_lease_is_renewed_while_it_is_needed(client: RedisClient) -> None:
    with leased(Leases(client), DEVICE, "worker-1", timeout_s=0, ttl_s=600, renew_s=0.01) as held:
        client.delete(lease_key(DEVICE))
        wait_until(lambda: client.get(lease_key(DEVICE)) is not None)
        held.check()
    assert client.get(lease_key(DEVICE)) is None


def test_a_lost_lease_is_noticed(client: RedisClient) -> None:
    with leased(Leases(client), DEVICE, "worker-1", timeout_s=0, renew_s=0.01) as held:
        taken_over(client)

        def lost() -> bool:
            try:
                held.check()
            except LeaseLost:
                return True
            return False

        wait_until(lost)


def test_who_waits_is_told_who_has_the_device(client: RedisClient) -> None:
    leases, heard = Leases(client), list[str]()
    leases.hold(Hold(DEVICE, "anna@buildhost", "new battery", "2026-11-30T12:00:00+00:00"))
    with (
        pytest.raises(InfraError, match=r"fake-1 is held by anna@buildhost since .*: new battery"),
        leased(leases, DEVICE, "worker-1", timeout_s=0.01, on_wait=heard.append),
    ):
        pass
    assert heard == ["held by anna@buildhost since 2026-11-30T12:00:00+00:00: new battery"]


def test_g2_04_the_result_of_a_stale_holder_is_refused_and_the_batch_run_again(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    """G2-04: refused at write time, not only at claim time."""
    overtakes = [lambda: taken_over(client)]

    def paused(text: bytes) -> bytes:
        if overtakes:
            overtakes.pop()()
        return text

    phone.stdout = paused
    handle(stock.batch(stock.job("case-1"), run_id="lease-stale"), bench(phone), client, "worker-1")
    assert len(phone.jobs) == 2
    found = [e for e in told(redis_url, "lease-stale") if isinstance(e, Trial)]
    assert [t.verdict for t in found] == [Verdict.PASS]


def test_a_worker_that_loses_every_lease_says_so(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    def paused(text: bytes) -> bytes:
        taken_over(client)
        return text

    phone.stdout = paused
    handle(stock.batch(stock.job("case-1"), run_id="lease-never"), bench(phone), client, "worker-1")
    assert len(phone.jobs) == tasks.LEASES
    (found,) = [e for e in told(redis_url, "lease-never") if isinstance(e, Trial)]
    assert found.verdict is Verdict.INFRA
    assert "a newer lease was granted" in found.reason


def test_a_batch_for_a_held_device_waits_without_touching_it(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "RESOURCE_WAIT_S", 0.01)
    Leases(client).hold(Hold(DEVICE, "anna@buildhost", "new battery", "2026-11-30T12:00:00+00:00"))
    handle(stock.batch(stock.job("case-1"), run_id="lease-held"), bench(phone), client, "worker-1")
    assert (phone.jobs, phone.pushed, phone.removed) == ([], [], [])
    news, found = told(redis_url, "lease-held")
    assert isinstance(news, Progress)
    assert isinstance(found, Trial)
    assert news.detail.startswith("held by anna@buildhost")
    assert "new battery" in found.reason


def test_a_hot_phone_is_given_to_the_person_who_takes_it(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for a phone to cool must not keep it from its holder for half an hour."""

    def hot(_device: object, at: float, _timeout_s: float) -> Vitals:
        Leases(client).hold(Hold(DEVICE, "anna@buildhost", "a fan", "2026-11-30T12:00:00+00:00"))
        return Vitals(at, battery_c=44.0)

    monkeypatch.setattr(tasks, "read_vitals", hot)
    monkeypatch.setattr(tasks, "RESOURCE_WAIT_S", 0.05)
    handle(stock.batch(stock.job("case-1"), run_id="lease-hot"), bench(phone), client, "worker-1")
    assert phone.jobs == []
    (found,) = [e for e in told(redis_url, "lease-hot") if isinstance(e, Trial)]
    assert "held by anna@buildhost" in found.reason

"""A worker under a lease: it waits, renews, notices the loss, and never writes what no longer counts."""

import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import redis

from orchestrator.domain.errors import InfraError, LeaseLost
from orchestrator.domain.event import Progress
from orchestrator.domain.health import Vitals
from orchestrator.domain.lease import Hold, Lease
from orchestrator.domain.names import lease_key, token_key
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.broker import Broker
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from tests.unit.workers.fake_device import WORKDIR, FakeDevice, bench
from tests.unit.workers.jobs import Stock
from tests.unit.workers.told import events, trials
from workers import leasing, locks, tasks
from workers.leasing import Held, leased
from workers.locks import exclusive
from workers.results import ResultSink
from workers.tasks import handle

DEVICE = "fake-1"
"""Of the fake device's bench."""
HOLD = Hold(DEVICE, "anna@buildhost", "new battery", "2026-11-30T12:00:00+00:00")


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


def wait_until(true: Callable[[], bool]) -> None:
    for _ in range(2000):
        if true():
            return
        threading.Event().wait(0.01)
    raise AssertionError("waited in vain")


def taken_over(client: RedisClient) -> None:
    """The worker was paused for longer than its lease lasts, and another one had the device: in one step,
    as a renewal between two would bring the lease back."""
    gone = client.register_script("redis.call('DEL', KEYS[1]) return redis.call('INCR', KEYS[2])")
    gone(keys=[lease_key(DEVICE), token_key(DEVICE)], args=[])


def _is_lost(held: Held) -> bool:
    try:
        held.check()
    except LeaseLost:
        return True
    return False


def test_a_lease_is_renewed_while_it_is_needed(client: RedisClient) -> None:
    with leased(Leases(client), DEVICE, "worker-1", timeout_s=0, ttl_s=600, renew_s=0.01) as held:
        client.delete(lease_key(DEVICE))
        wait_until(lambda: client.get(lease_key(DEVICE)) is not None)
        held.check()
    assert client.get(lease_key(DEVICE)) is None


def test_a_lost_lease_is_noticed(client: RedisClient) -> None:
    with leased(Leases(client), DEVICE, "worker-1", timeout_s=0, renew_s=0.01) as held:
        taken_over(client)
        wait_until(lambda: _is_lost(held))


class CutOff(Leases):
    """Grants a lease, and then does not answer, or does again."""

    silent = True

    def renew(self, lease: Lease, ttl_s: float = 0.0) -> bool:
        if self.silent:
            raise redis.ConnectionError("no route to host")
        return super().renew(lease, ttl_s)


def test_who_is_cut_off_from_redis_leaves_the_device_before_its_lease_may_end(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(leasing, "_now", lambda: now[0])
    with leased(CutOff(client), DEVICE, "worker-1", timeout_s=0, ttl_s=30, renew_s=0.01) as held:
        now[0] += 30 - leasing.MARGIN_S - 0.1
        held.check()
        assert not held.renewed
        now[0] += 0.1
        with pytest.raises(LeaseLost, match=r"fake-1: left, as its lease was not renewed for 25 s"):
            held.check()


def test_a_redis_that_is_back_in_time_costs_nothing(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, leases = [1000.0], CutOff(client)
    monkeypatch.setattr(leasing, "_now", lambda: now[0])
    with leased(leases, DEVICE, "worker-1", timeout_s=0, ttl_s=30, renew_s=0.01) as held:
        now[0] += 20
        leases.silent = False
        wait_until(lambda: held.renewed)
        now[0] += 20
        held.check()


def test_another_worker_is_waited_for(client: RedisClient) -> None:
    leases, heard = Leases(client), list[str]()
    assert leases.claim(DEVICE, "worker-2") is not None
    with (
        pytest.raises(InfraError, match="fake-1 is leased by another worker"),
        leased(leases, DEVICE, "worker-1", timeout_s=0.01, on_wait=heard.append),
    ):
        pass
    assert heard == ["leased by another worker"]


def test_a_person_is_not_waited_for(client: RedisClient) -> None:
    leases, heard = Leases(client), list[str]()
    leases.hold(HOLD)
    with (
        pytest.raises(InfraError, match=r"fake-1 is held by anna@buildhost since .*: new battery"),
        leased(leases, DEVICE, "worker-1", timeout_s=600, on_wait=heard.append),
    ):
        pass
    assert heard == []


def test_a_lease_that_nobody_renews_any_more_is_lost(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ended the thread: the batch must not go on as if all were well."""
    leases = Leases(client)

    def broken(_lease: Lease, _ttl_s: float) -> bool:
        raise RuntimeError("not an error of Redis")

    monkeypatch.setattr(leases, "renew", broken)

    def unheard(args: threading.ExceptHookArgs) -> None:
        del args

    monkeypatch.setattr(threading, "excepthook", unheard)
    with leased(leases, DEVICE, "worker-1", timeout_s=0, renew_s=0.01) as held:
        wait_until(lambda: _is_lost(held))


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
    found = trials(redis_url, "lease-stale")
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
    (found,) = trials(redis_url, "lease-never")
    assert found.verdict is Verdict.INFRA
    assert "a newer lease was granted" in found.reason


def test_a_batch_for_a_held_device_is_given_back_at_once_and_later_ones_are_dropped(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str
) -> None:
    """A run of twenty batches must not wait twenty times for a person; its dispatcher is told, too."""
    Leases(client).hold(HOLD)
    one, two = (stock.batch(stock.job(f"case-{n}"), run_id="lease-held") for n in (1, 2))
    handle(one, bench(phone), client, "worker-1")
    handle(two, bench(phone), client, "worker-1")
    assert (phone.jobs, phone.pushed, phone.removed) == ([], [], [])
    (found,) = events(redis_url, "lease-held")
    assert isinstance(found, Trial)
    assert (found.case_id, found.verdict) == ("case-1", Verdict.INFRA)
    assert "new battery" in found.reason
    broker = Broker(redis_url)
    assert broker.given_up("lease-held") == {DEVICE: found.reason}
    Leases(client).release(HOLD)
    broker.go_on("lease-held")
    broker.close()
    handle(two, bench(phone), client, "worker-1")
    assert len(phone.jobs) == 1, "a resumed run has it back"


def test_a_phone_that_stays_hot_is_waited_for_once_a_run(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def hot(_device: object, at: float, _timeout_s: float) -> Vitals:
        asked.append(at)
        return Vitals(at, battery_c=44.0)

    monkeypatch.setattr(tasks, "read_vitals", hot)
    monkeypatch.setattr(tasks, "RESOURCE_WAIT_S", 0.0)
    for n in range(3):
        batch = stock.batch(stock.job(f"case-{n}"), run_id="lease-fever")
        handle(batch, bench(phone), client, "worker-1")
    assert (len(asked), phone.jobs) == (1, [])
    broker = Broker(redis_url)
    assert "hot for 0 s: 44.0 °C > 35 °C" in broker.given_up("lease-fever")[DEVICE]
    broker.close()


def test_a_phone_that_our_own_blobs_fill_gets_room(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = f"{WORKDIR}/blobs/{0:064x}"
    phone.files[old] = b"of an earlier batch"

    def full(_device: object, at: float, _timeout_s: float) -> Vitals:
        return Vitals(at, free_bytes=1 << 20 if old in phone.files else 1 << 30)

    monkeypatch.setattr(tasks, "read_vitals", full)
    monkeypatch.setattr(tasks, "RESOURCE_WAIT_S", 0.0)
    handle(stock.batch(stock.job("case-1"), run_id="lease-full"), bench(phone), client, "worker-1")
    (found,) = trials(redis_url, "lease-full")
    assert found.verdict is Verdict.PASS


def test_who_waits_for_a_processor_gives_the_phone_to_the_person_who_takes_it(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(_sink: ResultSink, news: Progress) -> None:
        assert news.state == "waiting"
        Leases(client).hold(HOLD)

    monkeypatch.setattr(ResultSink, "progress", taken)
    monkeypatch.setattr(locks, "NEWS_EVERY_S", 0.0)
    with exclusive("resource-cpu@buildhost", timeout_s=0):
        handle(stock.batch(stock.job("case-1"), run_id="lease-cpu"), bench(phone), client, "worker-1")
    (found,) = trials(redis_url, "lease-cpu")
    assert "held by anna@buildhost" in found.reason


def test_a_hot_phone_is_given_to_the_person_who_takes_it(
    phone: FakeDevice, stock: Stock, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for a phone to cool must not keep it from its holder for half an hour."""

    def hot(_device: object, at: float, _timeout_s: float) -> Vitals:
        Leases(client).hold(HOLD)
        return Vitals(at, battery_c=44.0)

    monkeypatch.setattr(tasks, "read_vitals", hot)
    handle(stock.batch(stock.job("case-1"), run_id="lease-hot"), bench(phone), client, "worker-1")
    assert phone.jobs == []
    (found,) = trials(redis_url, "lease-hot")
    assert "held by anna@buildhost" in found.reason

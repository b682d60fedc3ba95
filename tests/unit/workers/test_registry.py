"""A worker's registration in a real Redis: one living worker a device, and none that is dead."""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from orchestrator.domain.errors import InfraError
from orchestrator.domain.event import Registration
from orchestrator.domain.names import REGISTRATION_TTL_S, device_key
from orchestrator.domain.wire import pack, unpack
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.redis_client import RedisClient, connect
from tests.results_fixture import device
from tests.unit.execution.redis_fixture import seconds_left
from workers import registry
from workers.registry import Heartbeat


def there(client: RedisClient, device_id: str) -> str:
    """Worker id that is registered for a device, or empty."""
    text = client.get(device_key(device_id))
    return unpack(Registration, text, "test").worker_id if text else ""


@contextmanager
def registered(
    client: RedisClient, device_id: str, clock: Callable[[], float] = lambda: 0.0
) -> Generator[Heartbeat]:
    heartbeat = Heartbeat(client, device(device_id), clock)
    heartbeat.start()
    try:
        yield heartbeat
    finally:
        heartbeat.stop()


def test_a_worker_is_registered_while_it_lives(client: RedisClient, redis_url: str) -> None:
    with registered(client, "reg-lives") as heartbeat:
        assert there(client, "reg-lives") == heartbeat.registration.worker_id
        assert heartbeat.registration.pid == os.getpid()
        assert 0 < seconds_left(redis_url, device_key("reg-lives")) <= REGISTRATION_TTL_S
    assert there(client, "reg-lives") == ""


def test_each_start_of_a_worker_has_an_id_of_its_own(client: RedisClient) -> None:
    ids = {Heartbeat(client, device("reg-ids")).registration.worker_id for _ in range(5)}
    assert len(ids) == 5


def jumping(*times: float) -> Callable[[], float]:
    """A clock that shows these times, one a reading, and stays at the last."""
    left = list(times)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_a_second_worker_is_refused_and_told_who_is_there(client: RedisClient) -> None:
    with registered(client, "reg-two") as first:
        second = Heartbeat(client, device("reg-two"), jumping(0.0, 1000.0))
        with pytest.raises(
            InfraError, match=rf"reg-two is served by process {os.getpid()} on buildhost since"
        ):
            second.start()
        assert there(client, "reg-two") == first.registration.worker_id


def test_a_device_is_taken_over_when_a_dead_workers_registration_ends(client: RedisClient) -> None:
    """kill -9 leaves it behind; it ends by itself while the next worker waits."""
    dead = Heartbeat(client, device("reg-over")).registration
    client.set(device_key("reg-over"), pack(dead), ex=1000)
    readings: list[float] = []

    def clock() -> float:
        readings.append(len(readings))
        if len(readings) == 3:
            client.delete(device_key("reg-over"))
        return readings[-1]

    with registered(client, "reg-over", clock) as heartbeat:
        assert there(client, "reg-over") == heartbeat.registration.worker_id
    assert len(readings) == 3


def test_of_twenty_workers_at_once_one_gets_the_device(redis_url: str) -> None:
    clients = [connect(redis_url) for _ in range(20)]
    together = threading.Barrier(20)
    won: list[Heartbeat] = []

    def start(one: RedisClient) -> None:
        heartbeat = Heartbeat(one, device("reg-race"), jumping(0.0, 1000.0))
        together.wait()
        try:
            heartbeat.start()
        except InfraError:
            return
        won.append(heartbeat)

    threads = [threading.Thread(target=start, args=(c,)) for c in clients]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(won) == 1
    won[0].stop()
    for client in clients:
        client.close()


def test_a_beat_brings_back_what_a_restarted_redis_forgot(client: RedisClient) -> None:
    with registered(client, "reg-forgot") as heartbeat:
        client.delete(device_key("reg-forgot"))
        assert heartbeat.renew()
        assert there(client, "reg-forgot") == heartbeat.registration.worker_id


def test_g2_04_a_paused_worker_does_not_push_out_its_successor(client: RedisClient) -> None:
    """It slept through its registration's end; another one serves the device now."""
    with registered(client, "reg-paused") as stale:
        successor = Heartbeat(client, device("reg-paused")).registration
        client.set(device_key("reg-paused"), pack(successor), ex=100)
        assert not stale.renew()
        assert there(client, "reg-paused") == successor.worker_id
    assert there(client, "reg-paused") == successor.worker_id, "nor by taking back what is no longer its own"
    client.delete(device_key("reg-paused"))


def test_the_heart_beats_by_itself_and_says_when_it_was_replaced(
    client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "HEARTBEAT_S", 0.01)
    said = threading.Event()

    class Log:
        def error(self, event: str, **_facts: object) -> None:
            assert "another worker serves this device" in event
            said.set()

    monkeypatch.setattr(registry, "log", Log())
    with registered(client, "reg-beats"):
        client.set(device_key("reg-beats"), pack(Heartbeat(client, device("reg-beats")).registration), ex=100)
        assert said.wait(60)
    client.delete(device_key("reg-beats"))


def test_a_heart_outlives_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "HEARTBEAT_S", 0.01)
    failed = threading.Event()

    class Log:
        def warning(self, event: str, **_facts: object) -> None:
            if event == "heartbeat failed":
                failed.set()

    monkeypatch.setattr(registry, "log", Log())
    with private_redis() as url:
        client = connect(url)
        heartbeat = Heartbeat(client, device("reg-outlives"))
        heartbeat.start()
    assert failed.wait(60)
    heartbeat.stop()
    client.close()

"""`tilefarm flower` knows a farm's queues, and its own connection checks a certificate as all others do."""

import ssl

import pytest

from orchestrator.cli import flower
from orchestrator.domain.broker_url import complete
from orchestrator.domain.errors import NotInstalled
from orchestrator.domain.event import Registration
from orchestrator.domain.names import device_key, worker_queues
from orchestrator.domain.wire import pack
from orchestrator.execution.broker import Broker
from orchestrator.storage.redis_client import RedisClient
from tests.results_fixture import device
from tests.unit.cli.conftest import Invoke
from tests.unit.execution.redis_fixture import client, redis_url

__all__ = ["client", "redis_url"]


def test_it_names_the_queues_of_all_devices_that_are_served(redis_url: str, client: RedisClient) -> None:
    record = device("flower-phone")
    key = device_key(record.device_id)
    client.set(key, pack(Registration(record, "worker-1", "2026-12-01T01:00:00+00:00", 4711)), ex=60)
    try:
        app = flower.make_app(redis_url)
    finally:
        client.delete(key)
    names = {queue.name for queue in app.conf.task_queues}
    assert {"orchestrator", *worker_queues(record.device_id, record.soc.name)} <= names
    assert app.conf.broker_transport_options["global_keyprefix"] == "tilefarm:celery:"


def test_with_tls_flower_is_told_where_it_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reached(Broker):
        def __init__(self, url: str) -> None: ...
        def registrations(self) -> dict[str, Registration]:
            return {}

        def close(self) -> None: ...

    monkeypatch.setattr(flower, "Broker", Reached)
    app = flower.make_app(complete("rediss://farm:6379/0", None, None))
    assert app.conf.broker_use_ssl["ssl_cert_reqs"] == ssl.CERT_REQUIRED


def test_a_flower_that_is_not_installed_is_named(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setenv("TILEFARM_BROKER", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(flower, "find_spec", nothing)
    found = invoke("flower").exception
    assert isinstance(found, NotInstalled)
    assert "pip install" in str(found)

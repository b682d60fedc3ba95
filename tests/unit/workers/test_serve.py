"""A worker opens its device alone: not during a batch, not while another worker or a person has it."""

import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import pytest

from orchestrator.domain.errors import DeviceLost, InfraError, NoSpace, NotInstalled, TilefarmError
from orchestrator.domain.event import Registration
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import device_key
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import pack
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from tests.results_fixture import device
from tests.unit.workers.fake_device import FakeDevice
from workers import __main__ as command
from workers import registry, serve
from workers.__main__ import EXIT_DEVICE
from workers.bench import Bench
from workers.discovery import Reachable
from workers.registry import AlreadyServed

Open = Callable[[str], list[bool]]


class Phone:
    """What it says of itself; nothing else may be asked before it is leased."""

    def __init__(self, number: str) -> None:
        self.number = number

    def properties(self, *, timeout_s: float) -> Mapping[str, str]:
        assert timeout_s > 0
        return {"ro.serialno": self.number, "ro.product.manufacturer": "acme"}


@pytest.fixture
def open_phone(client: RedisClient, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens the phone ``usb-NUMBER``; for each time that it was probed: had nobody else it meanwhile?"""

    def open_it(number: str) -> list[bool]:
        alone: list[bool] = []

        def phone(_server: object, _serial: str) -> Phone:
            return Phone(number)

        def open_bench(_found: Reachable, _settings: Settings) -> Bench:
            alone.append(Leases(client).claim(f"acme-{number}", "another") is None)
            return Bench(FakeDevice(), device(f"acme-{number}"), "/runner")

        monkeypatch.setattr(serve, "AdbDevice", phone)
        monkeypatch.setattr(serve, "open_bench", open_bench)
        serve.open_alone(Reachable("adb", f"usb-{number}"), client, Settings())
        return alone

    return open_it


def test_a_phone_is_probed_under_its_lease(open_phone: Open, client: RedisClient) -> None:
    assert open_phone("501") == [True]
    assert Leases(client).claim("acme-501", "another") is not None, "and it is free afterwards"


@pytest.mark.parametrize("serial", ["usb-502", "192.168.1.5:5555"])
def test_a_phone_that_a_living_worker_serves_is_not_probed(
    open_phone: Open, client: RedisClient, monkeypatch: pytest.MonkeyPatch, serial: str
) -> None:
    """It serves it through this serial, or through another one, or from another host."""
    monkeypatch.setattr(registry, "TAKE_OVER_S", 0.0)
    record = device("acme-502", serial=serial)
    key = device_key("acme-502")
    client.set(key, pack(Registration(record, "w", "2026-11-30T12:00:00+00:00", 7)), ex=100)
    client.set(device_key("acme-bad"), "of another version", ex=100)
    try:
        with pytest.raises(AlreadyServed, match="acme-502 is served by process 7 on buildhost since 2026"):
            open_phone("502")
    finally:
        client.delete(key)
        client.delete(device_key("acme-bad"))


def test_a_phone_that_a_person_has_is_not_probed_through_another_link(
    open_phone: Open, client: RedisClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = Leases(client)
    held = Hold("acme-503", "anna@desk", "new battery", "now", "its-wifi", "elsewhere")
    leases.hold(held)
    waited: list[float] = []

    def release(seconds: float) -> None:
        waited.append(seconds)
        assert leases.release(held)

    monkeypatch.setattr(serve, "time", SimpleNamespace(sleep=release))
    assert open_phone("503") == [True]
    assert len(waited) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DeviceLost("gone"), EXIT_DEVICE),
        (InfraError("the runner found no GPU driver"), 3),
        (AlreadyServed(Registration(device("x"), "w", "", 7)), 3),
        (NoSpace("full"), 3),
        (NotInstalled("the runner is not built"), 3),
    ],
)
def test_only_the_devices_own_trouble_starts_its_ladder(
    error: TilefarmError, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(command, "find", fails)
    monkeypatch.setattr(sys, "argv", ["workers", "--device", "R58"])
    assert command.main() == code
    assert capsys.readouterr().err == f"{error}\n"

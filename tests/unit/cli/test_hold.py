"""`tilefarm hold` and `release` name one device, also one that no worker serves, and wait for its agent."""

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from orchestrator.domain.agent import AgentReport, PhoneReport
from orchestrator.domain.errors import UsageError
from orchestrator.domain.health import Condition
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import agent_key
from orchestrator.domain.wire import pack
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient, connect
from tests.unit.cli.conftest import Invoke
from workers.discovery import host_name


@pytest.fixture
def farm(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Generator[RedisClient]:
    with private_redis() as url:
        monkeypatch.setenv("TILEFARM_BROKER", url)
        client = connect(url)
        yield client
        client.close()


def report(client: RedisClient, host: str, phones: Sequence[PhoneReport]) -> None:
    found = AgentReport(host, 7, "2026-11-30T12:00:00+00:00", "adb", list(phones))
    client.set(agent_key(host), pack(found), ex=100)


LOST = PhoneReport("R58", "samsung-r58", Condition.QUARANTINED, "gone", "2026-11-30T12:00:00+00:00")


def test_a_quarantined_phone_is_taken_once_its_agent_has_left_it(
    farm: RedisClient, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    report(farm, "shelf", [LOST])
    waited: list[float] = []

    def agent_hears(seconds: float) -> None:
        waited.append(seconds)
        report(farm, "shelf", [replace(LOST, condition=Condition.MAINTENANCE)])

    monkeypatch.setattr("orchestrator.cli.hold.time", SimpleNamespace(sleep=agent_hears))
    done = invoke("hold", "R58", "--why", "new battery", "--json")
    assert done.exit_code == 0, done.exception
    held = json.loads(done.stdout[done.stdout.index("{") :])
    assert (held["device_id"], held["serial"], held["host"]) == ("samsung-r58", "R58", "shelf")
    assert len(waited) == 1
    assert invoke("release", "samsung-r58").exit_code == 0
    assert Leases(farm).holds() == {}


@pytest.mark.parametrize(
    "why", [" ", "x" * 1001, "one\ntwo", "\x1b[2J"], ids=["none", "long", "lines", "escape"]
)
def test_words_that_others_could_not_read_are_refused(farm: RedisClient, invoke: Invoke, why: str) -> None:
    report(farm, "shelf", [LOST])
    refused = invoke("hold", "R58", "--why", why).exception
    assert isinstance(refused, UsageError)
    assert str(refused).startswith("--why is ")
    assert Leases(farm).holds() == {}


def test_a_phone_that_never_said_who_it_is_is_held_by_its_serial(farm: RedisClient, invoke: Invoke) -> None:
    unknown = replace(LOST, device_id="", condition=Condition.MAINTENANCE)
    report(farm, "shelf", [unknown])
    assert invoke("hold", "R58", "--why", "x").exit_code == 0
    (held,) = Leases(farm).holds().values()
    assert (held.serial, held.host) == ("R58", "shelf")
    report(farm, "attic", [unknown])
    several = invoke("hold", "R58", "--why", "x").exception
    assert isinstance(several, UsageError)
    assert str(several).startswith("2 devices answer to R58")
    assert invoke("release", "R58").exit_code == 0


def test_only_this_machines_gpu_is_released_by_its_short_name(farm: RedisClient, invoke: Invoke) -> None:
    leases = Leases(farm)
    mine = Hold("local-b-gpu", "me", "w", "t", "local:gpu", host_name())
    theirs = Hold("local-a-gpu", "anna", "w", "t", "local:gpu", "elsewhere")
    assert leases.hold(theirs)
    assert isinstance(invoke("release", "local:gpu").exception, UsageError)
    assert leases.hold(mine)
    assert invoke("release", "local:gpu").exit_code == 0
    assert list(leases.holds()) == ["local-a-gpu"]


def test_a_serial_that_two_held_phones_have_is_refused(farm: RedisClient, invoke: Invoke) -> None:
    leases = Leases(farm)
    for host in ("a", "b"):
        assert leases.hold(Hold(f"phone-{host}", "anna", "w", "t", "0123456789ABCDEF", host))
    refused = invoke("release", "0123456789ABCDEF").exception
    assert isinstance(refused, UsageError)
    assert "phone-a, phone-b" in str(refused)
    assert len(leases.holds()) == 2

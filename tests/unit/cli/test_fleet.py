"""Which devices a command gets for the names that it was given."""

from collections.abc import Generator
from dataclasses import replace

import pytest

from orchestrator.cli.fleet import Fleet, answers_to, choose
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import InfraError
from orchestrator.domain.results import Missing
from orchestrator.execution.broker import Broker
from orchestrator.execution.private_redis import private_redis
from tests.results_fixture import device
from tests.unit.workers import gpus
from workers.discovery import LOCAL, Found, Reachable, host_name

HERE = host_name()
LLVMPIPE = replace(device("local-a-llvmpipe", serial="local:llvmpipe"), host=HERE)
LAVAPIPE = replace(device("local-a-lavapipe", soc="lavapipe", serial="local:lavapipe"), host=HERE)
ELSEWHERE = replace(LLVMPIPE, device_id="local-b-llvmpipe", host="another-host")
PHONE = device("samsung-r5cx", soc="SM8650", serial="R5CX", transport="adb")
ALL = [LLVMPIPE, LAVAPIPE, ELSEWHERE, PHONE]


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("local", [LLVMPIPE, LAVAPIPE]),
        ("local:llvmpipe", [LLVMPIPE]),
        ("llvmpipe", [LLVMPIPE, ELSEWHERE]),
        ("lavapipe", [LAVAPIPE]),
        ("local-b-llvmpipe", [ELSEWHERE]),
        ("SM8650", [PHONE]),
        ("R5CX", [PHONE]),
        ("adb", []),
        ("nosuch", []),
    ],
)
def test_who_answers_to_a_name(name: str, who: list[DeviceRecord]) -> None:
    """``local`` is this machine, also in a farm of several; a SoC is that of every host."""
    assert [d for d in ALL if answers_to(d, name)] == who


@pytest.fixture(scope="module")
def broker() -> Generator[Broker]:
    with private_redis() as url:
        found = Broker(url)
        yield found
        found.close()


def fleet(broker: Broker, *devices: DeviceRecord, missing: list[Missing] | None = None) -> Fleet:
    return Fleet(broker, list(devices), missing or [])


def test_without_a_name_everything_that_was_opened_is_used(broker: Broker) -> None:
    lost = [Missing("R5CY", "", "unauthorized")]
    chosen = choose(fleet(broker, *ALL, missing=lost), [])
    assert (chosen.devices, chosen.missing) == (ALL, lost)


def test_each_device_is_used_once(broker: Broker) -> None:
    chosen = choose(fleet(broker, *ALL), ["llvmpipe", "local"])
    assert chosen.devices == [LLVMPIPE, ELSEWHERE, LAVAPIPE]
    assert chosen.missing == []


def test_a_name_that_nothing_answers_to_says_what_there_is(broker: Broker) -> None:
    lost = [Missing("R5CY", "", "unauthorized")]
    chosen = choose(fleet(broker, LLVMPIPE, missing=lost), ["nosuch", "local"])
    assert chosen.devices == [LLVMPIPE]
    assert chosen.missing == [
        Missing("nosuch", "", "no such device; there are: local-a-llvmpipe (llvmpipe)")
    ], "the phone was not asked for"


def test_a_gpu_whose_worker_died_is_missing_under_each_of_its_names(broker: Broker) -> None:
    died = Missing("local:lavapipe", "", "vkCreateDevice failed")
    lavapipe = gpus.reachable(gpus.vulkan())
    found = Found([replace(lavapipe, also=("lavapipe", LOCAL))])
    for name in ("local", "lavapipe", "local:lavapipe"):
        assert choose(fleet(broker, missing=[died]), [name], found).missing == [died]


def test_a_machine_whose_probe_failed_says_so_for_each_name_of_it(broker: Broker) -> None:
    failed = Missing(LOCAL, "", "the runner is not built: make runner")
    assert choose(fleet(broker, missing=[failed]), ["local"]).missing == [failed]
    for name in ("local:lavapipe", "lavapipe"):
        missing = choose(fleet(broker, PHONE, missing=[failed]), [name]).missing
        assert [m.device_id for m in missing] == [name, LOCAL]
    assert choose(fleet(broker, PHONE, missing=[failed]), ["SM8650"]).missing == []


def test_a_phone_on_two_cables_is_asked_for_by_either_serial(broker: Broker) -> None:
    found = Found([Reachable("adb", "R5CX", ("192.168.1.5:5555",))])
    assert choose(fleet(broker, PHONE), ["192.168.1.5:5555"], found).devices == [PHONE]


def test_no_device_is_an_error_that_says_why(broker: Broker) -> None:
    with pytest.raises(InfraError, match="make runner"):
        fleet(broker, missing=[Missing(LOCAL, "", "make runner")]).require_devices()
    with pytest.raises(InfraError, match="tilefarm worker"):
        fleet(broker).require_devices()

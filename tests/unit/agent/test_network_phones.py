"""After an adb server or an agent ended: network phones are connected again, and no phone for what it calls
itself."""

import pytest

from orchestrator.domain.agent import AgentReport, PhoneReport
from orchestrator.domain.health import Condition
from orchestrator.domain.wire import pack, unpack
from tests.unit.agent.made_up_host import Host
from workers.__main__ import EXIT_DEVICE

USB, WIFI, ODD = "R58", "192.168.1.5:5555", "10.0.0.1:22"


def test_an_adb_server_that_was_restarted_lists_its_phones_one_by_one(host: Host) -> None:
    host.shows(a="device", b="device")
    host.run()
    host.agent.no_server("none answers")
    host.run(3)
    host.shows()
    host.run(5)
    host.shows(a="device")
    host.run(3)
    assert host.serving() == ["a", "b"]
    host.run(5)
    assert host.serving() == ["a"], "b did not come back"
    assert host.phone("b").condition is Condition.OFFLINE


@pytest.mark.parametrize("seen", [True, False])
def test_network_phones_are_connected_again_after_a_restart_of_the_server(host: Host, seen: bool) -> None:
    host.shows(**{WIFI: "device", USB: "device"})
    host.run()
    host.agent.no_server("none answers")
    if seen:
        host.run(3)
    host.shows(**{USB: "device"})
    host.run(30)
    assert host.connected[0] == WIFI
    assert set(host.connected) == {WIFI}
    assert len(host.connected) == 4, "after 0, 2, 6 and 14 s"
    host.shows(**{WIFI: "device", USB: "device"})
    host.run(60)
    assert len(host.connected) == 4
    host.shows(**{USB: "device"})
    host.run(60)
    assert len(host.connected) == 4, "a person's `adb disconnect` is respected"


def test_network_phones_of_an_agent_that_was_killed_with_its_server_are_connected_again(host: Host) -> None:
    """They stand in the report that it left behind; one that had left, or that a person has, stays away."""
    conditions = {
        WIFI: Condition.ONLINE,
        "10.0.0.6:5555": Condition.OFFLINE,
        "10.0.0.7:5555": Condition.MAINTENANCE,
        USB: Condition.ONLINE,
    }
    host.agent.inherit(
        [PhoneReport(serial, "", c, "", "", network=":" in serial) for serial, c in conditions.items()]
    )
    host.shows()
    host.run(2)
    assert set(host.connected) == {WIFI}
    host.shows(**{WIFI: "device"})
    host.run(12)
    assert host.serving() == [WIFI]


def test_a_phone_on_usb_whose_serial_is_an_address_is_never_connected_to(host: Host) -> None:
    """Its serial is its own word: ``10.0.0.1:22`` is where it wants the host's adb server to knock."""
    host.on_usb.add(ODD)
    host.shows(**{ODD: "device", WIFI: "device"})
    host.run()
    assert [p.network for p in host.reports[-1].phones] == [False, True]
    host.silent.update((ODD, WIFI))
    for child in host.children:
        child.code = EXIT_DEVICE
    host.run(30)
    assert {(s, n) for (s, _), n in zip(host.climbed, host.by_network, strict=True)} == {
        (ODD, False),
        (WIFI, True),
    }
    host.agent.no_server("none answers")
    host.run(3)
    host.shows()
    host.run(60)
    assert set(host.connected) == {WIFI}


@pytest.mark.parametrize("word", ["offline", "unauthorized"])
def test_what_the_server_does_not_tell_of_a_link_is_as_it_was_told_before(host: Host, word: str) -> None:
    """It tells only while it lists the phone as ``device``; nothing is taken for an address untold."""
    host.shows(**{ODD: word})
    host.run()
    assert not host.phone(ODD).network
    host.shows(**{ODD: "device"})
    host.run()
    host.shows(**{ODD: word})
    host.run()
    assert host.phone(ODD).network
    host.on_usb.add(ODD)
    host.shows(**{ODD: "device"})
    host.run()
    assert not host.phone(ODD).network


def test_a_report_of_an_earlier_version_has_nobody_connected(host: Host) -> None:
    report = AgentReport("shelf", 7, "t", "adb", [PhoneReport(WIFI, "", Condition.ONLINE, "", "")])
    older = pack(report).replace(',"network":false', "")
    assert "network" not in older
    host.agent.inherit(unpack(AgentReport, older, "here").phones)
    host.agent.inherit([PhoneReport("no address", "", Condition.ONLINE, "", "", network=True)])
    host.shows()
    host.run(30)
    assert host.connected == []

"""An agent that Redis does not reach hears of no hold: it leaves phones alone, and their workers too."""

import pytest

from orchestrator.domain.agent import PhoneReport
from orchestrator.domain.errors import InfraError
from orchestrator.domain.health import Condition, Rung
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import AGENT_TTL_S
from tests.unit.agent.made_up_host import Host
from workers.__main__ import EXIT_DEVICE
from workers.agent.agent import CUT_OFF_S

TAKEN = Hold("id-a", "anna@desk", "new battery", "2026-11-30T12:00:00+00:00", "a", "shelf")
WIFI = "192.168.1.5:5555"


def test_phones_are_left_alone_before_anybody_may_think_that_they_are(host: Host) -> None:
    """After AGENT_TTL_S there is no report for ``tilefarm hold`` to wait for."""
    host.shows(a="device", b="device")
    host.run()
    host.away_since = host.now
    host.run(CUT_OFF_S + 1)
    host.held["a"] = TAKEN  # which nobody here hears of
    host.silent.update("ab")
    host.children[0].code = host.children[1].code = EXIT_DEVICE
    asked = len(host.asked)
    host.run(600)
    assert (len(host.asked), host.climbed) == (asked, [])
    assert CUT_OFF_S < AGENT_TTL_S
    host.away_since = None
    host.helps = Rung.RECONNECT
    host.run(30)
    assert host.phone("a").condition is Condition.MAINTENANCE
    assert {serial for serial, _ in host.climbed} == {"b"}, "holds are read before anything is touched"
    assert "a" not in host.asked[asked:]


def test_a_blip_of_redis_interrupts_nothing(host: Host) -> None:
    host.shows(a="device")
    host.run()
    host.away_since = host.now
    host.silent.add("a")
    asked = len(host.asked)
    host.run(CUT_OFF_S - 0.5)
    assert len(host.asked) > asked


def test_workers_mind_their_own_leases(host: Host) -> None:
    host.shows(a="device")
    host.run()
    host.away_since = host.now
    host.run(600)
    assert host.serving() == ["a"]


def test_a_rung_and_what_waits_for_a_thread_end(host: Host) -> None:
    host.shows(a="device", b="device")
    host.run()
    host.children[0].code = EXIT_DEVICE
    host.waits = True
    host.run(7)
    ((climbing, climb),) = host.calls
    assert climbing.set_running_or_notify_cancel()
    with pytest.raises(InfraError):
        climb()
    host.run(10)
    queued = [done for done, _ in host.calls if done is not climbing and not done.cancelled()]
    assert queued, "b is asked again"
    host.away_since = host.now
    host.run(CUT_OFF_S + 1)
    assert host.left[0].is_set()
    assert all(done.cancelled() for done in queued)
    climbing.set_exception(InfraError("left alone"))
    host.run(60)
    assert host.agent.stations["a"].health.rung == 0, "it was not tried"
    assert all(done.done() for done, _ in host.calls)


def test_network_phones_are_not_connected(host: Host) -> None:
    host.shows(**{WIFI: "device"})
    host.run()
    host.away_since = host.now
    host.run(CUT_OFF_S + 1)
    host.agent.no_server("none answers")
    host.run(3)
    host.shows()
    host.run(60)
    assert host.connected == []
    host.away_since = None
    host.run(60)
    assert host.connected[0] == WIFI


def test_an_agent_that_has_not_heard_of_holds_yet_touches_nothing(host: Host) -> None:
    host.away_since = host.now - 60
    host.agent.inherit([PhoneReport(WIFI, "", Condition.ONLINE, "", "", network=True)])
    host.shows(a="device", b="offline")
    host.run(60)
    assert (host.asked, host.climbed, host.connected) == ([], [], [])

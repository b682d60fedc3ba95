"""What an agent knows of its farm while Redis is away: what it knew last, and never "nobody holds it"."""

from orchestrator.domain.agent import AgentReport
from orchestrator.domain.event import Registration
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import agent_key, device_key
from orchestrator.domain.wire import pack
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import connect
from tests.results_fixture import device
from workers.agent.farm import RedisFarm

HELD = Hold("phone-1", "anna@desk", "new battery", "2026-11-30T12:00:00+00:00", "R58", "shelf")
REPORT = AgentReport("shelf", 7, "2026-11-30T12:00:00+00:00", "adb")
SERVED = Registration(device("phone-2"), "w", "2026-11-30T12:00:00+00:00", 8)


def test_a_broker_that_is_away_changes_nothing() -> None:
    with private_redis() as url:
        client = connect(url)
        leases = Leases(client)
        assert leases.hold(HELD)
        assert leases.claim("phone-2", "w") is not None
        client.set(device_key("phone-2"), pack(SERVED), ex=100)
        client.set(device_key("phone-3"), "of another version", ex=100)
        farm = RedisFarm(client)

        def known() -> object:
            return farm.holds(), farm.registrations(), farm.busy("phone-1"), farm.busy("phone-2")

        before = known()
        assert before == ([HELD], [SERVED], False, True)
        farm.publish(REPORT)
        assert client.get(agent_key("shelf")) == pack(REPORT).encode()
    assert known() == before
    assert list(farm.news("phone-2")) == []
    farm.publish(REPORT)
    client.close()

"""``tilefarm queue`` against a real Redis, in which dispatchers, agents, workers and people have spoken."""

import json
from collections.abc import Generator
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any

import pytest

from orchestrator.domain.agent import AgentReport, PhoneReport
from orchestrator.domain.errors import BrokerUnavailable, UsageError
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Condition
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import agent_key, device_key
from orchestrator.domain.run_state import RunState, Target
from orchestrator.domain.submission import Submission
from orchestrator.domain.wire import pack
from orchestrator.execution.board import submitted
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient, connect
from orchestrator.storage.run_states import RunStates
from orchestrator.storage.submissions import Submissions
from tests.unit.cli.conftest import Invoke
from tests.unit.planning.toy import device

AGO = "2026-12-01T01:25:00+00:00"
HOT = PhoneReport("R58A", "a", Condition.HOT, "41.0 °C > 35 °C", AGO)
HOLD = Hold("b", "ben@desk", "new battery", "2026-12-01T00:00:00+00:00")
POOL = Target("", "SM8650", "any of 3 SM8650", 40, left_s=200.0, waiting_since=AGO, devices=["a", "b", "c"])
NIGHT = Target("c", "SM8650", "Phone C", 900, 100, left_s=3000.0, devices=["c"])


class HalfPastOne(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "HalfPastOne":
        return cls(2026, 12, 1, 1, 30, tzinfo=tz)


@pytest.fixture
def farm(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Generator[RedisClient]:
    with private_redis() as url:
        monkeypatch.setenv("TILEFARM_BROKER", url)
        monkeypatch.setattr("orchestrator.cli.queue.datetime", HalfPastOne)
        client = connect(url)
        yield client
        client.close()


def state(run_id: str, *targets: Target, **more: object) -> RunState:
    plain = RunState(run_id, "smoke", "anna@desk", "ondemand", "running", AGO, AGO, "desk", list(targets))
    return replace(plain, **more)


def jobs(invoke: Invoke) -> list[dict[str, Any]]:
    answer = invoke("queue", "--json")
    assert answer.exit_code == 0, answer.exception
    return json.loads(answer.stdout)["jobs"]


def test_each_pending_job_is_explained_with_an_estimate(farm: RedisClient, invoke: Invoke) -> None:
    for name in ("a", "b", "c"):
        record = device(name, soc="SM8650", transport="adb", resource=name)
        farm.set(device_key(name), pack(Registration(record, f"w-{name}", AGO, 7)), ex=100)
    farm.set(agent_key("shelf"), pack(AgentReport("shelf", 7, AGO, "adb", [HOT])), ex=100)
    Leases(farm).hold(HOLD)
    Leases(farm).claim("c", "w-c")
    states = RunStates(farm)
    states.publish(state("r1", POOL))
    states.publish(state("r2", NIGHT, lane="nightly", user="night@big"))
    states.publish(state("r3", NIGHT, phase="finished"))
    waiting, night = jobs(invoke)
    assert waiting["why"] == [
        "3 phones match: 1 hot (41.0 °C > 35 °C), "
        "1 held by ben@desk since 2026-12-01T00:00:00+00:00: new battery, 1 at work (a batch of r2)"
    ]
    assert (waiting["begins_s"], waiting["ends_s"], waiting["cases"]) == (60.0, 260.0, 40)
    assert (night["why"], night["begins_s"], night["lane"]) == (["a batch of it runs"], 0.0, "nightly")
    shown = invoke("queue").stdout.splitlines()
    assert shown == [
        "r1  smoke of anna@desk",
        "  any of 3 SM8650: 40 cases, waits for 5 min, begins in 60 s, done in 4 min",
        f"    {waiting['why'][0]}",
        "r2  smoke of night@big, nightly",
        "  Phone C (c): 800 cases, done in 53 min",
        "    a batch of it runs",
    ]


def test_what_nobody_carries_out_is_told_with_what_to_do(farm: RedisClient, invoke: Invoke) -> None:
    states = RunStates(farm)
    states.publish(state("20261201T010000Z-smoke-aaaa", NIGHT, phase="running"))
    farm.delete("tilefarm:live:20261201T010000Z-smoke-aaaa")
    digest = "0" * 64
    run = Submission("20261201T020000Z-s-bbbb", "s", "ben@desk", "ondemand", AGO, "desk", "file:///b", digest)
    assert Submissions(farm).put(run, submitted(run))
    left, waits = jobs(invoke)
    assert "`tilefarm run --resume 20261201T010000Z-smoke-aaaa` on desk goes on with it" in left["why"][0]
    assert waits["why"] == ["no orchestrator serves this farm now: start `tilefarm orchestrator`"]
    assert left["begins_s"] is left["ends_s"] is waits["begins_s"] is None
    shown = invoke("queue").stdout.splitlines()
    assert shown[1] == "  Phone C (c): 800 cases, waits for 5 min, nobody can tell when it is done"
    assert shown[2] == f"    {left['why'][0]}"
    assert shown[4] == "  waits for 5 min"


def test_hostile_names_and_words_are_shown_and_never_obeyed(farm: RedisClient, invoke: Invoke) -> None:
    hostile = "\x1b[2J[red]\u202eevil\nline"
    target = replace(NIGHT, name=hostile, waiting_since=AGO, why=hostile)
    RunStates(farm).publish(state("r1", target, user=hostile))
    Leases(farm).hold(replace(HOLD, device_id="c", by=hostile, why=hostile))
    shown = invoke("queue").stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\u001b[2J[red]\\u202eevil\\u000aline" in shown
    assert jobs(invoke)[0]["target"] == f"{hostile} (c)"


def test_an_empty_farm_says_so(farm: RedisClient, invoke: Invoke) -> None:
    del farm
    assert jobs(invoke) == []
    assert "nothing waits in this farm" in invoke("queue").stderr


def test_without_a_farm_there_is_no_queue(invoke: Invoke) -> None:
    refused = invoke("queue").exception
    assert isinstance(refused, UsageError)
    assert "TILEFARM_BROKER is not set: `tilefarm queue` needs the farm's Redis" in str(refused)


def test_a_broker_that_does_not_answer_is_named(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFARM_BROKER", "redis://:hunter2@127.0.0.1:1/0")
    lost = invoke("queue").exception
    assert isinstance(lost, BrokerUnavailable)
    assert "127.0.0.1:1" in str(lost)
    assert "hunter2" not in str(lost)

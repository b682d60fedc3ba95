"""An agent with real processes: phones come and go on a real adb server, which is killed and restarted."""

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil

from orchestrator.domain.agent import PhoneReport
from orchestrator.domain.health import Condition
from orchestrator.execution.broker import Broker
from orchestrator.execution.run_folder import RunFolder
from tests.farm import ONE_CASE, Farm, wait_for
from tests.phones import free_port, own_adb_server, process_runs, running_phone
from workers.transports.adb import AdbServer, list_phones

LONG = ONE_CASE.replace("repeats: 1", "repeats: 3\n    idle_replays: 1\n    idle_s: 1.0").replace(
    "{n: 33}", "{n: [33, 40, 65, 97]}"
)
"""A rest makes each of four cases last, so that there is a middle to be killed in."""


@contextmanager
def agent(farm: Farm) -> Generator["subprocess.Popen[bytes]"]:
    process = farm.start("agent", "--no-local", log=farm.folder / "agent.log")
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def phones(url: str) -> dict[str, PhoneReport]:
    broker = Broker(url)
    try:
        return {p.serial: p for a in broker.agents() for p in a.phones}
    finally:
        broker.close()


def served(url: str) -> dict[str, int]:
    """Serial → worker's process id."""
    broker = Broker(url)
    try:
        return {r.record.serial: r.pid for r in broker.registrations().values()}
    finally:
        broker.close()


def test_phones_come_and_go_over_a_restart_of_the_adb_server(farm: Farm, broker: str, tmp_path: Path) -> None:
    """G2-06, G2-08: the server is killed; its phones come back with new transports, and nobody is blamed."""
    port = free_port()
    farm.environment |= {"TILEFARM_BROKER": broker, "ANDROID_ADB_SERVER_PORT": str(port), "ADB_MDNS": "0"}
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(ONE_CASE)
    with own_adb_server(tmp_path / "adb-1", port) as server, agent(farm) as running:
        with (
            running_phone(server, "snapdragon-8-gen-3", tmp_path / "phone-1") as one,
            running_phone(server, "mid-mali", tmp_path / "phone-2", ["unauthorized"], connect=False) as two,
        ):
            wait_for(lambda: one.serial in served(broker), "a worker for the phone")
            farm.run("run", "--matrix", str(matrix), "--no-probes")
            assert [t.verdict for t in farm.latest().trials] == ["pass"]
            killed = server_pid(port)
            os.kill(killed, signal.SIGKILL)
            wait_for(lambda: server_pid(port) not in (0, killed), "the agent to start a server again")
            wait_for(lambda: one.serial in listed(server), "the agent to connect its network phone again")
            wait_for(
                lambda: _condition(broker, one.serial) is Condition.ONLINE and one.serial in served(broker),
                "the phone to be back",
            )
            farm.run("run", "--matrix", str(matrix), "--no-probes")
            assert [t.verdict for t in farm.latest().trials] == ["pass"]
            assert two.serial not in served(broker)
            farm.run("hold", one.serial, "--why", "new battery")
            assert _condition(broker, one.serial) is Condition.MAINTENANCE, "hold waits for the agent's word"
            held = served(broker)[one.serial]
            farm.run("release", one.serial)
            # Which opens it anew: a person may have updated it.
            wait_for(lambda: served(broker).get(one.serial, held) != held, "a new worker after the hold")
            server.disconnect_phone(one.serial)
            wait_for(lambda: not served(broker), "the worker of the phone that left to end")
            assert _condition(broker, one.serial) is Condition.OFFLINE
            missing = farm.run("run", "--matrix", str(matrix), expect=3)
            assert "offline on" in missing.stderr
            one.connect()
            wait_for(lambda: one.serial in served(broker), "a new worker")
            last = served(broker)[one.serial]
            running.terminate()
            assert running.wait(60) == 0, (farm.folder / "agent.log").read_text()
            assert not process_runs(last)
            assert phones(broker) == {}
        os.kill(server_pid(port), signal.SIGTERM)


def test_an_agent_that_was_killed_leaves_its_batch_to_end_and_the_next_one_waits(
    farm: Farm, broker: str, tmp_path: Path
) -> None:
    """kill -9 in mid-run: the phone's worker ends its batch, the next agent touches nothing before."""
    port = free_port()
    farm.environment |= {"TILEFARM_BROKER": broker, "ANDROID_ADB_SERVER_PORT": str(port), "ADB_MDNS": "0"}
    matrix = tmp_path / "matrix.yaml"
    matrix.write_text(LONG)
    with (
        own_adb_server(tmp_path / "adb", port) as server,
        running_phone(server, "snapdragon-8-gen-3", tmp_path / "phone") as phone,
    ):
        with agent(farm) as first:
            wait_for(lambda: phone.serial in served(broker), "a worker for the phone")
            old = served(broker)[phone.serial]
            run = farm.start("run", "--matrix", str(matrix), "--no-probes")
            wait_for(lambda: len(_verdicts(farm)) > 0, "the first results")
            os.kill(first.pid, signal.SIGKILL)
            first.wait(60)
        log = farm.folder / "agent.log"
        log.unlink()
        with agent(farm):
            assert run.wait(600) == 0, (farm.folder / "background.log").read_text()
            wait_for(lambda: served(broker).get(phone.serial, old) != old, "a worker of the new agent")
        assert [t.verdict for t in farm.latest().trials] == ["pass"] * 4
        assert {t.attempt for t in farm.latest().trials} == {1}, "nothing was taken from a batch"
        assert "recovering" not in log.read_text()
        assert (phone.phone.boots, phone.phone.links) == (0, 1)


def _verdicts(farm: Farm) -> list[str]:
    """What is on disk so far, of the only run."""
    folders = list((farm.out / "runs").glob("*"))
    return [t.verdict for t in RunFolder(folders[0]).trials().values()] if folders else []


def _condition(url: str, serial: str) -> Condition | None:
    found = phones(url).get(serial)
    return found.condition if found else None


def listed(server: AdbServer) -> list[str]:
    return [row.serial for row in list_phones(server) if row.usable]


def server_pid(port: int) -> int:
    """Of the adb server that listens there; 0: none does."""
    listening = (
        c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN and c.laddr[1:2] == (port,)
    )
    return next((c.pid for c in listening if c.pid), 0)

"""``tilefarm agent``: the agent with a real adb server, real processes and a real Redis."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import redis
import structlog

from orchestrator.domain.agent import AgentReport, News
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import InfraError, NotInstalled, WireError
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Rung
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import AGENT_TTL_S, DEVICE_KEY_PREFIX, agent_key, lease_key
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import from_json, to_json
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient, connect
from workers.agent.agent import Agent
from workers.agent.child import WorkerChild
from workers.agent.ladder import climb
from workers.agent.station import Identity
from workers.discovery import Reachable, host_name, local_gpus
from workers.news import heard
from workers.transports.adb import AdbDevice, AdbServer, server_address
from workers.transports.adb_tracking import Tracker

TICK_S = 0.5
ASK_S = 10.0
THREADS = 16
"""Phones that are asked or recovered at once."""
STOP_S = 900.0
"""A batch is about a minute; a worker that has not ended its own by then is killed."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
log = structlog.get_logger()


@dataclass(slots=True)
class _World:
    server: AdbServer
    settings: Settings
    folder: Path
    pool: ThreadPoolExecutor
    stop: threading.Event

    def identify(self, serial: str) -> Identity:
        device = AdbDevice(self.server, serial)
        properties = device.properties(timeout_s=ASK_S)
        boot = device.run(["cat", _BOOT_ID], timeout_s=ASK_S).stdout.decode("ascii", "replace").strip()
        number = properties.get("ro.serialno") or properties.get("ro.boot.serialno") or ""
        return Identity(number, boot, properties.get("sys.boot_completed") == "1")

    def climb(self, rung: Rung, serial: str) -> None:
        log.info("recovering", serial=serial, rung=rung)
        climb(rung, self.server, serial, self.settings.power_cycle, self.stop)

    def start_worker(self, found: Reachable) -> WorkerChild:
        # A serial may hold any characters, and becomes no file name.
        name = f"worker-{sha256_hex(found.serial.encode('utf-8', 'surrogateescape'))[:12]}"
        log.info("starting a worker", serial=found.serial)
        return WorkerChild(found, {"TILEFARM_BROKER": self.settings.broker}, self.folder, name)

    def later(self, call: Callable[[], object]) -> "Future[object]":
        return self.pool.submit(call)


@dataclass(slots=True)
class _Farm:
    """Redis, which may be away for a while: then nothing is news, and nobody is told."""

    client: RedisClient
    host: str

    def registrations(self) -> Mapping[int, Registration]:
        found: dict[int, Registration] = {}
        try:
            for key in self.client.scan_iter(match=f"{DEVICE_KEY_PREFIX}*"):
                text = self.client.get(key)
                worker = from_json(Registration, text, key.decode()) if text else None
                if worker is not None and worker.record.host == self.host:
                    found[worker.pid] = worker
        except (redis.RedisError, WireError) as e:
            log.warning("registrations not read", error=str(e))
        return found

    def holds(self) -> Mapping[str, Hold]:
        holds = Leases(self.client).holds().values()
        return {hold.serial: hold for hold in holds if hold.host == self.host}

    def busy(self, device_id: str) -> bool:
        return self.client.exists(lease_key(device_id)) == 1

    def news(self, device_id: str) -> Iterable[News]:
        return list(heard(self.client, device_id))

    def publish(self, report: AgentReport) -> None:
        self.client.set(agent_key(self.host), to_json(report), ex=AGENT_TTL_S)


def serve(settings: Settings, *, local: bool) -> None:
    """Follow this host's phones until SIGTERM or SIGINT; then end each worker after its batch.

    Args:
        local: serve this machine's own GPUs as well.

    Raises:
        BrokerUnavailable: no Redis at ``settings.broker``.
        InfraError: another agent serves this host.
    """
    client = connect(settings.broker)
    host, server = host_name(), server_address()
    _only_one(client, host)
    report = AgentReport(host, os.getpid(), datetime.now(UTC).isoformat(timespec="seconds"), "")
    with (
        tempfile.TemporaryDirectory(prefix="tilefarm-agent-") as folder,
        ThreadPoolExecutor(THREADS, thread_name_prefix="phone") as pool,
    ):
        ending = threading.Event()
        world = _World(server, settings, Path(folder), pool, ending)
        agent = Agent(report, world, _Farm(client, host))
        if local:
            _serve_local(agent, settings)
        tracker = Tracker(server, agent.listed, agent.no_server)
        tracker.start()
        stopping = _Stopping()
        try:
            while not stopping.asked:
                _tick(agent)
            ending.set()
            log.info("ending workers after their batches; a second signal ends them at once")
            agent.stop()
            deadline = time.monotonic() + STOP_S
            while agent.workers and time.monotonic() < deadline and stopping.asked < 2:
                _tick(agent)
        finally:
            ending.set()
            tracker.stop()
            agent.kill_workers()
            stopping.restore()
            client.delete(agent_key(host))
            client.close()


def _tick(agent: Agent) -> None:
    try:
        agent.tick()
    except redis.RedisError as e:
        log.warning("the broker does not answer", error=str(e))
    time.sleep(TICK_S)  # the period of the loop; what changes meanwhile is taken in by the next tick


def _only_one(client: RedisClient, host: str) -> None:
    text = client.get(agent_key(host))
    other = from_json(AgentReport, text, agent_key(host)) if text else None
    if other is not None and Path(f"/proc/{other.pid}").exists():
        raise InfraError(
            f"{host} has an agent already: process {other.pid} since {other.started_at}; end that one first"
        )


def _serve_local(agent: Agent, settings: Settings) -> None:
    try:
        for found in local_gpus(settings):
            if found.by_default:
                agent.serve_local(found)
    except (InfraError, NotInstalled) as e:
        log.warning("this machine's own GPUs are not served", why=str(e))


class _Stopping:
    """Counts SIGTERM and SIGINT."""

    def __init__(self) -> None:
        self.asked = 0
        self._before = {
            number: signal.signal(number, self._ask) for number in (signal.SIGTERM, signal.SIGINT)
        }

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, _number: int, _frame: object) -> None:
        self.asked += 1

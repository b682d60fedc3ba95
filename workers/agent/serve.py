"""``tilefarm agent``: the agent with a real adb server, real processes and a real Redis."""

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import redis
import structlog

from orchestrator.domain.agent import AgentReport, PhoneReport
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import InfraError, NotInstalled, WireError
from orchestrator.domain.health import Rung
from orchestrator.domain.moment import utc_now
from orchestrator.domain.names import AGENT_TTL_S, agent_key
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import unpack
from orchestrator.storage.redis_client import RedisClient, connect
from workers.agent.agent import Agent
from workers.agent.farm import RedisFarm
from workers.agent.ladder import CONNECT_S, climb, power_words
from workers.agent.station import Identity
from workers.child import WorkerChild
from workers.discovery import Reachable, host_name, local_gpus
from workers.identity import phone_id
from workers.locks import exclusive
from workers.transports.adb import AdbDevice, AdbServer
from workers.transports.adb_server import server_address
from workers.transports.adb_tracking import Tracker

TICK_S = 0.5
ASK_S = 10.0
ANSWER_S = 10.0
"""So long one command to Redis may take: phones and signals must not wait for a hanging link."""
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

    def identify(self, serial: str) -> Identity:
        device = AdbDevice(self.server, serial)
        properties = device.properties(timeout_s=ASK_S)
        boot = device.run(["cat", _BOOT_ID], timeout_s=ASK_S).stdout.decode("ascii", "replace").strip()
        number = properties.get("ro.serialno") or properties.get("ro.boot.serialno") or ""
        device_id = ""
        with suppress(InfraError):  # it tells no serial number, early in a boot
            device_id = phone_id(properties)
        return Identity(number, boot, properties.get("sys.boot_completed") == "1", device_id)

    def connect(self, serial: str) -> None:
        log.info("connecting again", serial=serial)
        self.server.connect_phone(serial, CONNECT_S)

    def climb(self, rung: Rung, serial: str, leave: threading.Event, *, network: bool) -> None:
        log.info("recovering", serial=serial, rung=rung.value)
        climb(rung, self.server, serial, self.settings.power_cycle, leave, network=network)

    def start_worker(self, found: Reachable) -> WorkerChild:
        # A serial may hold any characters, and becomes no file name.
        name = f"worker-{sha256_hex(found.serial.encode('utf-8', 'surrogateescape'))[:12]}"
        log.info("starting a worker", serial=found.serial)
        broker = {"TILEFARM_BROKER": self.settings.broker}
        child = WorkerChild(found, broker, self.folder, name, own_session=True)
        child.start()
        return child

    def later(self, call: Callable[[], object]) -> "Future[object]":
        return self.pool.submit(call)


def serve(settings: Settings, *, local: bool) -> None:
    """Follow this host's phones until SIGTERM or SIGINT; then end each worker after its batch.

    Args:
        local: serve this machine's own GPUs as well.

    Raises:
        UsageError: TILEFARM_POWER_CYCLE is no command.
        BrokerUnavailable: no Redis at ``settings.broker``.
        InfraError: another agent serves this host.
    """
    power_words(settings.power_cycle)
    client = connect(settings.broker, answer_s=ANSWER_S)
    host, server = host_name(), server_address()
    with (
        only_one(client, host, server),
        ThreadPoolExecutor(THREADS, thread_name_prefix="phone") as pool,
    ):
        folder = (settings.out / "logs" / "agent").resolve()
        report = AgentReport(host, os.getpid(), utc_now(), "")
        agent = Agent(report, _World(server, settings, folder, pool), RedisFarm(client))
        agent.inherit(_left_behind(client, host))
        if local:
            _serve_local(agent, settings)
        tracker = Tracker(server, agent.listed, agent.no_server)
        tracker.start()
        stopping = _Stopping()
        try:
            while not stopping.asked:
                _tick(agent)
            log.info("ending workers after their batches; a second signal ends them at once")
            agent.stop()
            deadline = time.monotonic() + STOP_S
            while agent.workers and time.monotonic() < deadline and stopping.asked < 2:
                _tick(agent)
            agent.kill_workers()
        finally:
            tracker.stop()
            agent.stop()  # also on an error of ours: workers finish their batches
            pool.shutdown(wait=False, cancel_futures=True)
            stopping.restore()
            with suppress(redis.RedisError):  # it ends by itself
                client.delete(agent_key(host))
            client.close()


def _tick(agent: Agent) -> None:
    try:
        agent.tick()
    except Exception:
        log.exception("unexpected; going on")
    time.sleep(TICK_S)  # the period of the loop; what changes meanwhile is taken in by the next tick


@contextmanager
def only_one(
    client: RedisClient, host: str, server: AdbServer, sleep: Callable[[float], object] = time.sleep
) -> Generator[None]:
    """This process is the only agent of its adb server, and of its host in this farm.

    An agent that was killed leaves its report in Redis for some seconds; a living one renews it.

    Raises:
        InfraError: there is another one; names it.
    """
    with exclusive(f"agent-{server.host}-{server.port}", timeout_s=0):
        for _ in range(AGENT_TTL_S + 2):
            if not _other(client, host):
                break
            sleep(1.0)  # for a report to end that nobody renews: its process id may be another's by now
        else:
            if who := _other(client, host):
                raise InfraError(f"{host} has an agent already: {who}; end that one first")
        yield


def _left_behind(client: RedisClient, host: str) -> Sequence[PhoneReport]:
    """Phones of this host's agent that was killed a moment ago; one that ends in order leaves no report."""
    with suppress(WireError):
        if text := client.get(agent_key(host)):
            return unpack(AgentReport, text, agent_key(host)).phones
    return ()


def _other(client: RedisClient, host: str) -> str:
    """Who reports for this host; empty: nobody, or a process that has ended."""
    text = client.get(agent_key(host))
    if text is None:
        return ""
    try:
        other = unpack(AgentReport, text, agent_key(host))
    except WireError as e:
        return f"one whose report cannot be read ({e})"
    return f"process {other.pid} since {other.started_at}" if Path(f"/proc/{other.pid}").exists() else ""


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

"""A farm of many phones on one machine: points a minute, latency of dispatch, memory, and where time goes.

    python -m benchmarks.scale [--phones N ...] [--agents N] [--cases N] [--case-ms N]

Redis, adb servers (one an agent), agents, one worker process a phone, phones (adb's transport over TCP, their
shell is this machine's) and `tilefarm run` are real; only the runner is simulated, and takes ``--case-ms`` a
case. All of it shares this machine's processors: what phones and adb servers use here, a real farm has
elsewhere. So the processor time of each part is told beside the rate.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import psutil

from benchmarks.overhead import prepare
from benchmarks.places import START_S
from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.broker import Broker
from orchestrator.execution.private_redis import private_redis
from orchestrator.execution.run_folder import load_results
from orchestrator.storage.blobs import BlobStore
from tests.chaos.farm import SITE
from tests.chaos.matrix import write_matrix
from tests.chaos.phones import install_runner
from tests.phones import adb_server_process
from workers.transports.adb import AdbServer

READY_S = 3600.0
IDLE_S = 20.0
PROBES = 60
"""Batches that are sent to idle phones, one at a time."""


@dataclass(slots=True)
class Parts:
    """Process ids by what they are."""

    pids: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict[str, set[int]](set))

    def add(self, what: str, pid: int) -> None:
        self.pids[what].add(pid)

    def tree(self) -> Iterator[tuple[str, psutil.Process]]:
        """Every living process; children of a part belong to it, but workers are no agents."""
        for what, pids in self.pids.items():
            for pid in pids:
                with suppress(psutil.NoSuchProcess):
                    parent = psutil.Process(pid)
                    yield what, parent
                    for child in parent.children(recursive=True):
                        yield ("workers" if what == "agents" else what), child

    def seconds(self) -> dict[str, float]:
        """Processor time so far, with that of children that have ended."""
        total: defaultdict[str, float] = defaultdict(float)
        for what, process in self.tree():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                gone = what != "agents"
                total[what] += times.user + times.system
                total[what] += (times.children_user + times.children_system) if gone else 0.0
        return dict(total)

    def memory(self, what: str) -> list[tuple[float, float]]:
        """(PSS, RSS) in MB of each process of a part."""
        found: list[tuple[float, float]] = []
        for kind, process in self.tree():
            if kind == what:
                with suppress(psutil.NoSuchProcess):
                    full = process.memory_full_info()
                    found.append((full.pss / 1e6, full.rss / 1e6))
        return found


@dataclass(slots=True)
class Farm:
    folder: Path
    broker: Broker
    parts: Parts
    environment: dict[str, str]
    phones: int
    ready_s: float = 0.0

    def run(self, matrix: Path) -> "subprocess.Popen[bytes]":
        log = (self.folder / "run.log").open("wb")
        command = [sys.executable, "-m", "orchestrator.cli.main", "run", "--matrix", str(matrix)]
        process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        self.parts.add("run", process.pid)
        return process


@contextmanager
def farm(folder: Path, phones: int, agents: int, case_ms: int) -> Generator[Farm]:
    """Ready once every phone has a worker."""
    with ExitStack() as stack:
        url = stack.enter_context(private_redis())
        parts = Parts()
        redis = next(p for p in psutil.Process().children(recursive=True) if "redis-server" in p.name())
        parts.add("redis", redis.pid)
        runner = install_runner(folder / "runner")
        common = {k: v for k, v in os.environ.items() if not k.startswith("TILEFARM_")} | {
            "TILEFARM_BROKER": url,
            "TILEFARM_BLOBS": (folder / "blobs").as_uri(),
            "TILEFARM_RUNNER_DIR": str(runner),
            "ADB_MDNS": "0",
        }
        broker = Broker(url)
        stack.callback(broker.close)
        built = Farm(folder, broker, parts, {**common, "TILEFARM_OUT": str(folder / "out")}, phones)
        began = time.monotonic()
        for number in range(agents):
            count = phones * (number + 1) // agents - phones * number // agents
            first = phones * number // agents
            own = folder / f"host{number}"
            (own / "tmp").mkdir(parents=True)
            server, pid = stack.enter_context(adb_server_process(own))
            parts.add("adb servers", pid)
            _shelf(stack, parts, folder, server, first, count, case_ms)
            environment = {
                **common,
                "TILEFARM_OUT": str(own / "out"),
                "ANDROID_ADB_SERVER_PORT": str(server.port),
                "TMPDIR": str(own / "tmp"),
                "PYTHONPATH": os.pathsep.join(filter(None, [str(SITE), os.environ.get("PYTHONPATH", "")])),
                "CHAOS_HOST": f"host-{number}",
            }
            _agent(stack, parts, own, environment)
        while len(broker.registrations()) < phones:
            if time.monotonic() - began > READY_S:
                raise SystemExit(f"{len(broker.registrations())} of {phones} phones have a worker")
            time.sleep(1.0)  # workers register from other processes; the deadline bounds the wait
        built.ready_s = time.monotonic() - began
        yield built


def _shelf(
    stack: ExitStack, parts: Parts, folder: Path, server: AdbServer, first: int, count: int, case_ms: int
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.shelf", str(folder), str(first), str(count), str(case_ms)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(_end, process)
    parts.add("phones", process.pid)
    for line in iter(process.stdout.readline if process.stdout else str, "\n"):
        server.connect_phone(line.strip(), START_S)


def _agent(stack: ExitStack, parts: Parts, own: Path, environment: dict[str, str]) -> None:
    log = stack.enter_context((own / "agent.log").open("wb"))
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli.main", "agent", "--no-local"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
    stack.callback(_end, process)
    parts.add("agents", process.pid)


def _end(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    """Twice asked, an agent ends its workers at once."""
    if process.stdin is not None:
        process.stdin.close()
    else:
        process.send_signal(signal.SIGTERM)
        time.sleep(1.0)  # the agent counts signals: the second one must not come with the first
        process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(START_S)
    process.kill()


def latencies(built: Farm) -> list[float]:
    """From a batch's sending to its start on an idle phone, in ms."""
    found: list[float] = []
    devices = sorted(built.broker.registrations())
    store = BlobStore(built.environment["TILEFARM_BLOBS"])
    cases = prepare(store, Settings(), 1).cases
    for number in range(PROBES):
        run_id = f"probe-{uuid.uuid4().hex[:8]}"
        batch = Batch(run_id, uuid.uuid4().hex[:12], devices[7 * number % len(devices)], store.url, cases)
        began = time.monotonic()
        built.broker.send(batch, "ondemand")
        after, ended = "0", False
        while not ended and time.monotonic() - began < START_S:
            for entry_id, event in built.broker.events(run_id, after, 1000):
                after = entry_id
                if isinstance(event, Progress) and event.state == "batch":
                    found.append((time.monotonic() - began) * 1000)
                ended = ended or isinstance(event, Trial)
    return found


def idle(built: Farm) -> None:
    """What a farm without work costs."""
    pairs = built.parts.memory("workers")
    agents = built.parts.memory("agents")
    before = built.parts.seconds()
    time.sleep(IDLE_S)  # what is measured
    used = _since(before, built.parts.seconds())
    pss, rss = (median(values) for values in zip(*pairs, strict=True))
    print(f"{built.phones} phones, load {os.getloadavg()[0]:.1f}: ready after {built.ready_s:.0f} s")
    print(f"  an idle phone's worker: PSS {pss:.0f} MB, RSS {rss:.0f} MB; {len(pairs)} workers, ", end="")
    print(f"together PSS {sum(p for p, _ in pairs):.0f} MB; an agent {median(p for p, _ in agents):.0f} MB")
    shares = ", ".join(f"{what} {100 * s / IDLE_S:.1f}" for what, s in sorted(used.items()))
    print(f"  idle, % of one processor: {shares}")


def busy(built: Farm, cases: int) -> None:
    """One run of so many cases a phone."""
    matrix = write_matrix(built.folder, cases)
    before = last = built.parts.seconds()
    process = built.run(matrix)
    while process.poll() is None:
        last = built.parts.seconds()
        time.sleep(0.5)  # the run is another process; it has its own deadlines
    results = load_results(built.folder / "out" / "latest")
    at_ms, after = list[int](), "0"
    while entries := list(built.broker.events(results.run.run_id, after, 1)):
        after = entries[-1][0]
        at_ms += [int(i.split("-")[0]) for i, event in entries if isinstance(event, Trial)]
    wrong = [t for t in results.trials if t.verdict is not Verdict.PASS]
    wall = (at_ms[-1] - at_ms[0]) / 1000
    print(f"  {len(results.trials)} points, {len(wrong)} no pass, {len(results.missing)} missing: ", end="")
    print(f"{len(at_ms) / wall * 60:.0f} a minute ({wall:.1f} s from the first to the last)")
    used = _since(before, last)
    total = sum(used.values())
    print(f"  processor time {total:.0f} s, ms a point: ", end="")
    print(", ".join(f"{what} {1e3 * s / len(at_ms):.1f}" for what, s in _longest_first(used)))
    print(f"  redis-server {built.parts.memory('redis')[0][1]:.0f} MB")


def _since(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {what: seconds - before.get(what, 0.0) for what, seconds in after.items()}


def _longest_first(used: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(used.items(), key=lambda item: -item[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--phones", type=int, nargs="+", default=[10, 50, 200])
    parser.add_argument("--agents", type=int, default=20, help="at most one a phone")
    parser.add_argument("--cases", type=int, default=100, help="of each phone, an even number")
    parser.add_argument("--case-ms", type=int, default=20)
    given = parser.parse_args()
    for phones in given.phones:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            agents = min(given.agents, phones)
            with farm(Path(name), phones, agents, given.case_ms) as built:
                idle(built)
                waits = latencies(built)
                worst = quantiles(waits, n=20)[-1]
                print(f"  from sending a batch to its start: median {median(waits):.0f} ms, ", end="")
                print(f"p95 {worst:.0f} ms of {len(waits)}", flush=True)
                busy(built, given.cases)


if __name__ == "__main__":
    main()

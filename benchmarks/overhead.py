"""What a case costs beside compilation, dispatch and on-device verification, through a whole worker.

    python -m benchmarks.overhead [--batches N] [--cases N] [--canary] [local] [phone]

Batches of small cases (scale, 256 KiB tensors) go through Celery, Redis, lease, session and runner to the
inserted result; the first batch, which pushes the blobs, is not counted. Overhead is the time from the last
result of that batch to the last result of all, less what the runner itself spent in the stages of the
counted cases, by its own clock. ``phone`` is a virtual phone over a real adb server: its link is a real
socket, its shell and files are this machine's.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.metered import Metered
from benchmarks.places import adb_server, phone
from orchestrator.domain.case import Case
from orchestrator.domain.job import Batch, CanaryJob, CaseJob
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.broker import Broker
from orchestrator.execution.prepare import Prepared, prepare_all
from orchestrator.execution.private_redis import private_redis
from orchestrator.execution.spirv import SpirvCompiler, cache_folder
from orchestrator.planning.kernel_folder import load_kernels
from orchestrator.planning.matrix import Sampling
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.redis_client import connect
from tests.kernels.harness import make_case
from workers.bench import Bench
from workers.discovery import Reachable, local_gpus
from workers.opening import open_bench
from workers.serve import work
from workers.tasks import make_app

TENSOR_BYTES = 256 * 1024
FINISH_S = 600.0
KERNELS = Path(__file__).resolve().parents[1] / "kernels"
SHADERS = [{"vector": v, "group": g} for v in (1, 4) for g in (64, 128, 256)]


@dataclass(frozen=True, slots=True)
class Work:
    cases: list[CaseJob]
    canary: CanaryJob


def prepare(store: BlobStore, settings: Settings, count: int) -> Work:
    """Cases of six shaders in turns, and a canary."""
    kernels = load_kernels(KERNELS)
    scale = kernels["scale"].kernel
    workload = {"n": TENSOR_BYTES // 4}
    planned = [
        make_case(scale, workload, axes={"api": "gles", "precision": "fp32", **axes}) for axes in SHADERS
    ]
    canary = make_case(kernels["canary"].kernel, {}, axes={"api": "gles"})
    sampling = Sampling(repeats=10, replays=2, deadline_s=60)
    cases: dict[str, tuple[Case, Sampling]] = {c.case_id: (c, sampling) for c in [*planned, canary]}
    found = prepare_all(store, SpirvCompiler(cache_folder(settings)), kernels, cases, lambda _done: None)
    jobs = {i: p.job for i, p in found.items() if isinstance(p, Prepared)}
    shaders = [jobs[c.case_id] for c in planned]
    copies = [
        replace(shaders[n % len(shaders)], case_id=f"{shaders[n % len(shaders)].case_id}-{n}")
        for n in range(count)
    ]
    return Work(copies, CanaryJob(jobs[canary.case_id], factor=100.0))


@contextmanager
def bench_of(kind: str, folder: Path) -> Generator[Bench]:
    settings = Settings(workdir=folder / "work")
    if kind == "local":
        gpu = next(f for f in local_gpus(settings) if f.serial == "local:llvmpipe")
        yield open_bench(gpu, settings)
        return
    with adb_server(folder / "adb") as server, phone(server, "snapdragon-8-gen-3", folder / "phone") as name:
        yield open_bench(Reachable("adb", name), settings)


class Results:
    """Follows a run's stream in a thread; ends the worker, which is this process, when all is in."""

    def __init__(self, broker: Broker, run_id: str, sizes: Sequence[int]) -> None:
        self._broker = broker
        self._run_id = run_id
        self._sizes = sizes
        self.batch_ends_s: list[float] = []
        self.trials: list[Trial] = []
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        after, deadline = "0", time.monotonic() + FINISH_S
        ends = [sum(self._sizes[: n + 1]) for n in range(len(self._sizes))]
        while len(self.trials) < ends[-1] and time.monotonic() < deadline:
            for entry_id, event in self._broker.events(self._run_id, after, 100):
                after = entry_id
                if not isinstance(event, Trial):
                    continue
                self.trials.append(event)
                if len(self.trials) in ends:
                    self.batch_ends_s.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)


def measure(kind: str, batches: int, size: int, *, canary: bool) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(private_redis())
        store = BlobStore((folder / "blobs").as_uri())
        done = prepare(store, Settings(), size)
        bench = stack.enter_context(bench_of(kind, folder))
        device = Metered(bench.device)
        bench = replace(bench, device=device)
        broker, client = Broker(url), connect(url)
        run_id = f"overhead-{uuid.uuid4().hex[:6]}"
        for _ in range(batches + 1):
            broker.send(
                Batch(
                    run_id=run_id,
                    batch_id=uuid.uuid4().hex[:12],
                    device_id=bench.record.device_id,
                    blob_store=store.url,
                    cases=[replace(c, case_id=f"{c.case_id}-{uuid.uuid4().hex[:6]}") for c in done.cases],
                    canaries=[done.canary] if canary else [],
                ),
                "ondemand",
            )
        results = Results(broker, run_id, [size] * (batches + 1))
        app = make_app(url, bench, client, "benchmark")
        app.conf.worker_redirect_stdouts = False
        work(app, bench)
        report(kind, device, results, size, canary=canary)


def report(kind: str, device: Metered, results: Results, size: int, *, canary: bool) -> None:
    wrong = [t for t in results.trials if t.verdict is not Verdict.PASS]
    if wrong or len(results.batch_ends_s) < 2:
        raise SystemExit(f"{kind}: {len(wrong)} of {len(results.trials)} are no pass: {wrong[:1]}")
    since, until = results.batch_ends_s[0], results.batch_ends_s[-1]
    counted = {t.case_id for t in results.trials}
    ends = [
        line
        for line in device.lines
        if line.kind == "end" and line.at_s > since and line.record["case"] in counted
    ]
    cases = len(results.batch_ends_s[1:]) * size
    inside = sum(line.spent_s(without=["context"]) for line in ends)
    everything = [line for line in device.lines if line.kind == "end" and line.at_s > since]
    watching = sum(line.spent_s(without=["context"]) for line in everything) - inside
    opening = sum(line.spent_s() for line in everything) - inside - watching
    wall = until - since
    print(f"{kind}: {cases} cases in {cases // size} batches, canary {'yes' if canary else 'no'}, ", end="")
    print(f"load {os.getloadavg()[0]:.1f}")
    print(f"  wall {wall:.2f} s; compile, dispatch and verify in the runner {inside:.2f} s")
    print(f"  overhead a case {(wall - inside) / cases * 1e3:.1f} ms, of it opening the driver ", end="")
    print(f"{opening / cases * 1e3:.1f} ms, canaries {watching / cases * 1e3:.1f} ms")
    for what, (count, total) in sorted(device.by_call(since).items()):
        print(f"    {what:12} {count / (cases / size):5.1f} a batch, {total / count * 1e3:7.1f} ms each")
    streams = [c for c in device.calls if c.what == "stream" and c.began_s > since]
    starts = [line.at_s for line in device.lines if line.kind == "start"]
    first = [min(at for at in starts if at > c.began_s) - c.began_s for c in streams]
    closing = [c.ended_s - max(e.at_s for e in ends if e.at_s < c.ended_s) for c in streams]
    gaps = [b.began_s - a.ended_s for a, b in pairwise(streams)]
    told = (("to the first case", first), ("after the last case", closing), ("between two runners", gaps))
    for name, values in told:
        if values:
            print(f"    {name:20} {median(values) * 1e3:7.1f} ms a batch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=["local", "phone"], metavar="KIND")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--cases", type=int, default=12, help="in a batch")
    parser.add_argument("--canary", action="store_true", help="as a run has them; they count as overhead")
    given = parser.parse_args()
    if len(given.kinds) == 1:
        measure(given.kinds[0], given.batches, given.cases, canary=given.canary)
        return
    for kind in given.kinds:  # each in a process of its own: it becomes a worker, which ends with its batches
        words = [kind, "--batches", str(given.batches), "--cases", str(given.cases)]
        words += ["--canary"] if given.canary else []
        subprocess.run([sys.executable, "-m", "benchmarks.overhead", *words], check=True)


if __name__ == "__main__":
    main()

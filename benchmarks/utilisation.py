"""How much of a device's time in a run goes into compilation, dispatch and on-device verification.

    python -m benchmarks.utilisation [--suite NAME] [-k SELECTION] [--gpu NAME] [--orders]

`tilefarm run` is started as on a farm, with a Redis of its own; its only worker is this process, so that
every call to the device and every record of the runner can be timed. The share is of the time from the first
batch's arrival to the last result; what the command does before and after (planning, preparing, the report)
is told beside it. Nothing is cached: no blob, no module.

``--orders``: three runs in turns, of which the last two say that their device is on another host, so that
nobody waits for a processor: as it is; everything prepared first; prepared while the device works. Preparing
and the device share this machine's processors all the same, which a phone would not.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.metered import Metered
from orchestrator.domain.settings import Settings
from orchestrator.execution.private_redis import private_redis
from orchestrator.storage.redis_client import connect
from workers.discovery import local_gpus
from workers.opening import open_bench
from workers.registry import Heartbeat
from workers.serve import work
from workers.tasks import make_app

ORDERS = ("as it is", "all prepared first", "prepared meanwhile")
STAGES = ("buffers", "compile", "link", "dispatch", "readback", "verify", "timing", "rest")


@dataclass(slots=True)
class Run:
    """The command, from its start to its end."""

    command: Sequence[str]
    environment: dict[str, str]
    log: Path
    began_s: float = 0.0
    ended_s: float = 0.0
    code: int = 0

    def carry_out(self) -> None:
        """Then ends the worker, which is this process."""
        self.began_s = time.monotonic()
        with self.log.open("wb") as log:
            done = subprocess.run(
                self.command,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        self.ended_s, self.code = time.monotonic(), done.returncode
        os.kill(os.getpid(), signal.SIGTERM)


def measure(gpu: str, command: Sequence[str], *, elsewhere: bool) -> tuple[Run, Metered]:
    """One run with nothing cached."""
    with tempfile.TemporaryDirectory() as name, private_redis() as url:
        folder = Path(name)
        own = {
            "TILEFARM_BROKER": url,
            "TILEFARM_OUT": str(folder / "out"),
            "TILEFARM_WORKDIR": str(folder / "work"),
        }
        settings = Settings(workdir=folder / "work", broker=url, out=folder / "out")
        found = next(f for f in local_gpus(settings) if f.serial == f"local:{gpu}")
        bench = open_bench(found, settings)
        record = replace(bench.record, host="elsewhere", resource="cpu@elsewhere")
        device = Metered(bench.device)
        bench = replace(bench, device=device, record=record if elsewhere else bench.record)
        client = connect(url)
        heartbeat = Heartbeat(client, bench.record)
        app = make_app(url, bench, client, heartbeat.registration.worker_id)
        app.conf.worker_redirect_stdouts = False
        heartbeat.start()
        run = Run([sys.executable, *command], os.environ | own, folder / "run.log")
        thread = threading.Thread(target=run.carry_out)
        thread.start()
        work(app, bench)
        thread.join()
        heartbeat.stop()
        if run.code not in (0, 1):
            raise SystemExit(f"exit code {run.code}: {run.log.read_text('utf-8')[-2000:]}")
        return run, device


def report(run: Run, device: Metered, what: str) -> None:
    ends = [line for line in device.lines if line.kind == "end"]
    first, last = device.calls[0].began_s, max(c.ended_s for c in device.calls)
    wall = last - first
    stages: Counter[str] = Counter()
    for line in ends:
        stages.update(line.record.get("timing", {}).get("spent_ns", {}))
    spent = {stage: stages[stage] / 1e9 for stage in STAGES if stages[stage]}
    inside = sum(spent.values())
    streams = [c for c in device.calls if c.what == "stream"]
    processes = sum(c.took_s for c in streams)
    print(f"{what}: {len(ends)} executed cases in {len(streams)} batches, load {os.getloadavg()[0]:.1f}")
    print(
        f"  the device had {wall:.1f} s, {inside:.1f} s of them in stages of the runner: {inside / wall:.1%}"
    )
    print("    " + ", ".join(f"{stage} {s:.1f}" for stage, s in spent.items()))
    print(f"    opening drivers {stages['context'] / 1e9:.1f}; all processes of the runner {processes:.1f}")
    began = run.began_s
    print(
        f"  the command took {run.ended_s - began:.1f} s: first batch after {first - began:.1f} s, ", end=""
    )
    print(f"first result after {ends[0].at_s - began:.1f} s, {run.ended_s - last:.1f} s after the last one")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suite", default="smoke")
    parser.add_argument("-k", dest="select", default="")
    parser.add_argument("--gpu", default="llvmpipe")
    parser.add_argument("--orders", action="store_true")
    parser.add_argument("--order", choices=ORDERS, default=ORDERS[0], help="one of them alone")
    given = parser.parse_args()
    if given.orders:  # each in a process of its own: it becomes a worker, which ends with the run
        words = ["--suite", given.suite, "--gpu", given.gpu, *(["-k", given.select] if given.select else [])]
        for order in ORDERS:
            command = [sys.executable, "-m", "benchmarks.utilisation", *words, "--order", order]
            subprocess.run(command, check=True)
        return
    select = ["-k", given.select] if given.select else []
    command = ["-m", "orchestrator.cli.main", "run", "--suite", given.suite, *select]
    if given.order == ORDERS[1]:
        command = ["-m", "benchmarks.prepared_first", given.suite, *select[1:]]
    run, device = measure(given.gpu, command, elsewhere=given.order != ORDERS[0])
    report(run, device, f"{given.gpu}, suite {given.suite}, {given.order}")


if __name__ == "__main__":
    main()

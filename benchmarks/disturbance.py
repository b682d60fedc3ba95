"""What a push to the phone does to the samples that are measured there meanwhile: an A/A test.

    python -m benchmarks.disturbance [--rounds N] [--cases N] [--blob-kib N]

The same batch runs again and again on a virtual phone, in turns alone (A), alone once more (A') and beside a
push that never ends (B). Told are the medians of all samples, the ratio of each pair of neighbours, and how
many samples are over twice their round's median. The phone's processors are this machine's, which adb's
server, the pushing process and the software driver share: a real phone shares less (adbd, flash and memory).
"""

import argparse
import os
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.overhead import bench_of, prepare
from orchestrator.domain.job import Batch
from orchestrator.domain.settings import Settings
from orchestrator.storage.blobs import BlobStore
from workers.bench import Bench
from workers.session import run_batch

PUSH_S = 60.0


@contextmanager
def pushing(bench: Bench, data: bytes) -> Generator[list[int]]:
    """Gives a list with one entry a push."""
    stop, pushed = threading.Event(), list[int]()

    def push() -> None:
        while not stop.is_set():
            bench.device.push(data, f"{bench.device.workdir}/ahead/blob", timeout_s=PUSH_S)
            pushed.append(len(data))

    thread = threading.Thread(target=push)
    thread.start()
    try:
        yield pushed
    finally:
        stop.set()
        thread.join()


def samples(bench: Bench, batch: Batch, store: BlobStore) -> list[int]:
    """Wall time of each timed dispatch, in ns."""
    trials = run_batch(bench, batch, batch.cases, store, lambda _news: None)
    found = [ns for t in trials if t.timing is not None for ns in t.timing.wall_ns]
    if not found:
        raise SystemExit(f"nothing was measured: {trials[0].reason}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--blob-kib", type=int, default=1024)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = BlobStore((folder / "blobs").as_uri())
        work = prepare(store, Settings(), given.cases)
        cases = [replace(c, repeats=30) for c in work.cases]
        found: dict[str, list[list[int]]] = {"A": [], "A'": [], "B": []}
        pushes: list[int] = []
        with bench_of("phone", folder) as bench:
            data = os.urandom(given.blob_kib * 1024)
            for n in range(given.rounds + 1):
                for which in found:
                    batch = Batch("aa", f"{which[0].lower()}{len(which)}{n}", "", store.url, cases)
                    if which == "B":
                        with pushing(bench, data) as pushed:
                            found[which].append(samples(bench, batch, store))
                        pushes += pushed
                    else:
                        found[which].append(samples(bench, batch, store))
        told = {which: [median(r) for r in rounds[1:]] for which, rounds in found.items()}
        print(f"{given.rounds} rounds of {given.cases} cases, load {os.getloadavg()[0]:.1f}; ", end="")
        print(f"{len(pushes)} pushes of {given.blob_kib} KiB")
        for which, rounds in found.items():
            late = sum(ns > 2 * median(r) for r in rounds[1:] for ns in r) / sum(len(r) for r in rounds[1:])
            print(f"  {which:2} median {median(told[which]) / 1e3:7.1f} us, {late:.1%} over twice that")
        for one, other in (("A'", "A"), ("B", "A'")):
            ratios = sorted(a / b for a, b in zip(told[one], told[other], strict=True))
            print(f"  {one} / {other}: median {median(ratios):.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()

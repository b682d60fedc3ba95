"""Plays a story on a farm while `tilefarm run` measures there."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.domain.verdict import Verdict
from tests.chaos.farm import ChaosFarm
from tests.chaos.story import Event, Kind
from tests.farm import COMMAND, REPOSITORY, wait_for
from tests.phones import process_runs
from workers.virtual.faults import Fault

POLL_S = 0.05
PARTS_S = 300.0
"""A part that was killed a moment ago is back by then."""
RESUMES = 20
_RUN, _FILE = r"tilefarm-runner\S* run", r"sync SEND \S*/blobs/"
_FAULTS: dict[Kind, Fault] = {
    "drop": Fault(kind="drop", on=_RUN, after_text='"end"', times=1),
    "drip": Fault(kind="drip", on=_RUN, chunk=256, every_ms=20, times=1),
    "reboot": Fault(kind="reboot", on=_RUN, after_text='"start"', down_ms=1500, times=1),
    "full disk": Fault(kind="disk_full", on=_FILE, times=2),
    "corruption": Fault(kind="wrong_digest", on=_FILE, times=1),
}


@dataclass(slots=True)
class Played:
    run_folder: Path
    struck: list[Event] = field(default_factory=list[Event])
    """Events that came to pass, in order."""
    resumes: int = 0
    given_up: int = 0
    """Times that `tilefarm run` ended by itself before its report."""
    seconds: float = 0.0


@dataclass(slots=True)
class _Accepted:
    """Counts results in trials.jsonl as it grows."""

    file: Path
    count: int = 0
    _read: int = 0

    def look(self) -> int:
        if self.file.is_file():
            with self.file.open("rb") as file:
                file.seek(self._read)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read += len(line)
                    self.count += json.loads(line)["verdict"] != Verdict.INFRA
        return self.count


@dataclass(slots=True)
class _Run:
    """`tilefarm run`, started again whenever it ended without a report."""

    farm: ChaosFarm
    words: Sequence[str]
    process: "subprocess.Popen[bytes] | None" = None
    began_ns: int = 0

    def start(self, *words: str) -> None:
        self.began_ns = time.time_ns()
        with (self.farm.folder / "run.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "run", *words],
                cwd=REPOSITORY,
                env=self.farm.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def first(self) -> None:
        self.start(*self.words)

    def resume(self) -> None:
        self.start("--resume", self.folder().name)

    def folder(self) -> Path:
        wait_for(lambda: any(self._folders()), "the run's folder", PARTS_S)
        return self._folders()[0]

    def _folders(self) -> list[Path]:
        return [p.parent for p in (self.farm.out / "runs").glob("*/manifest.json")]

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def reported(self) -> bool:
        results = self.folder() / "results.json"
        return results.is_file() and results.stat().st_mtime_ns > self.began_ns

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def play(farm: ChaosFarm, words: Sequence[str], events: Sequence[Event]) -> Played:
    """`tilefarm run` to its report while the events happen, each once so many results are accepted."""
    began = time.monotonic()
    run = _Run(farm, words)
    run.first()
    try:
        played = Played(run.folder())
        accepted = _Accepted(played.run_folder / "trials.jsonl")
        pending = list(events)
        while True:
            while pending and pending[0].after <= accepted.look():
                event = pending.pop(0)
                _strike(farm, run, event)
                played.struck.append(event)
                played.resumes += event.kind == "dispatcher"
            if run.ended():
                if run.reported():
                    break
                played.given_up += 1
                assert played.given_up <= RESUMES, (farm.folder / "run.log").read_text("utf-8")[-4000:]
                run.resume()
            time.sleep(POLL_S)  # other processes bring results; pytest's own limit bounds the wait
    finally:
        run.kill()
    played.seconds = time.monotonic() - began
    return played


def _strike(farm: ChaosFarm, run: _Run, event: Event) -> None:
    match event.kind:
        case "worker":
            serial = farm.phones[event.target].serial
            wait_for(lambda: serial in farm.workers(), f"a worker of phone {event.target}", PARTS_S)
            _kill(farm.workers()[serial].pid)
        case "agent":
            farm.shelves[event.target].kill()
            farm.shelves[event.target].start()
        case "adb":
            shelf = farm.shelves[event.target]
            wait_for(lambda: shelf.server_pid() != 0, f"an adb server of shelf {event.target}", PARTS_S)
            _kill(shelf.server_pid())
        case "redis":
            farm.redis.kill()
            farm.redis.start()
        case "dispatcher":
            run.kill()
            run.resume()
        case "drop" | "drip" | "reboot" | "full disk" | "corruption":
            fault = _FAULTS[event.kind]
            farm.phones[event.target].phone.faults.add(fault.model_copy())


def _kill(pid: int) -> None:
    """A process of this farm; it may be ending by itself."""
    if process_runs(pid):
        os.kill(pid, signal.SIGKILL)

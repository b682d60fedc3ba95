"""``tilefarm orchestrator``: the service with a real Redis and real processes."""

import os
import signal
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from orchestrator.domain.errors import BrokerUnavailable, UsageError, WireError
from orchestrator.domain.moment import utc_now
from orchestrator.domain.settings import Settings
from orchestrator.domain.submission import Service, Submission
from orchestrator.domain.wire import from_json
from orchestrator.execution.board import ORCHESTRATOR, Board
from orchestrator.execution.run_folder import RunFolder
from orchestrator.execution.service.child import RunChild, outcome_file
from orchestrator.execution.service.nights import nights_of
from orchestrator.execution.service.orchestrator import Orchestrator
from orchestrator.execution.service.ports import Outcome
from orchestrator.execution.service.taking import Taken
from workers.discovery import host_name
from workers.locks import exclusive

TICK_S = 0.5
ANSWER_S = 10.0
"""So long one command to Redis may take: children and other duties must not wait for a hanging link."""
SERVES_EVERY_S = 5.0
STOP_S = 30.0
"""A child writes down what it has and ends; one that does not is killed, which loses nothing either."""
THREADS = 4
"""Run folders that are made at once."""
log = structlog.get_logger()


@dataclass(slots=True)
class Duty:
    """Something that the service does again and again, from its main thread; it may fail and is repeated."""

    what: str
    do: Callable[[], None]
    every_s: float = 0.0
    _due: float = field(default=0.0, init=False)

    def tick(self, now: float) -> None:
        if now < self._due:
            return
        self._due = now + self.every_s
        try:
            self.do()
        except (BrokerUnavailable, OSError) as e:
            log.warning(f"{self.what}: failed; tried again", error=str(e))
        except Exception:
            log.exception(f"{self.what}: unexpected; going on")


def serve(settings: Settings) -> None:
    """Carry out what is submitted to ``settings.broker`` until SIGTERM or SIGINT; then leave all runs to be
    gone on with.

    Raises:
        BrokerUnavailable: no Redis there.
        InfraError: another orchestrator has this OUT.
        UsageError: TILEFARM_NIGHTS is no schedule.
    """
    out = settings.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with (
        exclusive(ORCHESTRATOR, timeout_s=0, folder=out),
        _board(settings.broker) as board,
        ThreadPoolExecutor(THREADS, thread_name_prefix="take") as pool,
        ExitStack() as stack,
    ):
        started = utc_now()
        service = Service(ORCHESTRATOR, host_name(), os.getpid(), started, str(out))
        house = ThisHost(settings, out, pool)
        orchestrator = Orchestrator(board, house, settings.runs_at_once)
        nights = stack.enter_context(nights_of(settings, out, lambda: orchestrator.leads))
        duties = [
            Duty("saying that it lives", lambda: board.serves(service), SERVES_EVERY_S),
            Duty("carrying runs out", orchestrator.tick),
            Duty("keeping nights", nights.tick),
        ]
        with _told_to_stop() as told:
            while not told:
                _tick(duties)
            log.info("ending; runs go on with the next orchestrator")
            orchestrator.stop()
            nights.stop()
            deadline = time.monotonic() + STOP_S
            while orchestrator.children + nights.children and time.monotonic() < deadline and len(told) < 2:
                _tick(duties)
            orchestrator.kill()
            nights.kill()
        with suppress(BrokerUnavailable):  # both end by themselves
            board.resign(house.who)
            board.serves_no_more(service)
        pool.shutdown(wait=False, cancel_futures=True)


def _tick(duties: list[Duty]) -> None:
    for duty in duties:
        duty.tick(time.monotonic())
    time.sleep(TICK_S)  # the period of the loop; what changes meanwhile is taken in by the next tick


class ThisHost:
    """Implements :class:`orchestrator.execution.service.ports.House`."""

    def __init__(self, settings: Settings, out: Path, pool: ThreadPoolExecutor) -> None:
        self.host = host_name()
        self.who = f"{self.host} {out}"
        self._broker = settings.broker
        self._out = out
        self._pool = pool
        self._taken = Taken(out)

    def begun(self) -> list[Submission]:
        return self._taken.all()

    def take(self, submission: Submission) -> None:
        self._taken.take(submission)

    def made(self, run_id: str) -> bool:
        return self._taken.made(run_id)

    def busy(self, run_id: str) -> bool:
        try:
            with RunFolder(self._out / "runs" / run_id).only_one():
                return False
        except UsageError:
            return True

    def start(self, submission: Submission) -> RunChild:
        environment = {"TILEFARM_BROKER": self._broker, "TILEFARM_OUT": str(self._out)}
        return RunChild(["--resume", submission.run_id], self._logs(submission.run_id), environment)

    def outcome(self, run_id: str) -> Outcome | None:
        path = outcome_file(self._logs(run_id))
        try:
            found = from_json(Outcome, path.read_bytes(), str(path))
        except (OSError, WireError):
            return None  # none yet, or cut off: the run is gone on with
        return found if found.run_id == run_id else None

    def forget(self, run_id: str) -> None:
        self._taken.forget(run_id)

    def later(self, call: Callable[[], None]) -> "Future[None]":
        return self._pool.submit(call)

    def _logs(self, run_id: str) -> Path:
        return self._out / "logs" / run_id


@contextmanager
def _board(url: str) -> Generator[Board]:
    board = Board(url, answer_s=ANSWER_S)
    try:
        yield board
    finally:
        board.close()


@contextmanager
def _told_to_stop() -> Generator[list[int]]:
    """Grows with each SIGTERM and SIGINT."""
    told: list[int] = []

    def note(number: int, _frame: object) -> None:
        told.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

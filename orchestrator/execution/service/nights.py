"""The service's nights, a process each: it looks when beat asks, at its start, and now and then by itself."""

import shlex
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import structlog

from orchestrator.domain.errors import UsageError
from orchestrator.domain.night import NightRecord, parse_schedule
from orchestrator.domain.settings import Settings
from orchestrator.execution.night_folder import NightFolder
from orchestrator.execution.night_keeper import NightKeeper, NightRules
from orchestrator.execution.service.child import RunChild
from orchestrator.execution.service.inbox import Inbox
from orchestrator.execution.service.ports import Child
from orchestrator.storage.night_claims import NightClaims
from orchestrator.storage.redis_client import connect
from workers.discovery import host_name

LOOK_S = 900.0
"""Without any message: beat may be down, and a night's deadline waits for nobody."""
ANSWER_S = 10.0
log = structlog.get_logger()


class Nights:
    """One ``tick`` after another, from one thread; ``wake`` from any."""

    def __init__(
        self,
        keeper: NightKeeper,
        start: Callable[[NightRecord], Child],
        leads: Callable[[], bool],
        keep_open: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            leads: this orchestrator is the farm's; one that stands by looks at nothing.
            keep_open: see that beat's messages are read.
        """
        self._keeper = keeper
        self._start = start
        self._leads = leads
        self._keep_open = keep_open
        self._now = now
        self._children: dict[str, Child] = {}
        self._wanted = threading.Event()
        self._look_at = now()
        self._stopping = False

    @property
    def children(self) -> int:
        """Processes of nights that live now."""
        return len(self._children)

    def wake(self) -> None:
        """Look at the next tick."""
        self._wanted.set()

    def tick(self) -> None:
        for night, child in list(self._children.items()):
            if (code := child.ended()) is not None:
                last = child.last_words()
                log.info("night's process ended", night=night, exit_code=code, last=last)
                del self._children[night]
                if code == UsageError.exit_code:
                    self._keeper.give_up(night, last)
        if self._stopping or not self._leads():
            return
        self._keep_open()
        if self._wanted.is_set() or self._now() >= self._look_at:
            self._wanted.clear()
            self._look_at = self._now() + LOOK_S
            for record in self._keeper.look(self._children.keys()):
                log.info("night", night=record.night, run=record.run_id, start=record.starts)
                self._children[record.night] = self._start(record)

    def stop(self) -> None:
        """Nothing is begun any more; nights are gone on with by the next orchestrator."""
        self._stopping = True
        for child in self._children.values():
            child.ask_to_stop()

    def kill(self) -> None:
        for child in self._children.values():
            child.kill()


@contextmanager
def nights_of(settings: Settings, out: Path, leads: Callable[[], bool]) -> Generator[Nights]:
    """With a real Redis and real processes.

    Raises:
        UsageError: the schedule or the options of its runs cannot be read.
        BrokerUnavailable: no Redis.
    """
    rules = NightRules(
        parse_schedule(settings.nights),
        timedelta(hours=settings.night_deadline_h),
        timedelta(hours=settings.night_late_h),
    )
    try:
        options = shlex.split(settings.night_options)
    except ValueError as e:
        raise UsageError(f"TILEFARM_NIGHT_OPTIONS: {settings.night_options!r}: {e}") from e
    environment = {"TILEFARM_BROKER": settings.broker, "TILEFARM_OUT": str(out)}

    def start(record: NightRecord) -> RunChild:
        words = ["--suite", record.suite, "--nightly", "--night", record.night, *options]
        return RunChild(words, out / "logs" / record.run_id, environment)

    client = connect(settings.broker, answer_s=ANSWER_S)
    keeper = NightKeeper(NightFolder(out), NightClaims(client), rules, host_name())
    inbox = Inbox(settings.broker)
    nights = Nights(keeper, start, leads, lambda: inbox.keep_open(nights.wake))
    try:
        yield nights
    finally:
        inbox.close()
        client.close()

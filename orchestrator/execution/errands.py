"""A few batches beside a run: sent, waited for, and given up without harm to the run.

Each sending has a run id of its own, so that none of its trials is ever one of the run's, and a batch that
nobody waits for any more is dropped by its worker. What an earlier sending of an errand still delivers lies
under that one's id, where nobody reads it: an errand has the trials of one sending, and ends once. One batch
at a time stands in a device's queue.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch, CanaryJob, CaseJob
from orchestrator.domain.names import Lane
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.farm import Farm

POLL_MS = 200
LOOK_EVERY_S = 0.5
SENDINGS = 2
"""Of one batch: a worker that died once may have died of anything, and Redis may have been restarted."""
log = structlog.get_logger()


class ErrandFarm(Farm, Protocol):
    """As of a run, and it can call a batch back."""

    def cancel(self, run_id: str, why: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class ErrandLimits:
    gone_s: float = 60.0
    """Without a living worker for its device."""
    wait_s: float = 900.0
    """In its queue, or for its device."""
    silent_s: float = 120.0
    """Without news once it has begun, beside its longest case's deadline."""
    outage_s: float = 10.0
    """Redis may be away for so long."""
    total_s: float = 3600.0
    """For all errands together: a report waits for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Errand:
    """One batch for one device."""

    device_id: str
    blob_store: str
    jobs: Sequence[CaseJob]
    """Of one API, their ids unlike."""
    canaries: Sequence[CanaryJob] = ()


@dataclass(slots=True)
class Done:
    """What came of an errand."""

    trials: dict[str, Trial] = field(default_factory=dict[str, Trial])
    """By case id."""
    why: str = ""
    """Why some are missing, or say nothing."""


@dataclass(slots=True)
class _Flight:
    errand: Errand
    done: Done
    run_id: str
    worker: str
    """That was registered when it was sent; empty: none was."""
    epoch: str
    """Of Redis, when it was sent."""
    sent_at: float
    seen_at: float
    news_at: float
    sending: int = 1
    begun: bool = False
    after: str = "0"

    @property
    def complete(self) -> bool:
        return len(self.done.trials) == len(self.errand.jobs)


class Errands:
    """Carries batches out on the farm of a run."""

    def __init__(
        self,
        farm: ErrandFarm,
        run_id: str,
        lane: Lane,
        *,
        limits: ErrandLimits | None = None,
        on_tick: Callable[[], None] = lambda: None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """
        Args:
            run_id: whose end ends them, too.
            on_tick: called while waiting.
        """
        self._farm = farm
        self._run_id = run_id
        self._lane: Lane = lane
        self._limits = limits or ErrandLimits()
        self._on_tick = on_tick
        self._now = now
        self._sleep = sleep
        self._flying: dict[str, _Flight] = {}
        self._look_at = -1.0
        self._ends_at: float | None = None
        self._lost: dict[str, str] = {}
        self._away_since: float | None = None
        self._epoch = ""
        self.ended = ""
        """Why nothing more will be done: the run was ended, or the broker stays away."""

    def run(self, errands: Sequence[Errand], on_done: Callable[[Errand, Done], None]) -> None:
        """Carry all out, devices beside each other. ``on_done`` is called once for each, in the order in
        which they end; where ``ended`` is set meanwhile, all that is left ends with that reason."""
        waiting = list(errands)
        if self._ends_at is None:
            self._ends_at = self._now() + self._limits.total_s
        try:
            while waiting or self._flying:
                try:
                    self._step(waiting, on_done)
                except BrokerUnavailable as e:
                    self._endure(e)
                if self.ended:
                    self._give_all_up(waiting, on_done)
                    return
                self._on_tick()
        finally:
            self._call_back(*self._flying.values())
            self._flying.clear()

    def _step(self, waiting: list[Errand], on_done: Callable[[Errand, Done], None]) -> None:
        epoch = self._farm.epoch()
        self._back()
        self._restarted(epoch)
        due = self._now() >= self._look_at
        if due:
            self._look_at = self._now() + LOOK_EVERY_S
            if self._over():
                return
        for errand in list(waiting):
            if errand.device_id in self._flying:
                continue
            if errand.device_id in self._lost:
                on_done(errand, Done(why=self._lost[errand.device_id]))
            else:
                self._send(errand, Done(), 1)
            waiting.remove(errand)
        for flight in list(self._flying.values()):
            self._hear(flight)
        if due:
            self._look_after()
        for flight in [f for f in self._flying.values() if f.complete or f.done.why]:
            self._settle(flight, on_done)
        if self._flying:
            self._sleep(POLL_MS / 1000)

    def _over(self) -> bool:
        if why := self._farm.cancelled(self._run_id):
            self.ended = why
        elif self._ends_at is not None and self._now() >= self._ends_at:
            self.ended = f"it took longer than {self._limits.total_s / 60:.0f} min"
        return bool(self.ended)

    def _send(self, errand: Errand, done: Done, sending: int) -> None:
        stamp, _, _ = self._run_id.partition("-")
        token = secrets.token_hex(4)
        batch = Batch(
            run_id=f"{stamp[:16]}-confirm-{token}",
            batch_id=f"confirm-{token}",
            device_id=errand.device_id,
            blob_store=errand.blob_store,
            cases=list(errand.jobs),
            canaries=list(errand.canaries),
        )
        now = self._now()
        there = self._farm.registrations().get(errand.device_id)
        self._farm.send(batch, self._lane)
        self._flying[errand.device_id] = _Flight(
            errand, done, batch.run_id, there.worker_id if there else "", self._epoch, now, now, now, sending
        )

    def _hear(self, flight: _Flight) -> None:
        wanted = {job.case_id for job in flight.errand.jobs}
        for entry_id, event in self._farm.events(flight.run_id, flight.after, 1):
            flight.after = entry_id
            flight.news_at = self._now()
            if isinstance(event, Progress):
                flight.begun = flight.begun or event.state in ("batch", "started")
            elif event is not None and event.case_id in wanted:
                flight.done.trials.setdefault(event.case_id, event)

    def _look_after(self) -> None:
        registrations, now = self._farm.registrations(), self._now()
        for flight in list(self._flying.values()):
            device_id = flight.errand.device_id
            if flight.complete:
                continue
            there = registrations.get(device_id)
            if there is not None:
                flight.seen_at = now
                flight.worker = flight.worker or there.worker_id
            if there is not None and there.worker_id != flight.worker:
                self._again(flight, f"its worker died in the last of {SENDINGS} tries")
            elif why := self._farm.given_up(flight.run_id).get(device_id, ""):
                self._lose(flight, why)
            elif now - flight.seen_at > self._limits.gone_s:
                known = self._farm.whereabouts(device_id)
                self._lose(
                    flight, f"no worker for {now - flight.seen_at:.0f} s" + (f" ({known})" if known else "")
                )
            elif not flight.begun and now - flight.sent_at > self._limits.wait_s:
                self._lose(flight, f"its turn did not come within {self._limits.wait_s:.0f} s")
            elif flight.begun and now - flight.news_at > self._limits.silent_s + _longest_s(flight.errand):
                self._lose(flight, f"no news for {now - flight.news_at:.0f} s")

    def _lose(self, flight: _Flight, why: str) -> None:
        """Its device cannot be had: what else waits for that need not try."""
        flight.done.why = self._lost[flight.errand.device_id] = why

    def _again(self, flight: _Flight, why: str) -> None:
        """Once more from the start: what is measured in turns is one window."""
        if flight.sending == SENDINGS:
            flight.done.why = why
            return
        self._call_back(flight)
        self._send(flight.errand, Done(), flight.sending + 1)

    def _settle(self, flight: _Flight, on_done: Callable[[Errand, Done], None]) -> None:
        """What came back as ``infra`` is sent once more: a canary may have seen a busy device."""
        done = flight.done
        if flight.complete:
            doubt = next((t.reason for t in done.trials.values() if t.verdict is Verdict.INFRA), "")
            if doubt and flight.sending < SENDINGS:
                self._send(flight.errand, Done(), flight.sending + 1)
                return
            done.why = doubt
        else:
            self._call_back(flight)
        del self._flying[flight.errand.device_id]
        on_done(flight.errand, done)

    def _back(self) -> None:
        """Redis answers again: nobody could register, begin or tell anything while it was away, and has the
        usual time from now on."""
        if self._away_since is None:
            return
        away_s, now = self._now() - self._away_since, self._now()
        for flight in self._flying.values():
            flight.sent_at += away_s
            flight.seen_at = flight.news_at = now
        self._away_since = None

    def _restarted(self, epoch: str) -> None:
        """Redis came back, and may have lost its queues or their last second: what is not all in is sent once
        more. Where the queue was kept, its copy is dropped by the worker that gets it."""
        self._epoch = epoch
        for flight in [f for f in self._flying.values() if f.epoch != epoch]:
            flight.after = "0"
            self._hear(flight)
            if not flight.complete:
                self._again(flight, "Redis was restarted meanwhile")

    def _endure(self, error: BrokerUnavailable) -> None:
        if self._away_since is None:
            self._away_since = self._now()
        if self._now() - self._away_since >= self._limits.outage_s:
            self.ended = f"the broker stayed away: {error.__cause__ or error}"
        self._sleep(POLL_MS / 1000)

    def _give_all_up(self, waiting: Sequence[Errand], on_done: Callable[[Errand, Done], None]) -> None:
        flying = list(self._flying.values())
        self._call_back(*flying)
        self._flying.clear()
        for flight in flying:
            flight.done.why = "" if flight.complete else self.ended
            on_done(flight.errand, flight.done)
        for errand in waiting:
            on_done(errand, Done(why=self.ended))

    def _call_back(self, *flights: _Flight) -> None:
        for flight in flights:
            try:
                self._farm.cancel(flight.run_id, f"nobody waits for it: {self.ended or 'given up'}")
            except BrokerUnavailable as e:
                log.warning("a batch was not called back", batch=flight.run_id, error=str(e))


def _longest_s(errand: Errand) -> float:
    return max(job.deadline_ms for job in errand.jobs) / 1000

"""Send batches, gather trials, and lose nothing: the loop between the plan and the run folder.

Truth is the run folder: a trial counts once it is in trials.jsonl. Everything outstanding is sent again
when its worker died (another worker id registered for the device); a result that comes twice is dropped by
its key. Trials that ended in ``infra`` are tried again, a bounded number of times and each in a batch of its
own.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.job import Batch, CanaryJob, CaseJob
from orchestrator.domain.names import Lane
from orchestrator.domain.trial import Trial, trial_key
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.run_folder import RunFolder
from orchestrator.planning.plan import BATCH_CASES, BATCH_S

POLL_MS = 500
FARM_GONE_S = 300.0
"""An agent may have restarted the phone: its link, the reboot and a probe take minutes."""
INFRA_ATTEMPTS = 3
RETRY_AFTER_S = (5.0, 45.0)
"""Wait before the second and the third attempt: a phone that restarts is back after half a minute or more."""
REDISPATCHES = 5
"""Batches of a device are sent again at most so often for lost workers without one result between; then its
cases are missing."""


class Watcher(Protocol):
    """Who follows a run live."""

    def trial(self, trial: Trial) -> None: ...

    def progress(self, news: Progress) -> None: ...

    def lost(self, device_id: str, cases: int, why: str) -> None: ...

    def tick(self) -> None: ...


class Farm(Protocol):
    """What the dispatcher needs of the broker (``broker.Broker``)."""

    def registrations(self) -> Mapping[str, Registration]: ...

    def send(self, batch: Batch, lane: Lane) -> None: ...

    def cancelled(self, run_id: str) -> str:
        """Why a person ended the run; empty: nobody did."""
        ...

    def given_up(self, run_id: str) -> Mapping[str, str]:
        """Devices whose worker could not have them (held, never free, never fit), and why."""
        ...

    def whereabouts(self, device_id: str) -> str:
        """What is known of a device that no worker serves; empty: nothing."""
        ...

    def events(self, run_id: str, after: str, block_ms: int) -> Iterator[tuple[str, Trial | Progress | None]]:
        """None: an entry that cannot be read, and is no result."""
        ...


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    batch_cases: int = BATCH_CASES
    batch_s: float = BATCH_S
    gone_s: float = 60.0
    """A device without a living worker for this long: its remaining cases are missing, with this reason."""
    stalled_s: float = 900.0
    """A device with a living worker and no news for this long after its longest case's deadline: likewise."""


@dataclass(slots=True)
class _Lane:
    """What is outstanding on one device."""

    device_id: str
    outstanding: dict[str, CaseJob] = field(default_factory=dict[str, CaseJob])
    worker_id: str = ""
    last_seen: float = 0.0
    last_news: float = 0.0
    redispatches: int = 0

    @property
    def longest_s(self) -> float:
        """A case that rests between its replays may be silent for so long, and rightly."""
        return max((job.deadline_ms for job in self.outstanding.values()), default=0) / 1000


class Dispatcher:
    """Runs the outstanding jobs of one run to their end."""

    def __init__(
        self,
        broker: Farm,
        folder: RunFolder,
        run_id: str,
        blob_store: str,
        *,
        lane: Lane = "ondemand",
        limits: DispatchLimits | None = None,
        canaries: Mapping[str, Sequence[CanaryJob]] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._folder = folder
        self._run_id = run_id
        self._blob_store = blob_store
        self._lane: Lane = lane
        self._limits = limits or DispatchLimits()
        self._canaries = canaries or {}
        self._now = now
        self._lanes: dict[str, _Lane] = {}
        self._known = set(folder.trials())
        self._tries: Counter[tuple[str, str]] = Counter()
        self._lost: dict[tuple[str, str], str] = {}
        self._later: list[tuple[float, _Lane, CaseJob]] = []

    def run(
        self,
        jobs: Mapping[str, Iterable[CaseJob]],
        watcher: Watcher,
        absent: Mapping[str, str] | None = None,
    ) -> dict[tuple[str, str], str]:
        """Dispatch and gather until nothing is outstanding.

        Args:
            absent: devices that will not come back during this run, and why: given up at once.

        Returns:
            (device, case) → why its result never came.
        """
        for device_id, cases in jobs.items():
            lane = _Lane(device_id, last_seen=self._now(), last_news=self._now())
            lane.outstanding = {self._key(device_id, c): c for c in cases}
            self._lanes[device_id] = lane
            if absent and device_id in absent:
                self._give_up(lane, absent[device_id], watcher)
        self._meet_workers(self._broker.registrations())
        for lane in self._lanes.values():
            self._send(lane)
        after = "0"
        while any(lane.outstanding for lane in self._lanes.values()):
            after = self._gather(after, watcher)
            self._look_after(watcher)
            watcher.tick()
        return self._lost

    def _gather(self, after: str, watcher: Watcher) -> str:
        fresh: list[Trial] = []
        for entry_id, event in self._broker.events(self._run_id, after, POLL_MS):
            after = entry_id
            if event is None:
                continue
            lane = self._lanes.get(event.device_id)
            if lane is None:
                continue  # no device of this run: nobody asked it
            lane.last_news = self._now()
            if isinstance(event, Progress):
                watcher.progress(event)
            elif event.key not in self._known:
                self._known.add(event.key)
                fresh.append(event)
        if fresh:
            self._folder.append(fresh)
            for trial in fresh:
                self._settle(trial, watcher)
        return after

    def _settle(self, trial: Trial, watcher: Watcher) -> None:
        """A trial is on disk: strike it off, and try again what infrastructure kept from us."""
        lane = self._lanes[trial.device_id]
        lane.redispatches = 0
        job = lane.outstanding.pop(trial.key, None)
        self._lost.pop((trial.device_id, trial.case_id), None)  # given up, and it came after all
        self._tries[trial.device_id, trial.case_id] += 1
        tries = self._tries[trial.device_id, trial.case_id]
        if job and trial.verdict is Verdict.INFRA and tries < INFRA_ATTEMPTS:
            again = replace(job, attempt=job.attempt + 1)
            lane.outstanding[self._key(lane.device_id, again)] = again
            self._later.append((self._now() + RETRY_AFTER_S[tries - 1], lane, again))
            return
        watcher.trial(trial)

    def _retry(self) -> None:
        """Send what infrastructure kept from us, once its wait is over."""
        due = [entry for entry in self._later if entry[0] <= self._now()]
        self._later = [entry for entry in self._later if entry[0] > self._now()]
        again: dict[str, list[CaseJob]] = {}
        for _, lane, job in due:
            if self._key(lane.device_id, job) in lane.outstanding:
                again.setdefault(lane.device_id, []).append(job)
        for device_id, jobs in again.items():
            self._send(self._lanes[device_id], jobs)

    def _look_after(self, watcher: Watcher) -> None:
        """Notice a run that was ended, devices that cannot be had, and workers that died, came back, or stand
        still."""
        if ended := self._broker.cancelled(self._run_id):
            for lane in self._lanes.values():
                if lane.outstanding:
                    self._give_up(lane, ended, watcher)
            return
        for device_id, why in self._broker.given_up(self._run_id).items():
            if (lane := self._lanes.get(device_id)) is not None and lane.outstanding:
                self._give_up(lane, why, watcher)
        self._retry()
        registrations = self._broker.registrations()
        for lane in self._meet_workers(registrations):
            lane.redispatches += 1
            if lane.redispatches <= REDISPATCHES:
                self._send(lane)
            else:
                self._give_up(lane, f"its worker died {lane.redispatches} times", watcher)
        now = self._now()
        for lane in self._lanes.values():
            if not lane.outstanding:
                continue
            if now - lane.last_seen > self._limits.gone_s:
                known = self._broker.whereabouts(lane.device_id)
                why = f"no worker for {now - lane.last_seen:.0f} s" + (f" ({known})" if known else "")
                self._give_up(lane, why, watcher)
            elif now - lane.last_news > self._limits.stalled_s + lane.longest_s:
                self._give_up(lane, f"no news for {now - lane.last_news:.0f} s", watcher)

    def _meet_workers(self, registrations: Mapping[str, Registration]) -> list[_Lane]:
        """Note who serves each device; returns lanes whose worker is another one than before."""
        changed: list[_Lane] = []
        for lane in self._lanes.values():
            registration = registrations.get(lane.device_id)
            if registration is None:
                continue
            lane.last_seen = self._now()
            if lane.worker_id and lane.worker_id != registration.worker_id and lane.outstanding:
                changed.append(lane)
            lane.worker_id = registration.worker_id
        return changed

    def _give_up(self, lane: _Lane, why: str, watcher: Watcher) -> None:
        for job in lane.outstanding.values():
            self._lost[lane.device_id, job.case_id] = why
        watcher.lost(lane.device_id, len(lane.outstanding), why)
        lane.outstanding.clear()

    def _send(self, lane: _Lane, jobs: Iterable[CaseJob] | None = None) -> None:
        waiting = lane.outstanding.values() if jobs is None else jobs
        for cases in self._batches(waiting):
            batch = Batch(
                run_id=self._run_id,
                batch_id=uuid.uuid4().hex[:12],
                device_id=lane.device_id,
                blob_store=self._blob_store,
                cases=cases,
                canaries=[c for c in self._canaries.get(lane.device_id, ()) if c.job.api == cases[0].api],
            )
            self._broker.send(batch, self._lane)

    def _batches(self, jobs: Iterable[CaseJob]) -> Iterator[list[CaseJob]]:
        """One API after another, each in order and within the limits; a long case has a batch of its own.

        A batch has one API: its canary vouches for nothing but that, and no process opens two drivers. What
        ended in ``infra`` before goes alone: what breaks the device must not drag innocent cases along again.
        """
        cases: list[CaseJob] = []
        planned_ms = 0
        for job in _by_api(jobs):
            full = planned_ms + job.estimate_ms > self._limits.batch_s * 1000
            full = full or len(cases) == self._limits.batch_cases
            alone = job.attempt > 1 or (bool(cases) and cases[-1].attempt > 1)
            if cases and (full or alone or job.api != cases[0].api):
                yield cases
                cases, planned_ms = [], 0
            cases.append(job)
            planned_ms += job.estimate_ms
        if cases:
            yield cases

    @staticmethod
    def _key(device_id: str, job: CaseJob) -> str:
        return trial_key(device_id, job.case_id, job.attempt)


def _by_api(jobs: Iterable[CaseJob]) -> Iterator[CaseJob]:
    """APIs in the order in which they come up first, the jobs of each in their order."""
    groups: dict[str, list[CaseJob]] = {}
    for job in jobs:
        groups.setdefault(job.api, []).append(job)
    for group in groups.values():
        yield from group

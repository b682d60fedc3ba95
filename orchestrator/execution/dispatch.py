"""Send batches, gather trials, and lose nothing: the loop between the plan and the run folder.

Truth is the run folder: a trial counts once it is in trials.jsonl. What is outstanding is sent again when
its worker died (another worker id is registered for the device) or Redis was restarted; a result that comes
twice is dropped by its key. Trials that ended in ``infra`` are tried again, a bounded number of times, each
in a batch of its own, and on another phone where one stands in.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.job import CaseJob
from orchestrator.domain.moment import utc_now
from orchestrator.domain.run_state import RunState
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.farm import Farm, Feed, Watcher
from orchestrator.execution.lanes import BatchLimits, Lane, lanes_of
from orchestrator.execution.run_folder import RunFolder
from orchestrator.execution.stand_ins import StandIns
from orchestrator.execution.turns import earlier_own, moves_of_others, too_old

POLL_MS = 500
LOOK_EVERY_S = 0.5
TELL_EVERY_S = 2.0
FARM_GONE_S = 300.0
"""An agent may have restarted the phone: its link, the reboot and a probe take minutes."""
FARM_OUTAGE_S = 900.0
"""A farm's Redis may be upgraded meanwhile; what was measured waits in its workers and on its disk."""
INFRA_ATTEMPTS = 3
RETRY_AFTER_S = (5.0, 45.0)
"""Wait before the second and the third attempt: a phone that restarts is back after half a minute or more."""
REDISPATCHES = 5
"""Batches are sent again for lost workers of one device at most so often without one result between. Beyond
that the cases of the device are missing, and those of a pool once this holds for each of its phones that
has a worker: a host that restarts replaces the workers of all its phones, each once."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    batch: BatchLimits = field(default_factory=BatchLimits)
    gone_s: float = 60.0
    """A device without a living worker for this long: its remaining cases are missing, with this reason."""
    stalled_s: float = 900.0
    """A device with a living worker and no news for this long after its longest case's deadline: likewise."""
    silent_s: float = 300.0
    """After so much of that time everything is sent once more: Redis gives a batch away before it knows that
    it arrived, and one whose link breaks at that moment is in no queue any more. A copy does no harm."""
    outage_s: float = 10.0
    """Redis may be away for so long."""


class Dispatcher:
    """Runs the outstanding jobs of one run to their end."""

    def __init__(
        self,
        farm: Farm,
        folder: RunFolder,
        host: str = "",
        *,
        limits: DispatchLimits | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._farm = farm
        self._folder = folder
        self._manifest = folder.manifest()
        self._limits = limits or DispatchLimits()
        self._now = now
        self._sleep = sleep
        planned = self._manifest.planned
        self._run_id = planned.run.run_id
        devices = [*planned.devices, *self._manifest.reserve]
        self._soc_of = {d.device_id: d.soc.name for d in devices}
        self._names = {d.device_id: d.name for d in planned.devices}
        self._state = RunState(
            run_id=self._run_id,
            suite=planned.run.suite,
            user=self._manifest.user,
            lane=self._manifest.lane,
            phase="running",
            started_at=planned.run.started_at,
            updated_at=planned.run.started_at,
            host=host,
        )
        self._lanes: dict[str, Lane] = {}
        self._known = set(folder.trials())
        self._tries: Counter[tuple[str, str]] = Counter()
        self._lost: dict[tuple[str, str], str] = {}
        self._rivals: Sequence[RunState] = ()
        self._moves: dict[str, frozenset[tuple[str, int, str]]] = {}
        self._epoch = ""
        self._after = "0"
        self._look_at = self._tell_at = -1.0
        self._away_since: float | None = None
        self._feed: Feed | None = None
        self._stand_ins = StandIns(self._manifest)
        # Preparing would disturb what is measured on the same processor: they wait for its end.
        self._beside_us = {d.device_id for d in devices if host and d.resource == f"cpu@{host}"}
        self._beside_us |= {i for i, p in self._manifest.pools.items() if self._beside_us & set(p.devices)}

    def run(
        self,
        jobs: Mapping[str, Sequence[CaseJob]],
        watcher: Watcher,
        absent: Mapping[str, str] | None = None,
        feed: Feed | None = None,
    ) -> dict[tuple[str, str], str]:
        """Dispatch and gather until nothing is outstanding.

        Args:
            jobs: by target: a device's id, or a pool's.
            absent: devices that will not come back during this run, and why: given up at once.
            feed: gives further jobs of these targets.

        Returns:
            (target, case) → why its result never came.

        Raises:
            BrokerUnavailable: Redis was away for longer than the limit.
            KernelFolderError: a kernel's own code failed in the feed.
        """
        self._lanes = lanes_of(jobs, self._lane, self._now())
        self._feed = feed if feed is not None and not feed.done else None
        for target, why in (absent or {}).items():
            if target in self._lanes:
                self._give_up(self._lanes[target], why, watcher)
        while self._fed(watcher) or any(lane.outstanding for lane in self._lanes.values()):
            try:
                self._step(watcher)
            except BrokerUnavailable as e:
                self._endure(e)
            watcher.tick()
        return self._lost

    def state(self) -> RunState:
        """How far the run is."""
        now = utc_now()
        return replace(
            self._state,
            updated_at=now,
            targets=[x.told(self._names.get(x.target, ""), now) for x in self._lanes.values()],
        )

    def _fed(self, watcher: Watcher) -> bool:
        """Take in what was prepared since; False once nothing more will come."""
        if self._feed is None:
            return False
        jobs, refused = self._feed.take()
        for trial in refused:
            watcher.trial(trial)
        for target, cases in jobs.items():
            lane = self._lanes[target]
            if not lane.outstanding or lane.target in self._beside_us:
                lane.last_news = self._now()  # it had nothing to tell
            lane.total += len(cases)
            for job in cases:
                lane.add(job)
            if lane.given_up:
                self._give_up(lane, lane.why, watcher)
        done = self._feed.done
        for lane in self._lanes.values():
            lane.unprepared = 0 if done else len(self._feed.left(lane.target))
        if done:
            self._feed = None
        return not done

    def _step(self, watcher: Watcher) -> None:
        epoch = self._farm.epoch()
        if self._away_since is not None:
            self._back()
        if epoch != self._epoch:
            self._start_over(epoch)
        self._send_due()
        self._gather(watcher)
        if self._now() >= self._look_at:
            self._look_at = self._now() + LOOK_EVERY_S
            self._look_after(watcher)
        if self._now() >= self._tell_at:
            self._tell_at = self._now() + TELL_EVERY_S
            self._farm.publish(self.state())
            self._rivals = self._farm.runs()
        self._away_since = None

    def _start_over(self, epoch: str) -> None:
        """At the start, and after a restart of Redis: queues and the stream's end may be lost."""
        if self._epoch:
            log.warning("Redis was restarted; sending what is outstanding once more", run=self._run_id)
        self._meet_workers(self._farm.registrations())
        for lane in self._lanes.values():
            lane.recall()
        self._rivals = self._farm.runs()
        self._after = "0"
        self._epoch = epoch

    def _endure(self, error: BrokerUnavailable) -> None:
        """Redis is away: wait for it, up to the limit."""
        if self._away_since is None:
            self._away_since = self._now()
            log.warning("the broker does not answer; waiting for it", run=self._run_id, error=str(error))
        if self._now() - self._away_since >= self._limits.outage_s:
            raise error
        self._sleep(POLL_MS / 1000)

    def _back(self) -> None:
        """Whoever could not register or tell anything meanwhile has the usual time from now on."""
        for lane in self._lanes.values():
            lane.last_seen = lane.last_news = lane.last_begun = self._now()

    def _send_due(self) -> None:
        for lane in self._lanes.values():
            if not lane.outstanding or earlier_own(self._state, lane.place, self._rivals) is not None:
                continue
            while self._worth_sending(lane) and (
                batch := lane.due(
                    self._blob_store, self._run_id, self._limits.batch, self._now(), self._soc_of
                )
            ):
                self._farm.send(batch, self._state.lane)
                lane.sent(batch)
            waiting = lane.next_in_queue
            if waiting and not lane.aged and too_old(self._state.lane, self._now() - lane.last_begun):
                # The nightly lane's copy does no harm: its cases will be done when it comes up.
                self._farm.send(waiting, "ondemand")
                lane.aged = True

    def _worth_sending(self, lane: Lane) -> bool:
        """While more is being prepared, a device that has work gets whole batches only."""
        if self._feed is None or not lane.unprepared:
            return self._feed is None or lane.target not in self._beside_us
        return lane.target not in self._beside_us and (not lane.flights or lane.fills(self._limits.batch))

    @property
    def _blob_store(self) -> str:
        return self._manifest.blob_store

    def _gather(self, watcher: Watcher) -> None:
        fresh: list[Trial] = []
        begun: list[tuple[Lane, Progress]] = []
        for entry_id, event in self._farm.events(self._run_id, self._after, POLL_MS):
            self._after = entry_id
            lane = self._lanes.get(event.target) if event is not None else None
            if event is None or lane is None:
                continue  # no target of this run: nobody asked it
            lane.last_news = self._now()
            if isinstance(event, Progress):
                self._hear(lane, event)
                if event.state == "batch":
                    begun.append((lane, event))
                watcher.progress(event)
            elif event.key not in self._known:
                self._known.add(event.key)
                fresh.append(event)
        if fresh:
            self._folder.append(fresh)
            for trial in fresh:
                self._settle(trial, watcher)
        if begun:
            try:
                # A new worker registers first: what it has begun is not what a dead one had.
                self._look_at_workers(watcher)
            finally:
                for lane, news in begun:
                    lane.begin(news.detail, news.device_id, self._now())

    def _hear(self, lane: Lane, news: Progress) -> None:
        if news.state == "batch":
            lane.last_begun, lane.aged, lane.why = self._now(), False, ""
        elif news.state == "waiting":
            lane.why = news.detail

    def _settle(self, trial: Trial, watcher: Watcher) -> None:
        """A trial is on disk: strike it off, and try again what infrastructure kept from us."""
        lane, slot = self._lanes[trial.target], (trial.target, trial.case_id)
        job = lane.settle(trial)
        if self._lost.pop(slot, None) is not None:
            lane.lost -= 1  # given up, and it came after all
        self._tries[slot] += 1
        self._stand_ins.tried(trial.target, trial.case_id, trial.device_id)
        tries = self._tries[slot]
        if job and trial.verdict is Verdict.INFRA and tries < INFRA_ATTEMPTS:
            again = replace(job, attempt=job.attempt + 1)
            lane.add(again)
            lane.later[lane.key(again)] = self._now() + RETRY_AFTER_S[tries - 1]
            if others := self._stand_ins.of(lane, again.case_id):
                lane.elsewhere[lane.key(again)] = others
            return
        lane.done += 1
        watcher.trial(trial)

    def _look_after(self, watcher: Watcher) -> None:
        """Notice a run that was ended, devices that cannot be had, and workers that died, came back, or stand
        still."""
        if ended := self._farm.cancelled(self._run_id):
            for lane in self._lanes.values():
                if lane.outstanding:
                    self._give_up(lane, ended, watcher)
            self._stop_feeding(ended, watcher)
            return
        for device_id, why in self._farm.given_up(self._run_id).items():
            lane = self._lanes.get(device_id)
            if lane is not None and lane.outstanding and not self._move_elsewhere(lane):
                self._give_up(lane, why, watcher)
        self._look_at_workers(watcher)
        for lane in self._lanes.values():
            lane.recall_doubtful(self._now())
            if lane.outstanding:
                self._check_alive(lane, watcher)

    def _look_at_workers(self, watcher: Watcher) -> None:
        """What a worker may have had that another one replaced is sent again, a bounded number of times."""
        for lane, replaced in self._meet_workers(self._farm.registrations()):
            lane.redispatches.update(replaced)
            if any(lane.redispatches[d] <= REDISPATCHES for d in lane.devices if d in self._stand_ins.there):
                for device_id in replaced:
                    lane.recall_from(device_id, self._now())
            else:
                self._give_up(lane, lane.deaths, watcher)

    def _check_alive(self, lane: Lane, watcher: Watcher) -> None:
        now = self._now()
        moves = moves_of_others(self._state, lane.place, self._rivals)
        if moves != self._moves.get(lane.target, moves):
            lane.last_news = now  # its phones work, for others
        self._moves[lane.target] = moves
        if earlier_own(self._state, lane.place, self._rivals) is not None:
            lane.last_news = now  # nothing of ours is there
        if now - lane.last_seen > self._limits.gone_s:
            if self._move_elsewhere(lane):
                return
            known = self._farm.whereabouts(lane.devices[0])
            why = f"no worker for {now - lane.last_seen:.0f} s" + (f" ({known})" if known else "")
            self._give_up(lane, why, watcher)
        elif now - lane.last_news > self._limits.stalled_s + lane.longest_s:
            self._give_up(lane, f"no news for {now - lane.last_news:.0f} s", watcher)
        elif (
            lane.flights and lane.last_recall < lane.last_news < now - self._limits.silent_s - lane.longest_s
        ):
            log.warning("no news; sending once more", run=self._run_id, target=lane.target)
            lane.last_recall = now
            lane.recall()

    def _move_elsewhere(self, lane: Lane) -> bool:
        """The device is gone: what is left goes to phones that stand in. False where there is none."""
        moved = self._stand_ins.of_all(lane)
        if not moved:
            return False
        lane.recall()
        lane.elsewhere.update(moved)
        lane.devices = sorted({device for others in moved.values() for device in others})
        lane.last_seen = lane.last_news = self._now()
        return True

    def _meet_workers(self, registrations: Mapping[str, Registration]) -> list[tuple[Lane, list[str]]]:
        """Note who serves each device; returns lanes of which workers are others than before, and the devices
        of these."""
        self._stand_ins.there = frozenset(registrations)
        changed: list[tuple[Lane, list[str]]] = []
        for lane in self._lanes.values():
            before = dict(lane.workers)
            for device_id in lane.devices:
                if (registration := registrations.get(device_id)) is not None:
                    lane.last_seen = self._now()
                    lane.workers[device_id] = registration.worker_id
            replaced = [d for d, worker in before.items() if lane.workers[d] != worker]
            if lane.outstanding and replaced:
                changed.append((lane, replaced))
        return changed

    def _give_up(self, lane: Lane, why: str, watcher: Watcher) -> None:
        for job in lane.outstanding.values():
            self._lost[lane.target, job.case_id] = why
        lost = lane.clear()
        lane.lost += lost
        lane.why, lane.given_up = why, True
        watcher.lost(lane.target, lost, why)

    def _stop_feeding(self, why: str, watcher: Watcher) -> None:
        if self._feed is None:
            return
        self._feed.stop()
        for lane in self._lanes.values():
            left = self._feed.left(lane.target)
            self._lost |= {(lane.target, case_id): why for case_id in left}
            lane.total, lane.lost = lane.total + len(left), lane.lost + len(left)
            watcher.lost(lane.target, len(left), why)

    def _lane(self, target: str) -> Lane:
        if (pool := self._manifest.pools.get(target)) is not None:
            return Lane(target, pool.devices, pool.soc, pool=True, canaries=pool.canaries)
        soc = self._soc_of.get(target, "")
        return Lane(target, [target], soc, canaries=self._manifest.canaries.get(target, ()))

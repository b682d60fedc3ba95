"""When does each job begin, and when is it done: the rules of turns.py played forward. Pure.

It assumes that estimates are right, that batches take a minute, that what runs now has a whole batch to go,
that nobody starts another run, and that phones which cannot work now never will, unless the time of their
return is known. Canaries, retries and the way of messages cost nothing in it. So it is an order of magnitude
for people, and the order in which things happen.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.domain.names import LANES, Lane
from orchestrator.execution.turns import too_old
from orchestrator.planning.plan import BATCH_S

MOST_TURNS = 20_000
"""Turns are longer than a batch where there would be more of them: the answer must come at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """A device that work is for."""

    device_id: str
    processor: str
    """Devices of one processor work one after another."""
    free_in_s: float = 0.0
    """Until it takes work; infinite: nobody can tell."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a run that lives has left on one target."""

    run_id: str
    user: str
    lane: Lane
    started_at: str
    devices: tuple[str, ...]
    left_s: float
    shared: bool = False
    """It is in the queue of a SoC, which a device serves after its own of the same lane."""
    waited_s: float = 0.0
    """Since its last batch began."""
    running: bool = False
    """A batch of it runs now."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """In seconds from now; infinite: not before something comes back."""

    begins_s: float
    ends_s: float


@dataclass(slots=True)
class _Job:
    work: Work
    left_s: float
    last_turn_s: float
    begins_s: float = math.inf
    ends_s: float = 0.0

    def take(self, at_s: float, seconds: float) -> None:
        self.begins_s = min(self.begins_s, at_s)
        self.ends_s = max(self.ends_s, at_s + seconds)
        self.last_turn_s = at_s
        self.left_s -= seconds


def forecast(works: Sequence[Work], places: Iterable[Place]) -> list[Forecast]:
    """One for each work, in their order. A device that is no place never works."""
    farm = _Farm(works, places)
    farm.play()
    return [Forecast(job.begins_s, math.inf if job.left_s > 0 else job.ends_s) for job in farm.jobs]


class _Farm:
    def __init__(self, works: Sequence[Work], places: Iterable[Place]) -> None:
        self.jobs = [_Job(w, w.left_s, 0.0 if w.running else -w.waited_s) for w in works]
        self._turn_s = max(BATCH_S, sum(w.left_s for w in works) / MOST_TURNS)
        self._wanted: defaultdict[str, list[_Job]] = defaultdict(list)
        """Device → jobs that it may do."""
        for job in self.jobs:
            for device_id in job.work.devices:
                self._wanted[device_id].append(job)
        self._places: defaultdict[str, list[Place]] = defaultdict(list)
        """By processor."""
        for place in places:
            if math.isfinite(place.free_in_s):
                self._places[place.processor].append(place)
        self._turns: dict[tuple[str, int, bool, str], float] = {}
        """Device, lane, shared, user → when they last had a turn there."""

    def play(self) -> None:
        busy = self._now_running()
        free = [
            (busy.get(processor, min(p.free_in_s for p in places)), processor)
            for processor, places in self._places.items()
        ]
        heapq.heapify(free)
        while free:
            at_s, processor = heapq.heappop(free)
            if (then_s := self._turn(at_s, self._places[processor])) is not None:
                heapq.heappush(free, (then_s, processor))

    def _now_running(self) -> dict[str, float]:
        """Processor → when the batch that it has in hand ends. Which phone of a SoC has it, nobody said: one
        of those that nothing else is known of."""
        busy: dict[str, float] = {}
        for job in sorted(self.jobs, key=lambda j: j.work.shared):
            if not (job.work.running and job.left_s > 0):
                continue
            options = [
                place
                for processor, places in self._places.items()
                for place in places
                if place.device_id in job.work.devices and processor not in busy
            ]
            if options:
                busy[options[0].processor] = self._do(job, options[0], 0.0)
        return busy

    def _turn(self, at_s: float, places: Sequence[Place]) -> float | None:
        """One batch, or the time until there may be one; None: this processor has nothing left to do."""
        options = [
            (job, place) for place in places for job in self._wanted[place.device_id] if job.left_s > 0
        ]
        ready = [(job, place) for job, place in options if place.free_in_s <= at_s]
        if not ready:
            return min((place.free_in_s for _, place in options), default=None)
        job, place = min(ready, key=lambda option: self._order(*option, at_s))
        return self._do(job, place, at_s)

    def _order(self, job: _Job, place: Place, at_s: float) -> tuple[int, bool, float, str, str]:
        work = job.work
        lane = self._lane(job, at_s)
        last = self._turns.get((place.device_id, lane, work.shared, work.user), -math.inf)
        return lane, work.shared, last, work.started_at, work.run_id

    def _lane(self, job: _Job, at_s: float) -> int:
        old = too_old(job.work.lane, at_s - job.last_turn_s)
        return LANES.index("ondemand" if old else job.work.lane)

    def _do(self, job: _Job, place: Place, at_s: float) -> float:
        seconds = min(self._turn_s, job.left_s)
        self._turns[place.device_id, self._lane(job, at_s), job.work.shared, job.work.user] = at_s
        job.take(at_s, seconds)
        return at_s + seconds

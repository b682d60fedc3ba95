"""A farm in memory whose phones take one batch at a time from a queue, and need time for it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from tests.unit.execution.fake_farm import FakeFarm, trial_of


@dataclass(slots=True)
class Hand:
    """What a phone has taken from the queue."""

    batch: Batch
    cases: list[CaseJob]
    """Those whose results were not in when it was taken."""
    says_at: float
    ends_at: float
    said: bool = False


@dataclass(slots=True)
class PoolFarm(FakeFarm):
    batch_s: float = 30.0
    """What a batch takes once it has begun."""
    opening_s: float = 0.0
    """Between a batch that is taken and the word that it has begun."""
    hands: dict[str, Hand] = field(default_factory=dict[str, Hand])
    """By device."""
    resting: set[str] = field(default_factory=set[str])
    """Devices that end what they have in hand and take nothing more."""
    measured: Counter[str] = field(default_factory=Counter[str])
    """How often each case was."""

    def kill(self, device_id: str) -> None:
        """Another worker is there at once; what the dead one had in hand is in no queue for an hour."""
        self.hands.pop(device_id, None)
        self.workers[device_id] += "+"

    def start(self, device_id: str) -> None:
        """Another worker, after one that rested."""
        self.workers[device_id] += "+"
        self.resting.discard(device_id)

    def _work(self) -> None:
        for device_id in self.workers:
            hand = self.hands.get(device_id)
            if hand is not None and self.clock >= hand.ends_at:
                self._deliver(device_id, self.hands.pop(device_id))
            if device_id not in self.hands and device_id not in self.resting:
                self.hands.update((device_id, taken) for taken in self._takes(device_id))
            hand = self.hands.get(device_id)
            if hand is not None and not hand.said and self.clock >= hand.says_at:
                hand.said = True
                run_id, batch_id, target = hand.batch.run_id, hand.batch.batch_id, hand.batch.planned_for
                self.tell(run_id, Progress(device_id, "batch", detail=batch_id, planned_for=target))

    def _takes(self, device_id: str) -> Iterator[Hand]:
        for batch in list(self._queue):
            if device_id not in (batch.only_on or [batch.device_id]):
                continue
            self._queue.remove(batch)
            known = self._known(batch)
            cases = [
                job
                for job in batch.cases
                if trial_of(batch.run_id, device_id, job, Verdict.PASS, batch.planned_for).key not in known
            ]
            if cases:
                says_at = self.clock + self.opening_s
                yield Hand(batch, cases, says_at, says_at + self.batch_s)
                return

    def _deliver(self, device_id: str, hand: Hand) -> None:
        known = self._known(hand.batch)
        for job in hand.cases:
            self.measured[job.case_id] += 1
            made = trial_of(hand.batch.run_id, device_id, job, Verdict.PASS, hand.batch.planned_for)
            if made.key not in known:
                self.tell(hand.batch.run_id, made)

    def _known(self, batch: Batch) -> set[str]:
        return {event.key for event in self.stream.get(batch.run_id, []) if isinstance(event, Trial)}

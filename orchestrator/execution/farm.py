"""What the dispatcher talks to: the farm behind the broker, and whoever follows the run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.names import Lane
from orchestrator.domain.run_state import RunState
from orchestrator.domain.trial import Trial


class Watcher(Protocol):
    """Who follows a run live."""

    def trial(self, trial: Trial) -> None: ...

    def progress(self, news: Progress) -> None: ...

    def lost(self, target: str, cases: int, why: str) -> None: ...

    def tick(self) -> None: ...


class Feed(Protocol):
    """What prepares jobs while others run (``preparation.Preparation``)."""

    @property
    def done(self) -> bool: ...

    def left(self, target: str) -> Sequence[str]:
        """Ids of a target's cases that were not taken yet."""
        ...

    def take(self) -> tuple[Mapping[str, Sequence[CaseJob]], Sequence[Trial]]:
        """What is ready since the last call: jobs by target, and trials of cases that no device sees."""
        ...

    def stop(self) -> None:
        """Nobody wants the rest."""
        ...


class Farm(Protocol):
    """Every method raises BrokerUnavailable while nothing answers (``broker.Broker``)."""

    def epoch(self) -> str:
        """Another one after each restart of Redis, which may have lost the last second."""
        ...

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

    def degraded(self, device_ids: Iterable[str], since: str) -> Sequence[str]:
        """Which of their workers took nothing and were replaced since then (UTC): device, when, why."""
        ...

    def events(self, run_id: str, after: str, block_ms: int) -> Iterator[tuple[str, Trial | Progress | None]]:
        """None: an entry that cannot be read, and is no result."""
        ...

    def publish(self, state: RunState) -> None:
        """Tell everybody how far the run is."""
        ...

    def runs(self) -> Sequence[RunState]:
        """How far all runs are."""
        ...

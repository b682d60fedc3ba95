"""What the service needs of its farm and of its host, so that its decisions are tested without either."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from orchestrator.domain.errors import WireError
from orchestrator.domain.run_state import RunState
from orchestrator.domain.submission import Submission


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a child says at its end (``tilefarm run --json``)."""

    run_id: str
    verdict: str
    exit_code: int
    report: str
    """Path of the report's index."""


class Farm(Protocol):
    """Of Redis (``board.Board``). Every method raises BrokerUnavailable where that does not answer."""

    def lead(self, who: str) -> bool:
        """Become or stay the farm's orchestrator; False while another one is."""
        ...

    def submissions(self) -> Mapping[str, Submission | WireError]: ...

    def cancelled(self, run_id: str) -> str:
        """Why a person ended the run; empty: nobody did."""
        ...

    def state(self, run_id: str) -> RunState | None: ...

    def publish(self, state: RunState) -> None: ...

    def strike_off(self, run_id: str) -> None: ...


class Child(Protocol):
    """A process that carries one run out."""

    def ended(self) -> int | None:
        """Exit code, or None while it runs."""
        ...

    def ask_to_stop(self) -> None:
        """It leaves its run in the farm, to be gone on with."""
        ...

    def kill(self) -> None: ...

    def last_words(self) -> str:
        """The end of its log: the error that it died with."""
        ...


class House(Protocol):
    """Of this host: run folders, processes."""

    @property
    def host(self) -> str: ...

    @property
    def who(self) -> str:
        """The same for each service on this host with these run folders: one takes over from another."""
        ...

    def begun(self) -> list[Submission]:
        """What was taken and not finished before this process started."""
        ...

    def take(self, submission: Submission) -> None:
        """Make the run's folder; one that is there already is left as it is.

        Raises:
            WireError: what was submitted is not fit to be carried out.
            InfraError: the blob store cannot be read now.
        """
        ...

    def made(self, run_id: str) -> bool:
        """The run has its folder, and so results, or at least a report to come."""
        ...

    def busy(self, run_id: str) -> bool:
        """Another process carries the run out, such as a child of a service that was killed."""
        ...

    def start(self, submission: Submission) -> Child: ...

    def outcome(self, run_id: str) -> Outcome | None:
        """None: it has not come to its end."""
        ...

    def forget(self, run_id: str) -> None:
        """The run has ended: it is not among those that were begun any more."""
        ...

    def later(self, call: Callable[[], None]) -> "Future[None]":
        """Call it beside this thread."""
        ...

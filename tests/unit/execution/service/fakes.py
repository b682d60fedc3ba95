"""A farm and a host in memory: children end when the test says so, the clock moves when it does."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from orchestrator.domain.errors import BrokerUnavailable, TilefarmError, WireError
from orchestrator.domain.names import Lane
from orchestrator.domain.run_state import RunState
from orchestrator.domain.submission import Submission
from orchestrator.execution.service.orchestrator import Orchestrator
from orchestrator.execution.service.ports import Outcome

STARTED = "20261201T010203Z-smoke-000"


def submission(number: int = 1, lane: Lane = "ondemand") -> Submission:
    at = f"2026-12-01T01:02:{number:02d}+00:00"
    return Submission(f"{STARTED}{number}", "smoke", "ann@desk", lane, at, "desk", "memory://b", "a" * 64)


@dataclass(slots=True)
class FakeFarm:
    """Implements :class:`orchestrator.execution.service.ports.Farm`."""

    waiting: dict[str, Submission | WireError] = field(default_factory=dict[str, Submission | WireError])
    states: dict[str, RunState] = field(default_factory=dict[str, RunState])
    ended: dict[str, str] = field(default_factory=dict[str, str])
    away: bool = False
    leads: bool = True

    def submit(self, *submissions: Submission) -> None:
        self.waiting |= {s.run_id: s for s in submissions}

    def lead(self, who: str) -> bool:
        assert who
        self._answer()
        return self.leads

    def submissions(self) -> Mapping[str, Submission | WireError]:
        self._answer()
        return dict(self.waiting)

    def cancelled(self, run_id: str) -> str:
        self._answer()
        return self.ended.get(run_id, "")

    def state(self, run_id: str) -> RunState | None:
        self._answer()
        return self.states.get(run_id)

    def publish(self, state: RunState) -> None:
        self._answer()
        self.states[state.run_id] = state

    def strike_off(self, run_id: str) -> None:
        self._answer()
        self.waiting.pop(run_id, None)

    def _answer(self) -> None:
        if self.away:
            raise BrokerUnavailable("broker: gone")


@dataclass(slots=True)
class FakeChild:
    code: int | None = None
    asked: int = 0
    killed: bool = False

    def ended(self) -> int | None:
        return self.code

    def ask_to_stop(self) -> None:
        self.asked += 1

    def kill(self) -> None:
        self.killed = True

    def last_words(self) -> str:
        return "tilefarm: no space left"


@dataclass(slots=True)
class FakeHouse:
    """Implements :class:`orchestrator.execution.service.ports.House`."""

    host: str = "server"
    who: str = "server /out"
    on_disk: dict[str, Submission] = field(default_factory=dict[str, Submission])
    """Begun and not ended; outlives an orchestrator."""
    children: dict[str, list[FakeChild]] = field(default_factory=dict[str, list[FakeChild]])
    """Run → all that were started, in order."""
    outcomes: dict[str, Outcome] = field(default_factory=dict[str, Outcome])
    taking: Callable[[Submission], None] = lambda _: None
    starting: Callable[[Submission], None] = lambda _: None
    forgetting: Callable[[str], None] = lambda _: None
    folders: set[str] = field(default_factory=set[str])
    """Runs whose folder was made."""
    elsewhere: set[str] = field(default_factory=set[str])
    """Runs that another process carries out."""
    clock: float = 1000.0

    def now(self) -> float:
        return self.clock

    def begun(self) -> list[Submission]:
        return list(self.on_disk.values())

    def take(self, submission: Submission) -> None:
        self.on_disk[submission.run_id] = submission
        self.taking(submission)
        self.folders.add(submission.run_id)

    def made(self, run_id: str) -> bool:
        return run_id in self.folders

    def busy(self, run_id: str) -> bool:
        return run_id in self.elsewhere

    def start(self, submission: Submission) -> FakeChild:
        self.starting(submission)
        self.outcomes.pop(submission.run_id, None)
        child = FakeChild()
        self.children.setdefault(submission.run_id, []).append(child)
        return child

    def outcome(self, run_id: str) -> Outcome | None:
        return self.outcomes.get(run_id)

    def forget(self, run_id: str) -> None:
        self.forgetting(run_id)
        self.on_disk.pop(run_id, None)

    def later(self, call: Callable[[], None]) -> "Future[None]":
        done: Future[None] = Future()
        try:
            call()
            done.set_result(None)
        except (TilefarmError, OSError) as e:
            done.set_exception(e)
        return done

    def end(self, run_id: str, exit_code: int = 0) -> None:
        """The run's child comes to its end, with its report."""
        self.outcomes[run_id] = Outcome(run_id, "all passed", exit_code, f"/out/runs/{run_id}/index.html")
        self.children[run_id][-1].code = exit_code

    def die(self, run_id: str, code: int = -9) -> None:
        self.children[run_id][-1].code = code


@dataclass(slots=True)
class Bench:
    """An orchestrator on both, and its successors."""

    farm: FakeFarm = field(default_factory=FakeFarm)
    house: FakeHouse = field(default_factory=FakeHouse)
    at_once: int = 4
    service: Orchestrator = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Another process, after whatever ended the one before."""
        self.service = Orchestrator(self.farm, self.house, self.at_once, self.house.now)

    def tick(self, times: int = 3) -> None:
        """Taking, reaping and starting are one tick apart."""
        for _ in range(times):
            self.service.tick()

    def wait(self, seconds: float) -> None:
        self.house.clock += seconds
        self.tick()

    def living(self) -> list[str]:
        return [run for run, all_ in self.house.children.items() if all_[-1].code is None]

"""Which submitted run is taken, started, started again, refused or struck off, and when.

Truth is in two places that outlive this process: the submissions in Redis, and on disk what was begun here.
No broken submission and no outage of Redis keeps the other runs from going on.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

import structlog

from orchestrator.domain.errors import BrokerUnavailable, UsageError, WireError
from orchestrator.domain.moment import utc_now
from orchestrator.domain.names import LANES, Lane
from orchestrator.domain.run_state import ENDED, RunState
from orchestrator.domain.submission import Submission
from orchestrator.execution.service.ports import Child, Farm, House, Outcome

AGAIN_AFTER_S = (5.0, 30.0, 120.0, 300.0)
"""Waits before a run whose process died is started again; after one death more it has failed."""
BUSY_S = 5.0
_SHOWN_ID = 120
_SHOWN_WHY = 2000
log = structlog.get_logger()


@dataclass(slots=True)
class _Run:
    submission: Submission
    begun: bool = False
    """It has, or is about to get, a folder here: from then on only its end strikes it off."""
    taken: bool = False
    taking: "Future[None] | None" = None
    child: Child | None = None
    deaths: int = 0
    not_before: float = 0.0
    outcome: Outcome | None = None
    failed: str = ""

    @property
    def at_work(self) -> bool:
        return self.child is not None or self.taking is not None

    @property
    def over(self) -> bool:
        return self.outcome is not None or bool(self.failed)

    @property
    def turn(self) -> tuple[int, str, str]:
        return LANES.index(self.submission.lane), self.submission.submitted_at, self.submission.run_id


class Orchestrator:
    """One ``tick`` after another, from one thread."""

    def __init__(
        self, farm: Farm, house: House, at_once: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._farm = farm
        self._house = house
        self._at_once = at_once
        self._now = now
        self._runs = {s.run_id: _Run(s, begun=True) for s in house.begun()}
        self._away = False
        self._leads = True
        self._stopping = False

    @property
    def children(self) -> int:
        """Processes of runs that live now."""
        return sum(run.child is not None for run in self._runs.values())

    @property
    def leads(self) -> bool:
        """It is the farm's orchestrator; a second one stands by."""
        return self._leads

    def tick(self) -> None:
        """Look at everything once, and act on it."""
        try:
            leads = self._farm.lead(self._house.who)
            if leads is not self._leads:
                log.info("this orchestrator leads" if leads else "another orchestrator leads; standing by")
            self._leads, self._away = leads, False
        except BrokerUnavailable as e:
            self._note_away(e)
        self._reap()
        if self._away or self._stopping:
            return
        if not self._leads:
            self._ask_children_to_stop()
            return
        try:
            self._settle()
            self._look_for_submissions()
            self._start_due()
        except BrokerUnavailable as e:
            self._note_away(e)

    def stop(self) -> None:
        """Nothing is begun any more; children leave their runs to be gone on with.

        Tick on until there are none.
        """
        self._stopping = True
        self._ask_children_to_stop()

    def kill(self) -> None:
        """What has not ended by itself: its run can be gone on with all the same."""
        for run in self._runs.values():
            if run.child is not None:
                run.child.kill()

    def _note_away(self, error: BrokerUnavailable) -> None:
        if not self._away:
            log.warning("the broker does not answer; runs go on once it does", error=str(error))
        self._away = True

    def _ask_children_to_stop(self) -> None:
        for run in self._runs.values():
            if run.child is not None:
                run.child.ask_to_stop()

    def _reap(self) -> None:
        for run in self._runs.values():
            if run.taking is not None and run.taking.done():
                self._taken(run, run.taking)
                run.taking = None
            if run.child is not None and (code := run.child.ended()) is not None:
                self._ended(run, run.child, code)
                run.child = None

    def _taken(self, run: _Run, taking: "Future[None]") -> None:
        error = taking.exception()
        if error is None:
            run.taken = True
        elif isinstance(error, WireError | UsageError):
            run.failed = _plain(f"refused: {error}")
        else:
            log.warning("submission not taken", run=run.submission.run_id, exc_info=error)
            self._died(run, f"its folder could not be made on {self._house.host}: {error}")

    def _ended(self, run: _Run, child: Child, code: int) -> None:
        run.outcome = self._house.outcome(run.submission.run_id)
        # One that was told to stop, or whose Redis is away, is no sign that anything is wrong with its run.
        if run.outcome is None and not (self._stopping or self._away or not self._leads):
            self._died(
                run, f"its process on {self._house.host} ended with exit code {code}: {child.last_words()}"
            )

    def _died(self, run: _Run, why: str) -> None:
        run.deaths, why = run.deaths + 1, _plain(why)
        log.warning("run interrupted", run=run.submission.run_id, times=run.deaths, why=why)
        if run.deaths > len(AGAIN_AFTER_S):
            run_id = run.submission.run_id
            next_step = f". `tilefarm run --resume {run_id}` there completes it" if run.taken else ""
            run.failed = f"{why} ({run.deaths} times){next_step}"
        else:
            run.not_before = self._now() + AGAIN_AFTER_S[run.deaths - 1]

    def _settle(self) -> None:
        for run in list(self._runs.values()):
            if run.over:
                self._guarded(run, self._tell_end)

    def _tell_end(self, run: _Run) -> None:
        """Say how it ended, and strike it off: in this order, so that a crash in between repeats it."""
        run_id = run.submission.run_id
        state = self._state(run)
        # The child has said so itself, with more detail, unless Redis was away just then.
        if state.phase not in ENDED:
            self._farm.publish(self._last_state(run, state))
        self._strike_off(run_id)
        log.info("run over", run=run_id, verdict=run.outcome.verdict if run.outcome else run.failed)

    def _guarded(self, run: _Run, step: Callable[[_Run], None]) -> bool:
        """What is wrong with one run must not keep the others from going on; False: it was."""
        try:
            step(run)
        except BrokerUnavailable:
            raise
        except Exception:
            log.exception("unexpected; the others go on", run=run.submission.run_id)
            return False
        return True

    def _last_state(self, run: _Run, state: RunState) -> RunState:
        state = replace(state, updated_at=utc_now())
        if run.outcome is None:
            return replace(state, phase="failed", why=run.failed)
        cancelled = self._farm.cancelled(state.run_id)
        return replace(
            state,
            phase="cancelled" if cancelled else "finished",
            why=cancelled,
            verdict=run.outcome.verdict,
            exit_code=run.outcome.exit_code,
            report=run.outcome.report,
        )

    def _strike_off(self, run_id: str) -> None:
        self._farm.strike_off(run_id)
        self._house.forget(run_id)
        self._runs.pop(run_id, None)

    def _look_for_submissions(self) -> None:
        found = self._farm.submissions()
        for run_id, submission in found.items():
            if isinstance(submission, WireError):
                self._refuse(run_id, str(submission))
            elif run_id not in self._runs:
                log.info("submitted", run=run_id, user=submission.user, lane=submission.lane)
                self._runs[run_id] = _Run(submission)
        for run_id, run in list(self._runs.items()):
            if run_id in found or run.at_work or run.over:
                continue
            if not run.begun:
                del self._runs[run_id]  # cancelled while it waited
            elif (state := self._farm.state(run_id)) is not None and state.phase in ENDED:
                self._strike_off(run_id)  # by another orchestrator, while this one was down

    def _refuse(self, run_id: str, why: str) -> None:
        log.warning("submission refused", run=ascii(run_id[:_SHOWN_ID]), why=why)
        if len(run_id) <= _SHOWN_ID and run_id.isprintable() and run_id not in self._runs:
            now = utc_now()
            state = RunState(run_id, "", "", "ondemand", "failed", now, now, self._house.host)
            self._farm.publish(replace(state, why=_plain(f"refused: {why}")))
        self._farm.strike_off(run_id)

    def _start_due(self) -> None:
        """On-demand runs first; nightly ones leave half of the places to those that come meanwhile."""
        for run in sorted(self._runs.values(), key=lambda r: r.turn):
            due = not (run.at_work or run.over) and run.not_before <= self._now()
            if not (due and self._has_place(run.submission.lane)):
                continue
            if not self._guarded(run, self._go_on):
                self._died(run, f"not started on {self._house.host}; the orchestrator's log says why")

    def _has_place(self, lane: Lane) -> bool:
        at_work = [run.submission.lane for run in self._runs.values() if run.at_work]
        nights = max(1, self._at_once // 2)
        return len(at_work) < self._at_once and (lane == "ondemand" or at_work.count("nightly") < nights)

    def _go_on(self, run: _Run) -> None:
        """The next step of a run: its folder, then its process."""
        run_id = run.submission.run_id
        if run.begun and (outcome := self._house.outcome(run_id)) is not None:
            run.outcome = outcome  # it came to its end while no service was there to notice
        elif not run.taken and not self._house.made(run_id) and (why := self._farm.cancelled(run_id)):
            self._farm.publish(replace(self._state(run), phase="cancelled", why=why, updated_at=utc_now()))
            self._strike_off(run_id)
        elif not run.taken:
            if not run.begun:
                self._farm.publish(replace(self._state(run), phase="preparing", updated_at=utc_now()))
            run.begun = True
            run.taking = self._house.later(lambda: self._house.take(run.submission))
        elif self._house.busy(run_id):
            run.not_before = self._now() + BUSY_S
        else:
            log.info("starting", run=run_id)
            run.child = self._house.start(run.submission)

    def _state(self, run: _Run) -> RunState:
        """As the run's dispatcher left it, or one for a run that had none yet."""
        if (state := self._farm.state(run.submission.run_id)) is not None:
            return replace(state, host=self._house.host)
        of = run.submission
        now, host = utc_now(), self._house.host
        return RunState(of.run_id, of.suite, of.user, of.lane, "preparing", of.submitted_at, now, host)


def _plain(text: str) -> str:
    """Fit to be told: what a program died with may be of any length, and no Unicode."""
    return text.encode("utf-8", "backslashreplace").decode()[:_SHOWN_WHY]

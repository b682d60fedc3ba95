"""What a broker knows of runs: how far they are, which wait for an orchestrator, who carries them out."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

import redis

from orchestrator.domain.errors import BrokerUnavailable, WireError
from orchestrator.domain.moment import utc_now
from orchestrator.domain.names import SUBMISSIONS_KEY, events_key, run_key, state_key
from orchestrator.domain.run_state import ENDED, RunState
from orchestrator.domain.submission import Service, Submission
from orchestrator.storage.redis_client import connect, shown
from orchestrator.storage.run_states import RunStates
from orchestrator.storage.submissions import Submissions

ORCHESTRATOR = "orchestrator"
"""Name of the service that takes submissions."""


class Board:
    """
    Raises:
        BrokerUnavailable: nothing answers at the URL (every method, too).
    """

    def __init__(self, url: str, *, answer_s: float = 30.0) -> None:
        self.url = url
        self._redis = connect(url, answer_s=answer_s)
        self._states = RunStates(self._redis)
        self._submissions = Submissions(self._redis)

    def close(self) -> None:
        self._redis.close()

    def runs(self) -> list[RunState]:
        """Oldest first; a submission that nobody has looked at for a week is one of them, too."""
        with self._reachable():
            found = {state.run_id: state for state in self._states.all()}
        for run_id, submission in self.submissions().items():
            if isinstance(submission, Submission):
                found.setdefault(run_id, submitted(submission))
        return sorted(found.values(), key=lambda s: (s.started_at, s.run_id))

    def run(self, run_id: str) -> RunState | None:
        """None: nobody here has heard of it."""
        state = self.state(run_id)
        if state is None and isinstance(submission := self.submissions().get(run_id), Submission):
            return submitted(submission)
        return state

    def state(self, run_id: str) -> RunState | None:
        """As whoever carries it out has told."""
        with self._reachable():
            return self._states.get(run_id)

    def publish(self, state: RunState) -> None:
        with self._reachable():
            self._states.publish(state)

    def submit(self, submission: Submission) -> bool:
        """False where a run of that id is known already."""
        with self._reachable():
            return self._submissions.put(submission, submitted(submission))

    def submissions(self) -> dict[str, Submission | WireError]:
        """By run id; what cannot be read, or must not be believed, is its error."""
        with self._reachable():
            return self._submissions.all()

    def strike_off(self, run_id: str) -> None:
        """It is no submission any more."""
        with self._reachable():
            self._submissions.strike_off(run_id)

    def cancelled(self, run_id: str) -> str:
        """Why a person ended the run; empty: nobody did."""
        with self._reachable():
            return self._states.cancelled(run_id)

    def cancel(self, run_id: str, why: str) -> Literal["unknown", "ended", "struck off", "ending"]:
        """End a run wherever it is. One that was not begun is struck off; another one's process ends it.

        An orchestrator that begins it at this very moment finds the reason, and ends it likewise.
        """
        with self._reachable():
            keys = [run_key(run_id), events_key(run_id), state_key(run_id)]
            known = any(self._redis.exists(key) for key in keys)
            if not (known or self._redis.hexists(SUBMISSIONS_KEY, run_id)):
                return "unknown"
        state = self.run(run_id)
        if state is not None and state.phase in ENDED and not state.live:
            return "ended"
        with self._reachable():
            self._states.cancel(run_id, why)
        if state is None or state.phase != "submitted":
            return "ending"
        self.strike_off(run_id)
        self.publish(replace(state, phase="cancelled", why=why, updated_at=utc_now()))
        return "struck off"

    def lead(self, who: str) -> bool:
        """Become or stay the orchestrator of this farm; False while another one is."""
        with self._reachable():
            return self._submissions.lead(who)

    def resign(self, who: str) -> None:
        with self._reachable():
            self._submissions.resign(who)

    def orchestrators(self) -> list[Service]:
        """Those that live."""
        with self._reachable():
            return self._submissions.services(ORCHESTRATOR)

    def serves(self, service: Service) -> None:
        """Say that a service lives; to be repeated every few seconds."""
        with self._reachable():
            self._submissions.serves(service)

    def serves_no_more(self, service: Service) -> None:
        with self._reachable():
            self._submissions.serves_no_more(service)

    @contextmanager
    def _reachable(self) -> Generator[None]:
        try:
            yield
        except (redis.RedisError, OSError) as e:
            raise BrokerUnavailable(f"broker {shown(self.url)}: {e}") from e


def submitted(submission: Submission) -> RunState:
    """Of a run that waits for an orchestrator."""
    of, at = submission, submission.submitted_at
    return RunState(of.run_id, of.suite, of.user, of.lane, "submitted", at, at, of.host)

"""States of runs in Redis: written by each run's dispatcher, read by people and by other dispatchers."""

from dataclasses import replace

import structlog

from orchestrator.domain.errors import WireError
from orchestrator.domain.names import (
    LIVE_TTL_S,
    RUN_KEYS_TTL_S,
    STATE_KEY_PREFIX,
    cancelled_key,
    live_key,
    state_key,
)
from orchestrator.domain.run_state import ENDED, RunState
from orchestrator.domain.wire import pack, unpack
from orchestrator.storage.redis_client import RedisClient

log = structlog.get_logger()


class RunStates:
    """Of all runs that a broker knows; raises redis.RedisError where Redis does not answer."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    def publish(self, state: RunState) -> None:
        """Also says that the run is being carried out, until it has ended or for ``LIVE_TTL_S``."""
        self._client.set(state_key(state.run_id), pack(replace(state, live=False)), ex=RUN_KEYS_TTL_S)
        if state.phase in ENDED:
            self._client.delete(live_key(state.run_id))
        elif state.phase != "submitted":
            self._client.set(live_key(state.run_id), state.host, ex=LIVE_TTL_S)

    def cancel(self, run_id: str, why: str) -> None:
        """Whoever carries the run out, and the workers that measure for it, find the reason and end."""
        self._client.set(cancelled_key(run_id), why, ex=RUN_KEYS_TTL_S)

    def cancelled(self, run_id: str) -> str:
        """Why a person ended the run; empty: nobody did."""
        return (self._client.get(cancelled_key(run_id)) or b"").decode("utf-8", "replace")

    def cancel_no_more(self, run_id: str) -> None:
        self._client.delete(cancelled_key(run_id))

    def get(self, run_id: str) -> RunState | None:
        """None: never heard of, or of another version."""
        text = self._client.get(state_key(run_id))
        try:
            state = unpack(RunState, text, state_key(run_id)) if text else None
        except WireError as e:
            log.warning("state not read", error=str(e))
            return None
        return replace(state, live=self._client.exists(live_key(run_id)) == 1) if state else None

    def all(self) -> list[RunState]:
        """Oldest first."""
        ids = [
            key.decode("utf-8", "replace").removeprefix(STATE_KEY_PREFIX)
            for key in self._client.scan_iter(match=f"{STATE_KEY_PREFIX}*")
        ]
        found = [state for run_id in ids if (state := self.get(run_id)) is not None]
        return sorted(found, key=lambda s: (s.started_at, s.run_id))

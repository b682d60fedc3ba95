"""What an agent knows of its farm through Redis; while that is away, what it knew last, and since when."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import redis
import structlog

from orchestrator.domain.agent import AgentReport, News
from orchestrator.domain.event import Registration
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import (
    AGENT_TTL_S,
    CELERY_PREFIX,
    LANES,
    agent_key,
    device_queue,
    lease_key,
    token_key,
)
from orchestrator.domain.wire import pack
from orchestrator.storage.degraded import note_degraded
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from workers.news import heard
from workers.registry import registrations

QUIET_S = 5.0
"""After a link that does not answer: each question to one that hangs takes as long as a connection does, and
an agent has several for each phone in each tick."""
T = TypeVar("T")
log = structlog.get_logger()


@dataclass(slots=True)
class RedisFarm:
    """No method fails: a broker that restarts ends no worker, frees no held phone and recovers none."""

    client: RedisClient
    clock: Callable[[], float] = time.monotonic
    _read: dict[bytes, Registration] = field(default_factory=dict[bytes, Registration])
    _registrations: Sequence[Registration] = ()
    _holds: Sequence[Hold] = ()
    _busy: dict[str, bool] = field(default_factory=dict[str, bool])
    _away: bool = False
    _holds_at: float = -math.inf
    _shown_at: float = -math.inf
    _quiet_until: float = 0.0

    def registrations(self) -> Sequence[Registration]:
        self._registrations = self._ask(lambda: registrations(self.client, self._read), self._registrations)
        return self._registrations

    def holds(self) -> Sequence[Hold]:
        began = self.clock()
        self._holds = self._ask(lambda: list(Leases(self.client).holds().values()), self._holds)
        if not self._away:
            self._holds_at = began
        return self._holds

    def unheard_s(self) -> float:
        return self.clock() - min(self._holds_at, self._shown_at)

    def busy(self, device_id: str) -> bool:
        before = self._busy.get(device_id, False)
        self._busy[device_id] = self._ask(lambda: self.client.exists(lease_key(device_id)) == 1, before)
        return self._busy[device_id]

    def waiting(self, device_id: str) -> str:
        return self._ask(lambda: self._waiting(device_id), "")

    def _waiting(self, device_id: str) -> str:
        queues = [CELERY_PREFIX + device_queue(device_id, lane) for lane in LANES]
        if self.client.exists(lease_key(device_id)) or not any(map(self.client.exists, queues)):
            return ""
        return (self.client.get(token_key(device_id)) or b"never").decode("utf-8", "replace")

    def degraded(self, device_id: str, why: str) -> None:
        self._ask(lambda: note_degraded(self.client, device_id, why), None)

    def news(self, device_id: str) -> Iterable[News]:
        return self._ask(lambda: list(heard(self.client, device_id)), list[News]())

    def publish(self, report: AgentReport) -> None:
        began = self.clock()
        self._ask(lambda: self.client.set(agent_key(report.host), pack(report), ex=AGENT_TTL_S), None)
        if not self._away:
            self._shown_at = began

    def _ask(self, question: Callable[[], T], known: T) -> T:
        if self.clock() < self._quiet_until:
            return known
        try:
            answer = question()
        except (redis.RedisError, OSError, ValueError) as e:  # away, or text that is none
            if isinstance(e, redis.ConnectionError | redis.TimeoutError | OSError):
                self._quiet_until = self.clock() + QUIET_S
            if not self._away:
                log.warning("the broker does not answer; going on with what is known", error=str(e))
            self._away = True
            return known
        self._away = False
        return answer

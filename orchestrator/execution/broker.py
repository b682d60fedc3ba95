"""The orchestrator's side of Redis: who is registered, what was sent, what came back."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import redis
from celery import Celery
from kombu.exceptions import OperationalError

from orchestrator.domain.agent import AgentReport
from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.job import Batch
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import (
    AGENT_KEY_PREFIX,
    DEVICE_KEY_PREFIX,
    RUN_BATCH_TASK,
    RUN_KEYS_TTL_S,
    Lane,
    cancelled_key,
    celery_settings,
    device_queue,
    events_key,
)
from orchestrator.domain.trial import Trial
from orchestrator.domain.wire import encode, from_json
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import connect, shown

READ_COUNT = 500


class Broker:
    """One connection to the farm's Redis.

    Raises:
        BrokerUnavailable: nothing answers at the URL (every method, too).
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._redis = connect(url)
        self._leases = Leases(self._redis)
        self._celery = Celery("tilefarm", broker=url)
        self._celery.conf.update(celery_settings())

    def close(self) -> None:
        self._celery.close()
        self._redis.close()

    def registrations(self) -> dict[str, Registration]:
        """Devices that living workers serve now, by device id."""
        found: dict[str, Registration] = {}
        with self._reachable():
            for key in self._redis.scan_iter(match=f"{DEVICE_KEY_PREFIX}*"):
                text = self._redis.get(key)
                if text is not None:
                    registration = from_json(Registration, text, key.decode())
                    found[registration.record.device_id] = registration
        return dict(sorted(found.items()))

    def agents(self) -> list[AgentReport]:
        """Of every host that has one now."""
        with self._reachable():
            keys = sorted(self._redis.scan_iter(match=f"{AGENT_KEY_PREFIX}*"))
            texts = ((key.decode(), self._redis.get(key)) for key in keys)
            return [from_json(AgentReport, text, key) for key, text in texts if text]

    def holds(self) -> dict[str, Hold]:
        """Devices that people keep for themselves, by device id."""
        with self._reachable():
            return self._leases.holds()

    def hold(self, hold: Hold) -> bool:
        """False where somebody holds the device already."""
        with self._reachable():
            return self._leases.hold(hold)

    def fence(self, device_id: str) -> bool:
        """True once no worker has the device; what one of them still writes is refused from then on."""
        with self._reachable():
            return self._leases.fence(device_id)

    def release(self, device_id: str) -> bool:
        """False where nobody held the device."""
        with self._reachable():
            return self._leases.release(device_id)

    def cancel(self, run_id: str, why: str) -> bool:
        """End a run wherever it is; False where nobody at this broker has heard of it."""
        with self._reachable():
            if not self._redis.exists(events_key(run_id)):
                return False
            self._redis.set(cancelled_key(run_id), why, ex=RUN_KEYS_TTL_S)
            return True

    def cancelled(self, run_id: str) -> str:
        """Why it was ended; empty: it was not."""
        with self._reachable():
            return (self._redis.get(cancelled_key(run_id)) or b"").decode("utf-8", "replace")

    def revoke_cancel(self, run_id: str) -> None:
        """The run goes on."""
        with self._reachable():
            self._redis.delete(cancelled_key(run_id))

    def send(self, batch: Batch, lane: Lane) -> None:
        """Queue a batch for its device."""
        with self._reachable():
            self._celery.send_task(
                RUN_BATCH_TASK, args=[encode(batch)], queue=device_queue(batch.device_id, lane)
            )

    def events(self, run_id: str, after: str, block_ms: int) -> Iterator[tuple[str, Trial | Progress]]:
        """Entries of a run's stream after an entry id; waits up to ``block_ms`` when there is none."""
        key = events_key(run_id)
        with self._reachable():
            streams = self._redis.xread({key: after}, count=READ_COUNT, block=block_ms)
        for _, entries in streams:
            for entry_id, fields in entries:
                where = f"{key} {entry_id.decode()}"
                if b"trial" in fields:
                    yield entry_id.decode(), from_json(Trial, fields[b"trial"], where)
                else:
                    yield entry_id.decode(), from_json(Progress, fields[b"progress"], where)

    @contextmanager
    def _reachable(self) -> Generator[None]:
        try:
            yield
        except (OSError, redis.RedisError, OperationalError) as e:
            raise BrokerUnavailable(
                f"broker {shown(self.url)}: {e}. Results so far are on disk: start Redis again and complete "
                "the run with `tilefarm run --resume RUN_ID`"
            ) from e

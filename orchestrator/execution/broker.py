"""The orchestrator's side of Redis: who is registered, what was sent, what came back."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import redis
import structlog
from celery import Celery
from kombu.exceptions import OperationalError

from orchestrator.domain.agent import AgentReport
from orchestrator.domain.device_check import read_registration, read_report
from orchestrator.domain.errors import BrokerUnavailable, WireError
from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.job import Batch
from orchestrator.domain.lease import Hold
from orchestrator.domain.moment import parse_time
from orchestrator.domain.names import (
    AGENT_KEY_PREFIX,
    DEVICE_KEY_PREFIX,
    RUN_BATCH_TASK,
    RUN_KEYS_TTL_S,
    Lane,
    celery_settings,
    device_queue,
    events_key,
    given_up_key,
    run_key,
    soc_queue,
)
from orchestrator.domain.run_state import RunState
from orchestrator.domain.trial import Trial, unreadable_trial
from orchestrator.domain.wire import MAX_BATCH_BYTES, pack, unpack
from orchestrator.storage.degraded import degraded_since
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import connect, shown
from orchestrator.storage.run_states import RunStates

READ_COUNT = 500
log = structlog.get_logger()
T = TypeVar("T")


class Broker:
    """One connection to the farm's Redis.

    Raises:
        BrokerUnavailable: nothing answers at the URL (every method, too).
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._redis = connect(url)
        self._leases = Leases(self._redis)
        self._states = RunStates(self._redis)
        self._celery = Celery("tilefarm", broker=url)
        self._celery.conf.update(celery_settings())

    def close(self) -> None:
        self._celery.close()
        self._redis.close()

    def epoch(self) -> str:
        """Another one after each start of the server."""
        with self._reachable():
            return str(self._redis.info("server").get("run_id", ""))

    def publish(self, state: RunState) -> None:
        """Tell everybody how far a run is."""
        with self._reachable():
            self._states.publish(state)

    def runs(self) -> list[RunState]:
        """How far all runs are, oldest first."""
        with self._reachable():
            return self._states.all()

    def registrations(self) -> dict[str, Registration]:
        """Devices that living workers serve now, by device id."""
        found = self._all(read_registration, DEVICE_KEY_PREFIX)
        return {r.record.device_id: r for r in sorted(found, key=lambda r: r.record.device_id)}

    def agents(self) -> list[AgentReport]:
        """Of every host that has one now."""
        return self._all(read_report, AGENT_KEY_PREFIX)

    def whereabouts(self, device_id: str) -> str:
        """What people and agents say of a device that no worker serves; empty: nothing."""
        if (hold := self.holds().get(device_id)) is not None:
            return hold.sentence
        seen = [(agent, phone) for agent in self.agents() for phone in agent.phones]
        return next(
            (
                f"{phone.condition} on {agent.host}" + (f": {phone.why}" if phone.why else "")
                for agent, phone in seen
                if phone.device_id == device_id
            ),
            "",
        )

    def holds(self) -> dict[str, Hold]:
        """Devices that people keep for themselves, by device id."""
        with self._reachable():
            return self._leases.holds()

    def hold(self, hold: Hold) -> bool:
        """False where somebody holds the device already."""
        with self._reachable():
            return self._leases.hold(hold)

    def leased(self, device_ids: Iterable[str]) -> frozenset[str]:
        """Those of them that somebody has in hand now."""
        with self._reachable():
            return self._leases.leased(device_ids)

    def fence(self, device_id: str) -> bool:
        """True once no worker has the device; what one of them still writes is refused from then on."""
        with self._reachable():
            return self._leases.fence(device_id)

    def release(self, hold: Hold) -> bool:
        """False where that hold had ended already."""
        with self._reachable():
            return self._leases.release(hold)

    def cancel(self, run_id: str, why: str) -> bool:
        """End a run wherever it is; False where nobody at this broker has heard of it."""
        with self._reachable():
            if not (self._redis.exists(run_key(run_id)) or self._redis.exists(events_key(run_id))):
                return False
            self._states.cancel(run_id, why)
            return True

    def cancelled(self, run_id: str) -> str:
        """Why it was ended; empty: it was not."""
        with self._reachable():
            return self._states.cancelled(run_id)

    def given_up(self, run_id: str) -> dict[str, str]:
        """Devices that the run waits for no more, with what their workers waited for in vain."""
        with self._reachable():
            found = self._redis.hgetall(given_up_key(run_id))
        return {
            device.decode("utf-8", "replace"): why.decode("utf-8", "replace") for device, why in found.items()
        }

    def degraded(self, device_ids: Iterable[str], since: str) -> list[str]:
        """Which of their workers took nothing and were replaced since then (UTC): device, when, why."""
        with self._reachable():
            return degraded_since(self._redis, device_ids, parse_time(since))

    def go_on(self, run_id: str) -> None:
        """The run is not cancelled any more, and no device is given up."""
        with self._reachable():
            self._states.cancel_no_more(run_id)
            self._redis.delete(given_up_key(run_id))

    def send(self, batch: Batch, lane: Lane) -> None:
        """Queue a batch for its device or for any phone of its SoC; from then on its run is known here.

        Raises:
            WireError: it is longer than a message may be.
        """
        text = pack(batch, MAX_BATCH_BYTES)
        queue = device_queue(batch.device_id, lane) if batch.device_id else soc_queue(batch.soc, lane)
        with self._reachable():
            self._redis.set(run_key(batch.run_id), lane, ex=RUN_KEYS_TTL_S)
            self._celery.send_task(RUN_BATCH_TASK, args=[text], queue=queue)

    def events(self, run_id: str, after: str, block_ms: int) -> Iterator[tuple[str, Trial | Progress | None]]:
        """Entries of a run's stream after an entry id; waits up to ``block_ms`` when there is none.

        A result that cannot be read (of another version, say) is one of infrastructure that says so; what
        else cannot be read is None. Both are named in the log.
        """
        key = events_key(run_id)
        with self._reachable():
            streams = self._redis.xread({key: after}, count=READ_COUNT, block=block_ms)
        for _, entries in streams:
            for entry_id, fields in entries:
                yield entry_id.decode(), _read(run_id, fields, f"{key} {entry_id.decode()}")

    def _all(self, read: Callable[[object, str], T], prefix: str) -> list[T]:
        """In order of their keys; what cannot be read is one host's affair and no reason to fail."""
        found: list[T] = []
        with self._reachable():
            for key in sorted(self._redis.scan_iter(match=f"{prefix}*")):
                try:
                    if text := self._redis.get(key):
                        found.append(read(text, key.decode("utf-8", "replace")))
                except WireError as e:
                    log.warning("left out", error=str(e))
        return found

    @contextmanager
    def _reachable(self) -> Generator[None]:
        try:
            yield
        except (OSError, redis.RedisError, OperationalError) as e:
            raise BrokerUnavailable(
                f"broker {shown(self.url)}: {e}. Results so far are on disk: start Redis again and complete "
                "the run with `tilefarm run --resume RUN_ID`"
            ) from e


def _read(run_id: str, fields: Mapping[bytes, bytes], where: str) -> Trial | Progress | None:
    device_id, key = (fields.get(name, b"").decode("utf-8", "replace") for name in (b"device", b"key"))
    try:
        if b"trial" not in fields:
            return unpack(Progress, fields.get(b"progress"), where)
        trial = unpack(Trial, fields[b"trial"], where)
        if trial.key != key:
            raise WireError(f"{where}: a result of {trial.key} that lies under {key}")
    except WireError as e:
        log.warning("not read", key=key, error=str(e))
        try:
            return unreadable_trial(run_id, device_id, key, f"its result cannot be read: {e}")
        except ValueError:  # news, or nothing of ours
            return None
    return trial

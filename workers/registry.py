"""A worker's registration in Redis: renewed while the worker lives, gone soon after it dies."""

import os
import threading
import time
import uuid
from collections.abc import Callable

import redis
import structlog

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.device_check import read_registration
from orchestrator.domain.errors import InfraError, WireError
from orchestrator.domain.event import Registration
from orchestrator.domain.moment import utc_now
from orchestrator.domain.names import DEVICE_KEY_PREFIX, HEARTBEAT_S, REGISTRATION_TTL_S, device_key
from orchestrator.domain.wire import pack
from orchestrator.storage.own_key import GIVE_BACK, KEEP
from orchestrator.storage.redis_client import SCAN_COUNT, RedisClient

TAKE_OVER_S = REGISTRATION_TTL_S + 2 * HEARTBEAT_S
"""What a killed worker leaves behind has ended by then."""
POLL_S = 0.2
log = structlog.get_logger()


class AlreadyServed(InfraError):
    """Another worker has the device: it is well, and nothing needs to be recovered."""

    def __init__(self, other: Registration) -> None:
        super().__init__(
            f"{other.record.device_id} is served by process {other.pid} on {other.record.host} since "
            f"{other.started_at}; end that worker first"
        )


def registrations(client: RedisClient, known: dict[bytes, Registration] | None = None) -> list[Registration]:
    """Of all living workers; one that cannot be read (a worker of another version) is named in the log.

    Args:
        known: registrations by their text, for who asks again and again: a text that is there is not decoded
            once more, and afterwards it holds those of now. With 200 phones, decoding is what asking costs.
    """
    names = [
        key.decode("utf-8", "replace")
        for key in client.scan_iter(match=f"{DEVICE_KEY_PREFIX}*", count=SCAN_COUNT)
    ]
    texts = client.mget(names) if names else []
    found: dict[bytes, Registration] = {}
    for name, text in zip(names, texts, strict=True):
        try:
            if text is not None:
                found[text] = (known or {}).get(text) or read_registration(text, name)
        except WireError as e:
            log.warning("registration not read", error=str(e))
    if known is not None:
        known.clear()
        known.update(found)
    return list(found.values())


def await_unserved(
    client: RedisClient,
    serves: Callable[[Registration], bool],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Until no worker serves a device, before it is asked anything.

    Raises:
        AlreadyServed: a living worker does; one that was killed is gone after some seconds.
    """
    deadline = clock() + TAKE_OVER_S
    while (other := next((r for r in registrations(client) if serves(r)), None)) is not None:
        if clock() > deadline:
            raise AlreadyServed(other)
        sleep(POLL_S)


class Heartbeat:
    """Keeps ``tilefarm:device:ID`` alive from a thread of its own, also while a batch runs."""

    def __init__(
        self, client: RedisClient, record: DeviceRecord, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._clock = clock
        self._renew = client.register_script(KEEP)
        self._release = client.register_script(GIVE_BACK)
        self.registration = Registration(
            record=record,
            worker_id=uuid.uuid4().hex,
            started_at=utc_now(),
            pid=os.getpid(),
        )
        self._key = device_key(record.device_id)
        self._text = pack(self.registration)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Register, once no other worker is registered for the device.

        A worker that was killed leaves its registration behind for a few seconds: wait that long.

        Raises:
            AlreadyServed: a living worker serves the device.
        """
        deadline = self._clock() + TAKE_OVER_S
        while not self._client.set(self._key, self._text, ex=REGISTRATION_TTL_S, nx=True):
            held = self._client.get(self._key)
            if held is not None and self._clock() > deadline:
                raise AlreadyServed(read_registration(held, self._key))
            self._stop.wait(POLL_S)
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing and take the registration back."""
        self._stop.set()
        self._thread.join(timeout=HEARTBEAT_S * 2)
        try:
            self._release(keys=[self._key], args=[self._text])
        except redis.RedisError as e:
            log.warning("registration not taken back; it ends by itself", error=str(e))

    def renew(self) -> bool:
        """One beat; False when another worker has registered for the device meanwhile."""
        return self._renew(keys=[self._key], args=[self._text, REGISTRATION_TTL_S]) == 1

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            try:
                if not self.renew():
                    log.error("another worker serves this device now; end one of them", key=self._key)
            except redis.RedisError as e:
                # The broker may be restarting; the next beat tries again.
                log.warning("heartbeat failed", error=str(e))

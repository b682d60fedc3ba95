"""A worker's registration in Redis: renewed while the worker lives, gone soon after it dies."""

import os
import threading
import time
import uuid
from datetime import UTC, datetime

import redis
import structlog

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import InfraError
from orchestrator.domain.event import Registration
from orchestrator.domain.names import HEARTBEAT_S, REGISTRATION_TTL_S, device_key
from orchestrator.domain.wire import from_json, to_json
from orchestrator.storage.redis_client import RedisClient

log = structlog.get_logger()


class Heartbeat:
    """Keeps ``tilefarm:device:ID`` alive from a thread of its own, also while a batch runs."""

    def __init__(self, client: RedisClient, record: DeviceRecord) -> None:
        self._client = client
        self.registration = Registration(
            record=record,
            worker_id=uuid.uuid4().hex,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            pid=os.getpid(),
        )
        self._key = device_key(record.device_id)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Register, once no other worker is registered for the device.

        A worker that was killed leaves its registration behind for a few seconds: wait that long.

        Raises:
            InfraError: a living worker serves the device.
        """
        deadline = time.monotonic() + REGISTRATION_TTL_S + 2 * HEARTBEAT_S
        while not self._client.set(self._key, to_json(self.registration), ex=REGISTRATION_TTL_S, nx=True):
            if time.monotonic() > deadline:
                other = from_json(Registration, self._client.get(self._key) or b"{}", self._key)
                raise InfraError(
                    f"{self.registration.record.device_id} is served by process {other.pid} on "
                    f"{other.record.host} since {other.started_at}; end that worker first"
                )
            self._stop.wait(0.2)
        self._thread.start()

    def stop(self) -> None:
        """Stop renewing and take the registration back."""
        self._stop.set()
        self._thread.join(timeout=HEARTBEAT_S * 2)
        try:
            self._client.delete(self._key)
        except redis.RedisError as e:
            log.warning("registration not taken back; it ends by itself", error=str(e))

    def _beat(self) -> None:
        while not self._stop.wait(HEARTBEAT_S):
            try:
                self._renew()
            except redis.RedisError as e:
                # The broker may be restarting; the next beat tries again.
                log.warning("heartbeat failed", error=str(e))

    def _renew(self) -> None:
        self._client.set(self._key, to_json(self.registration), ex=REGISTRATION_TTL_S)

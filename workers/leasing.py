"""A worker's lease of its device while a batch runs: claimed, renewed from a thread, noticed when lost."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import redis
import structlog

from orchestrator.domain.errors import InfraError, LeaseLost
from orchestrator.domain.lease import Hold, Lease
from orchestrator.domain.names import LEASE_RENEW_S, LEASE_TTL_S
from orchestrator.storage.leases import Leases
from workers.patience import patiently

POLL_S = 0.2
MARGIN_S = 5.0
"""So long before its lease may end unseen a worker leaves the device: ending the runner there takes as much.
At most a third of the lease."""
NEWS_EVERY_S = 10.0
TAKEN = "leased by another worker"
log = structlog.get_logger()


class Held:
    """A lease that is being renewed. ``check`` is cheap and may be called for every line of output.

    Args:
        asked: when the claim was sent that was granted, of ``_now``: the lease began later.
    """

    def __init__(self, leases: Leases, lease: Lease, asked: float, ttl_s: float, renew_s: float) -> None:
        self.lease = lease
        self._leases = leases
        self._asked = asked
        self._ttl_s = ttl_s
        self._leave_s = ttl_s - min(MARGIN_S, ttl_s / 3)
        self._renew_s = renew_s
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises LeaseLost once somebody else has the device, or may have it: Redis has not answered for so
        long that the lease may have ended."""
        if self._lost.is_set():
            raise LeaseLost(f"{self.lease.device_id}: the lease was lost while the batch ran")
        if (silent := self._silent_s) >= self._leave_s:
            why = f"its lease was not renewed for {silent:.0f} s: Redis is away"
            raise LeaseLost(f"{self.lease.device_id}: left, as {why}")

    @property
    def renewed(self) -> bool:
        """Not so while Redis does not answer: what can be left unsaid must not wait for it then."""
        return self._silent_s < 2 * self._renew_s

    @property
    def _silent_s(self) -> float:
        """Since the last request that Redis granted."""
        return _now() - self._asked

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        with suppress(redis.RedisError):  # it ends by itself
            self._leases.end(self.lease)

    def _keep(self) -> None:
        try:
            self._renew_until_told()
        finally:
            if not self._stop.is_set():  # nobody renews it any more, for whatever reason
                self._lost.set()

    def _renew_until_told(self) -> None:
        while not self._stop.wait(self._renew_s):
            asked = _now()
            try:
                if not self._leases.renew(self.lease, self._ttl_s):
                    log.error("lease lost", device=self.lease.device_id)
                    return
                self._asked = asked
            except redis.RedisError as e:
                # Redis may be restarting. Whether the lease outlived that is for the next renewal to say.
                log.warning("lease not renewed", error=str(e))


@contextmanager
def leased(
    leases: Leases,
    device_id: str,
    holder: str,
    *,
    timeout_s: float,
    on_wait: Callable[[str], None] = lambda why: None,
    ttl_s: float = LEASE_TTL_S,
    renew_s: float = LEASE_RENEW_S,
) -> Generator[Held]:
    """Hold the device; ``on_wait`` is told now and then that another worker has it meanwhile.

    Raises:
        InfraError: not free within ``timeout_s``; at once where a person holds it, which may take days. Says
            who.
    """
    lease, asked = _claim(leases, device_id, holder, timeout_s, on_wait, ttl_s)
    held = Held(leases, lease, asked, ttl_s, renew_s)
    try:
        yield held
    finally:
        held.stop()


def _claim(
    leases: Leases,
    device_id: str,
    holder: str,
    timeout_s: float,
    on_wait: Callable[[str], None],
    ttl_s: float,
) -> tuple[Lease, float]:
    """The lease, and when it was asked for."""
    deadline, next_news = time.monotonic() + timeout_s, 0.0

    def claim() -> tuple[Lease | None, float]:
        asked = _now()
        return leases.claim(device_id, holder, ttl_s), asked

    while True:
        lease, asked = patiently("lease", claim)
        if lease is not None:
            return lease, asked
        if (hold := held_by(leases, device_id)) is not None:
            raise InfraError(f"{device_id} is {hold.sentence}")
        now = time.monotonic()
        if now >= next_news:
            on_wait(TAKEN)
            next_news = now + NEWS_EVERY_S
        if now >= deadline:
            raise InfraError(f"{device_id} is {TAKEN}")
        time.sleep(POLL_S)  # Redis does not call us when a lease ends; the deadline above bounds the wait


def _now() -> float:
    """Seconds that go on while the host sleeps, as they do in Redis."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def held_by(leases: Leases, device_id: str) -> Hold | None:
    """The person's hold of a device; a Redis that is away says nothing of one."""
    try:
        return leases.held(device_id)
    except redis.RedisError as e:
        log.warning("whether somebody holds the device is not known", device=device_id, error=str(e))
        return None

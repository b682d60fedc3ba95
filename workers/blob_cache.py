"""Blobs on a device, by their digest: what a batch lacks is pushed, what was not used for longest makes room.

The runner sets a blob's modification time when it reads it, so that the device itself knows what was used
when: through reboots, from other hosts, and without a call a batch. A wrong clock there changes the order of
what goes first, and nothing else: blobs of the batch itself are never removed.
"""

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress

from orchestrator.domain.errors import InfraError, NoSpace
from workers.bench import CALL_TIMEOUT_S, PUSH_TIMEOUT_S, Bench

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
SPARE = 8
"""One part in so many of the quota is freed beyond what is needed, so that not every batch removes a few."""


class BlobCache:
    """Of one device during one batch; nobody else writes there meanwhile."""

    def __init__(self, bench: Bench, needed: Collection[str]) -> None:
        self.folder = f"{bench.device.workdir}/blobs"
        self._bench = bench
        self._device = bench.device
        self._needed = frozenset(needed)
        self._there: dict[str, int] = {}
        self._oldest: list[str] | None = None

    def fill(self, blobs: Callable[[Iterable[str]], Iterable[tuple[str, bytes]]]) -> None:
        """Push what is needed and not there.

        Args:
            blobs: reads blobs; gives digest and bytes of each.

        Raises:
            NoSpace: there is no room even without any blob of other batches.
            InfraError: the device or the store fails.
        """
        self._look()
        if sum(self._there.values()) > self._bench.blob_quota:
            self._make_room(0)
        for digest, data in blobs(sorted(self._needed - self._there.keys())):
            over = sum(self._there.values()) + len(data) - self._bench.blob_quota
            if over > 0:
                self._make_room(over)
            self._push(digest, data)

    def make_room(self, wanted_bytes: int | None) -> None:
        """Remove at least so much, as far as the blobs of other batches give it; None: all of them.

        Raises:
            InfraError: the device does not do it.
        """
        self._look()
        spare = self._bench.blob_quota // SPARE
        self._remove(self._oldest_until(None if wanted_bytes is None else wanted_bytes + spare))

    def _push(self, digest: str, data: bytes) -> None:
        path = f"{self.folder}/{digest}"
        for wanted in (len(data), None):  # the oldest first; then everything that this batch can do without
            try:
                self._device.push(data, path, timeout_s=PUSH_TIMEOUT_S)
                break
            except NoSpace:
                self._remove(self._oldest_until(wanted))
        else:
            self._device.push(data, path, timeout_s=PUSH_TIMEOUT_S)
        self._there[digest] = len(data)

    def _look(self) -> None:
        """What is there; what no batch can use, such as half a push of a worker that was killed, goes now."""
        self._there = dict(self._device.list_dir(self.folder, timeout_s=CALL_TIMEOUT_S))
        self._remove([name for name in self._there if not _DIGEST.match(name)])

    def _make_room(self, wanted_bytes: int) -> None:
        over = max(wanted_bytes, sum(self._there.values()) - self._bench.blob_quota)
        self._remove(self._oldest_until(over + self._bench.blob_quota // SPARE))

    def _oldest_until(self, wanted_bytes: int | None) -> list[str]:
        """Names to remove for so many bytes; None: all that is not needed."""
        found: list[str] = []
        freed = 0
        for name in self._by_age():
            if wanted_bytes is not None and freed >= wanted_bytes:
                break
            if name not in self._needed:
                found.append(name)
                freed += self._there[name]
        return found

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._device.remove(f"{self.folder}/{name}", timeout_s=CALL_TIMEOUT_S)
            del self._there[name]

    def _by_age(self) -> list[str]:
        """What is there, oldest first; one that does not tell ages (Android 5) gives them in any order."""
        if self._oldest is None:
            self._oldest = _told(self._listing())
        ages = {name: age for age, name in enumerate(self._oldest)}
        return sorted(self._there, key=lambda name: ages.get(name, -1))

    def _listing(self) -> bytes:
        with suppress(InfraError):
            done = self._device.run(["ls", "-1tr", self.folder], timeout_s=CALL_TIMEOUT_S)
            return done.stdout if done.exit_code == 0 else b""
        return b""


def drop(bench: Bench, digests: Iterable[str]) -> None:
    """Blobs that the runner refused as damaged: the next batch pushes them again.

    Raises:
        InfraError: the device does not do it.
    """
    for digest in digests:
        bench.device.remove(f"{bench.device.workdir}/blobs/{digest}", timeout_s=CALL_TIMEOUT_S)


def _told(listing: bytes) -> list[str]:
    return listing.decode("ascii", "replace").split()

"""A run that somebody handed in for the orchestrator to carry out, and the service that does."""

import re
from dataclasses import dataclass

from orchestrator.domain.errors import WireError
from orchestrator.domain.limits import plain_store
from orchestrator.domain.names import Lane

MANIFEST_BYTES = 512 * 2**20
"""Of a submitted manifest: 200 phones with 1,000 cases each come to about half of that."""
_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[A-Za-z0-9._-]{1,60}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Submission:
    run_id: str
    suite: str
    user: str
    """Who asks; the run counts as theirs."""
    lane: Lane
    submitted_at: str
    """UTC, ISO 8601, to the millisecond: runs of one lane begin in this order."""
    host: str
    """Where it was prepared."""
    blob_store: str
    """fsspec URL of the store with everything that the run needs."""
    manifest: str
    """Digest of the run's manifest there."""
    known: str = ""
    """Digest of trials that need no device (a shader that does not compile), one JSON a line; empty: none."""

    def check(self, where: str) -> None:
        """Its id becomes a folder's name, its digests become paths of a store, which is opened by its URL.

        Raises:
            WireError: one of them is none.
        """
        if not is_run_id(self.run_id):
            raise WireError(f"{where}: {self.run_id[:80]!r} is no run id (YYYYMMDDTHHMMSSZ-SUITE-XXXX)")
        for digest in (self.manifest, *([self.known] if self.known else [])):
            if not _DIGEST.fullmatch(digest):
                raise WireError(f"{where}: {digest[:80]!r} is no sha256 digest")
        try:
            plain_store(self.blob_store)
        except ValueError as e:
            raise WireError(f"{where}: blob store {self.blob_store[:80]!r} {e}") from e


@dataclass(frozen=True, slots=True)
class Service:
    """A process that serves a farm, while its key is there."""

    name: str
    host: str
    pid: int
    started_at: str
    """UTC, ISO 8601."""
    out: str = ""
    """Of an orchestrator: the folder with its runs."""


def is_run_id(text: str) -> bool:
    """Fit for a folder's name: no path, no hidden file, sorted by time."""
    return _RUN_ID.fullmatch(text) is not None

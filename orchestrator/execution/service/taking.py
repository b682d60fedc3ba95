"""From a submission to a run's folder, and which ones this host has begun.

``OUT/submissions/RUN_ID.json`` is there from before the folder is made until the run has ended: by it a
service that starts finds what was begun, also when Redis has lost its data.
"""

import tempfile
from pathlib import Path

import structlog

from orchestrator.domain.errors import WireError
from orchestrator.domain.submission import MANIFEST_BYTES, Submission
from orchestrator.domain.trial import Trial
from orchestrator.domain.wire import from_json, to_json
from orchestrator.execution.run_folder import Manifest, RunFolder, write_atomically
from orchestrator.storage.blobs import BlobStore

log = structlog.get_logger()


def hand_in(folder: RunFolder, store: BlobStore) -> tuple[str, str]:
    """Store a prepared run; returns the digests of its manifest and of the trials that it has already.

    Raises:
        WireError: the manifest is too long for an orchestrator.
    """
    manifest = (folder.path / "manifest.json").read_bytes()
    if len(manifest) > MANIFEST_BYTES:
        raise WireError(
            f"the plan is too large to be submitted ({len(manifest)} bytes, at most {MANIFEST_BYTES}): "
            "submit a part of it (-k, --device), or use `tilefarm run`"
        )
    known = "".join(to_json(trial) + "\n" for trial in folder.trials().values())
    return store.put(manifest), store.put(known.encode()) if known else ""


class Taken:
    """Submissions that this host has begun, below its OUT."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._folder = out / "submissions"
        self._folder.mkdir(parents=True, exist_ok=True)

    def all(self) -> list[Submission]:
        """What was begun and has not ended; a file that cannot be read is named in the log."""
        found: list[Submission] = []
        for path in sorted(self._folder.glob("[0-9]*.json")):
            try:
                submission = from_json(Submission, path.read_bytes(), str(path))
                submission.check(str(path))
                found.append(submission)
            except (WireError, OSError) as e:
                log.warning("not gone on with", error=str(e))
        return found

    def made(self, run_id: str) -> bool:
        """Is the run's folder there, whole?"""
        return (self._out / "runs" / run_id / "manifest.json").is_file()

    def take(self, submission: Submission) -> None:
        """Make the run's folder, whole or not at all.

        Raises:
            WireError: what was submitted is of another version, or not what its submission says.
            InfraError: its blobs are missing, damaged or out of reach.
        """
        write_atomically(self._folder / f"{submission.run_id}.json", to_json(submission))
        path = self._out / "runs" / submission.run_id
        if self.made(submission.run_id):
            return
        store = BlobStore(submission.blob_store)
        where = f"{submission.run_id}: manifest {submission.manifest[:12]}"
        manifest = from_json(Manifest, store.get(submission.manifest, at_most=MANIFEST_BYTES), where)
        theirs = (manifest.planned.run.run_id, manifest.lane, manifest.user, manifest.blob_store)
        ours = (submission.run_id, submission.lane, submission.user, submission.blob_store)
        if theirs != ours:
            raise WireError(f"{where}: of another run, lane, user or blob store: {str(theirs)[:200]}")
        known = _known(submission, store)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".making-") as scratch:
            RunFolder.create(Path(scratch), manifest, known).path.rename(path)

    def forget(self, run_id: str) -> None:
        (self._folder / f"{run_id}.json").unlink(missing_ok=True)


def _known(submission: Submission, store: BlobStore) -> list[Trial]:
    if not submission.known:
        return []
    where = f"{submission.run_id}: trials {submission.known[:12]}"
    lines = store.get(submission.known, at_most=MANIFEST_BYTES).splitlines()
    trials = [from_json(Trial, line, f"{where}:{n}") for n, line in enumerate(lines, start=1)]
    if any(trial.run_id != submission.run_id for trial in trials):
        raise WireError(f"{where}: of another run")
    return trials

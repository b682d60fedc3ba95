"""A run's folder: the one store of runs until the history database, behind this module.

``out/runs/RUN_ID/`` holds ``manifest.json`` (what was planned, written before anything is dispatched),
``prepared.jsonl`` (jobs that were prepared while others ran already), ``trials.jsonl`` (each trial as it
came) and ``results.json`` (the whole, made from all of them). What is added to a log is synced to disk.
After kill -9 at any moment the folder can be read, and the run resumed.
"""

import fcntl
import os
import secrets
import tempfile
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from orchestrator.domain.errors import UsageError, WireError
from orchestrator.domain.job import CaseJob
from orchestrator.domain.precision import Precision
from orchestrator.domain.results import RESULTS_FORMAT, CaseInfo, Missing, RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import from_json, to_json
from orchestrator.execution.manifest import Manifest, Outcome

NOT_PREPARED = "its shaders and references were not made before the run ended"
PrecisionOf = Callable[[Sequence[Trial], Mapping[str, CaseInfo]], tuple[list[Precision], list[Missing]]]


@dataclass(frozen=True, slots=True)
class _Versioned:
    """The one field that every format of results.json has."""

    format: int


def new_run_id(suite: str, now: datetime | None = None) -> str:
    """Sorts by time; unique also for two runs in one second."""
    moment = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    return f"{moment}-{suite}-{secrets.token_hex(2)}"


class RunFolder:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def results_json(self) -> Path:
        return self.path / "results.json"

    @classmethod
    def create(cls, out: Path, manifest: Manifest, known: Sequence[Trial] = ()) -> "RunFolder":
        """A new run's folder with its manifest, on disk before anything is dispatched.

        Args:
            known: trials that need no device; on disk before the manifest, which has no jobs for them.
        """
        folder = cls(out / "runs" / manifest.planned.run.run_id)
        folder.path.mkdir(parents=True)
        if known:
            folder.append(known)
        write_atomically(folder.path / "manifest.json", to_json(manifest))
        return folder

    def manifest(self) -> Manifest:
        """With what was prepared since it was written."""
        path = self.path / "manifest.json"
        if not path.is_file():
            raise UsageError(f"{path}: missing; this run was never dispatched and cannot be resumed")
        manifest = from_json(Manifest, path.read_bytes(), str(path))
        return manifest.with_outcomes(self._prepared()) if manifest.unprepared else manifest

    def note_prepared(self, outcomes: Sequence[Outcome], refused: Sequence[Trial]) -> None:
        """On disk when this returns: trials of cases that no device sees, then jobs of the others."""
        if refused:
            self.append(refused)
        _append_lines(self.path / "prepared.jsonl", outcomes)

    def _prepared(self) -> Iterator[Outcome]:
        path = self.path / "prepared.jsonl"
        if path.is_file():
            for number, line in _whole_lines(path):
                yield from_json(Outcome, line, f"{path}:{number}")

    @contextmanager
    def only_one(self) -> Generator[None]:
        """Held by whoever carries the run out; ends with the process, however it ends.

        Raises:
            UsageError: another process carries it out.
        """
        with (self.path / "manifest.json").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"{self.path.name} is being carried out by another process") from None
            yield

    def append(self, trials: Iterable[Trial]) -> None:
        """Add trials; on disk when this returns."""
        _append_lines(self.path / "trials.jsonl", trials)

    def trials(self) -> dict[str, Trial]:
        """Every trial by key, all attempts; a last line cut by a crash is left out."""
        path = self.path / "trials.jsonl"
        found: dict[str, Trial] = {}
        if path.is_file():
            for number, line in _whole_lines(path):
                trial = from_json(Trial, line, f"{path}:{number}")
                found.setdefault(trial.key, trial)
        return found

    def unfinished(self) -> dict[str, list[CaseJob]]:
        """Target → jobs without a verdict about their kernel yet, as next attempts: what a resume runs."""
        trials = self.trials().values()
        attempts: dict[tuple[str, str], int] = {}
        for t in trials:
            key = (t.target, t.case_id)
            attempts[key] = max(attempts.get(key, 0), t.attempt)
        done = {(t.target, t.case_id) for t in trials if t.verdict is not Verdict.INFRA}
        return {
            target: [
                replace(job, attempt=attempts.get((target, job.case_id), 0) + 1)
                for job in jobs
                if (target, job.case_id) not in done
            ]
            for target, jobs in self.manifest().wanted.items()
        }

    def finish(
        self,
        previous_run: str,
        finished_at: str,
        lost: Mapping[tuple[str, str], str],
        precision_of: PrecisionOf | None = None,
        degraded: Sequence[str] = (),
    ) -> RunResults:
        """Write results.json from the manifest and the trials so far.

        Args:
            lost: (target, case) → why its result never came.
            precision_of: works out what each device delivers, from the trials that count.
            degraded: sentences of ``RunInfo.degraded``; those of an earlier end stay.
        """
        manifest = self.manifest()
        latest = last_attempts(self.trials().values())
        missing = [
            Missing(
                manifest.device_of(target),
                job.case_id,
                lost.get((target, job.case_id), "no result came back"),
            )
            for target, jobs in manifest.wanted.items()
            for job in jobs
            if (target, job.case_id) not in latest
        ]
        missing += [
            Missing(manifest.device_of(target), each.case_id, lost.get((target, each.case_id), NOT_PREPARED))
            for target, waiting in manifest.unprepared.items()
            for each in waiting
        ]
        planned = manifest.planned
        found: list[Precision] = []
        if precision_of is not None:
            found, unread = precision_of(list(latest.values()), planned.cases)
            missing += unread
        stood_in = {trial.device_id for trial in latest.values()}
        results = replace(
            planned,
            devices=[*planned.devices, *(d for d in manifest.reserve if d.device_id in stood_in)],
            run=replace(
                planned.run,
                finished_at="" if missing else finished_at,
                degraded=list(dict.fromkeys([*self._degraded_before(), *degraded])),
            ),
            trials=list(latest.values()),
            missing=[*planned.missing, *missing],
            precision=found,
            previous_run=previous_run,
        )
        write_atomically(self.results_json, to_json(results))
        return results

    def _degraded_before(self) -> list[str]:
        """What an earlier end of this run told: the farm forgets it after a week."""
        with suppress(UsageError):
            return load_results(self.path).run.degraded
        return []


def last_attempts(trials: Iterable[Trial]) -> dict[tuple[str, str], Trial]:
    """(target, case) → its trial that counts: the last attempt, but never ``infra`` over a real verdict."""
    latest: dict[tuple[str, str], Trial] = {}
    for trial in sorted(trials, key=lambda t: (t.verdict != Verdict.INFRA, t.attempt)):
        latest[trial.target, trial.case_id] = trial
    return latest


def load_results(path: Path) -> RunResults:
    """results.json of a run's folder or the file itself.

    Raises:
        UsageError: missing, of another format or damaged.
    """
    file = path / "results.json" if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"{file}: no such run; `ls out/runs` shows what there is")
    text = file.read_bytes()
    try:
        found = from_json(_Versioned, text, str(file)).format
        if found != RESULTS_FORMAT:
            raise UsageError(f"{file}: results of format {found}; this Tilefarm reads {RESULTS_FORMAT}")
        return from_json(RunResults, text, str(file))
    except WireError as e:
        raise UsageError(str(e)) from e


def find_run(out: Path, name: str) -> Path:
    """The folder of a run id, of ``latest``, or of a path."""
    for candidate in (out / "runs" / name, out / name, Path(name)):
        if any(p.is_file() for p in (candidate, candidate / "manifest.json", candidate / "results.json")):
            return candidate.resolve()
    known = sorted(p.name for p in (out / "runs").glob("*"))[-3:]
    newest = ", ".join(known) or "none"
    raise UsageError(f"run {name!r} is neither in {out / 'runs'} nor a path; newest: {newest}")


RECENT_RUNS = 20
"""How far back a run looks for one to compare itself with."""


def previous_results(
    out: Path, suite: str, before: str, wanted: Collection[tuple[str, str]] | None = None
) -> RunResults | None:
    """The complete run of the suite before run id ``before`` to compare with, and to plan from.

    Of the recent ones that have trials: the newest that holds most of the ``wanted`` (device, case) pairs;
    without ``wanted`` the newest of a whole suite, else the newest. A run of a selection in between, such as
    a repro command, does not hide the last whole run.
    """
    best: RunResults | None = None
    best_score = 0
    for results in _recent(out, suite, before):
        if wanted is None:
            score = 2 if results.run.whole_suite else 1
        else:
            score = len({(t.device_id, t.case_id) for t in results.trials}.intersection(wanted))
        if score > best_score:
            best, best_score = results, score
    return best


def _recent(out: Path, suite: str, before: str) -> Iterator[RunResults]:
    """Complete runs with trials, newest first."""
    names = sorted((p.name for p in (out / "runs").glob("*") if p.name < before), reverse=True)
    found = 0
    for name in names:
        if not (out / "runs" / name / "results.json").is_file():
            continue
        try:
            results = load_results(out / "runs" / name)
        except UsageError:
            continue  # of a format that this version does not read: not comparable
        if results.run.suite == suite and results.run.finished_at and results.trials:
            yield results
            found += 1
        if found == RECENT_RUNS:
            return


def point_latest(out: Path, run_id: str) -> Path:
    """Let ``out/latest`` point to the run, in one step."""
    link = out / "latest"
    fresh = out / f".latest-{secrets.token_hex(4)}"
    fresh.symlink_to(Path("runs") / run_id)
    fresh.replace(link)
    return link


def write_atomically(path: Path, text: str) -> None:
    """Write, sync, rename: readers see the old file or the new one, never half."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _append_lines(path: Path, values: Iterable[object]) -> None:
    """Synced to disk."""
    text = "".join(to_json(value) + "\n" for value in values)
    with path.open("a+b") as file:
        _drop_torn_line(file)
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _drop_torn_line(file: BinaryIO) -> None:
    """Cut off a last line that a crash left unfinished: the next one would be joined to it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if size and file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _whole_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if line.endswith(b"\n"):
            yield number, line

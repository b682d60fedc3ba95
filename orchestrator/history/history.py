"""The history of a farm: one ingester puts finished runs in, everybody reads.

``OUT/history/runs/`` holds the trial files, the database says which of them count. A run is in the history
once its row is committed, which happens after its file is on disk; what a crash leaves between the two is a
file that nobody refers to, and storing the run again is the whole repair.
"""

import fcntl
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sqlalchemy import delete, select

from orchestrator.analysis.speed.rows import Floats
from orchestrator.domain.errors import InfraError, UsageError
from orchestrator.domain.moment import utc_now
from orchestrator.domain.results import RunResults
from orchestrator.history import trial_files
from orchestrator.history.baselines import Baselines
from orchestrator.history.database import (
    Database,
    DeviceRun,
    KnownCase,
    KnownDevice,
    Sentinel,
    StoredRun,
)
from orchestrator.history.trial_rows import COLUMNS, SAMPLES, SUMMARY, ordered, rows_of

VERDICT_COLUMNS = {"device_id": "name", "case_id": "text", "speed": "small", "accepted": "flag"}
SECOND = "second"
"""Column of verdicts: what the second look said of a series (JSON); there in nights that know of one."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that `tilefarm db check` found."""

    what: str
    why: str
    repair: str
    """What to do about it, as a command or a sentence."""


class History:
    """
    Raises:
        UsageError, InfraError: the database cannot be used (``Database``).
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.database = Database(url)
        self.baselines = Baselines(self.database)
        self.folder = folder
        self.files = folder / "runs"
        self.verdict_files = folder / "verdicts"
        self._proven: set[tuple[str, int, int]] = set()
        """Files that had their digest, by name, time and size: several readers of one night ask for them."""

    def close(self) -> None:
        self.database.close()

    def store(self, results: RunResults, usual_hz: Mapping[tuple[str, str], float] | None = None) -> bool:
        """Put a run in, or in the place of what was known of it; False where it is in already, as it is.

        Args:
            usual_hz: (device, case) → clock of the series in its baseline.

        Raises:
            UsageError: the run has no trials.
        """
        run = results.run
        if not results.trials:
            raise UsageError(f"run {run.run_id}: it has no trials to keep")
        with self._alone():
            rows = rows_of(results, _usual(results, usual_hz))
            if self._has(run.run_id, rows):
                return False
            name, digest = trial_files.write(self.files, run.run_id, COLUMNS, rows)
            with self.database.session() as session:
                before = session.get(StoredRun, run.run_id)
                if before is not None and before.sha256 == digest:
                    return False
                old = before.file if before is not None else ""
                old_verdicts = before.verdicts if before is not None else ""
                session.merge(
                    StoredRun(
                        run_id=run.run_id,
                        suite=run.suite,
                        night=run.night,
                        started_at=run.started_at,
                        finished_at=run.finished_at,
                        whole_suite=run.whole_suite and not self._leaves_out(results),
                        host=run.host,
                        commit=run.commit,
                        tilefarm=run.tilefarm,
                        file=name,
                        sha256=digest,
                        rows=len(rows),
                        stored_at=utc_now(),
                        samples_until="",
                        verdicts="",  # other results, other verdicts
                        verdicts_sha256="",
                        compiler=run.compiler,
                    )
                )
                session.flush()
                session.execute(delete(DeviceRun).where(DeviceRun.run_id == run.run_id))
                for device in results.devices:
                    known = session.get(KnownDevice, device.device_id)
                    session.merge(
                        KnownDevice(
                            device_id=device.device_id,
                            soc=device.soc.name,
                            vendor=device.soc.vendor,
                            model=device.soc.model,
                            name=device.name,
                            virtual=device.virtual,
                            first_run=min(known.first_run, run.run_id) if known else run.run_id,
                            last_run=max(known.last_run, run.run_id) if known else run.run_id,
                        )
                    )
                    session.flush()
                    session.add(
                        DeviceRun(
                            run_id=run.run_id,
                            device_id=device.device_id,
                            drivers={p.api: p.driver_text for p in device.profiles},
                            os_build=device.os_build,
                            host=device.host,
                            serial=device.serial,
                        )
                    )
                known_cases = set(session.scalars(select(KnownCase.case_id)))
                session.add_all(
                    KnownCase(
                        case_id=case_id,
                        kernel=info.case.kernel,
                        op=info.case.op,
                        workload_id=info.case.workload_id,
                        label=info.case.label,
                        workload=dict(info.case.workload),
                        axes=dict(info.case.axes),
                        inputs=info.case.inputs,
                        role=info.role,
                    )
                    for case_id, info in results.cases.items()
                    if case_id not in known_cases
                )
            if old and old != name:
                (self.files / old).unlink(missing_ok=True)
            if old_verdicts:
                (self.verdict_files / old_verdicts).unlink(missing_ok=True)
        return True

    def _has(self, run_id: str, rows: Sequence[Mapping[str, object]]) -> bool:
        """Whole, and of the same measurements: what was summed up, judged or dropped since stays so."""
        with self.database.session() as session:
            run = session.get(StoredRun, run_id)
            if run is None or trial_files.check(self.path(run), run.sha256):
                return False
            measured = {name: kind for name, kind in COLUMNS.items() if name not in SUMMARY}
            return trial_files.holds(self.path(run), measured, rows)

    def runs(self, suite: str = "") -> list[StoredRun]:
        """Oldest first; all suites where none is named."""
        with self.database.session() as session:
            query = select(StoredRun).order_by(StoredRun.started_at, StoredRun.run_id)
            found = list(session.scalars(query.where(StoredRun.suite == suite) if suite else query))
            session.expunge_all()
            return found

    def path(self, run: StoredRun) -> Path:
        return self.files / run.file

    def store_verdicts(self, run_id: str, rows: Sequence[Mapping[str, object]]) -> None:
        """What a night said of each series (``VERDICT_COLUMNS``); in the place of what it said before."""
        with self._alone():
            columns = VERDICT_COLUMNS | ({SECOND: "text"} if any(SECOND in row for row in rows) else {})
            name, digest = trial_files.write(self.verdict_files, run_id, columns, rows)
            with self.database.session() as session:
                run = session.get_one(StoredRun, run_id)
                old, run.verdicts, run.verdicts_sha256 = run.verdicts, name, digest
            if old and old != name:
                (self.verdict_files / old).unlink(missing_ok=True)

    def verdict_path(self, run: StoredRun) -> Path:
        """Of a run that was judged (``run.verdicts``)."""
        return self.verdict_files / run.verdicts

    def damage(self, run: StoredRun) -> str:
        """What is wrong with a run's files; empty: nothing."""
        if why := self._flaw(self.path(run), run.sha256):
            return f"{run.file} is {why}"
        if run.verdicts and (why := self._flaw(self.verdict_path(run), run.verdicts_sha256)):
            return f"{run.verdicts} is {why}"
        return ""

    def _flaw(self, path: Path, sha256: str) -> str:
        try:
            found = path.stat()
        except OSError:
            return trial_files.check(path, sha256)
        key = (path.name, found.st_mtime_ns, found.st_size)
        if key in self._proven:
            return ""
        if not (why := trial_files.check(path, sha256)):
            self._proven.add(key)
        return why

    def _leaves_out(self, results: RunResults) -> bool:
        """It named devices (``--device``) and left out some of the suite's last whole run. The run of a night
        is whole whatever it names, and so is each one of a suite that is only ever run on these devices."""
        run = results.run
        if run.night or not run.wanted:
            return False
        whole = [r.run_id for r in self.runs(run.suite) if r.whole_suite and r.run_id < run.run_id]
        there = {d.device_id for d in results.devices}
        return any(device not in there for _, device in self.environments(whole[-1:]))

    def environments(self, run_ids: Sequence[str]) -> dict[tuple[str, str], str]:
        """(run, device) → OS build."""
        with self.database.session() as session:
            query = select(DeviceRun).where(DeviceRun.run_id.in_(run_ids))
            return {(d.run_id, d.device_id): d.os_build for d in session.scalars(query)}

    def socs(self, device_ids: Collection[str]) -> dict[str, str]:
        """Of devices that were in some run."""
        with self.database.session() as session:
            query = select(KnownDevice).where(KnownDevice.device_id.in_(device_ids))
            return {d.device_id: d.soc for d in session.scalars(query)}

    def sentinels(self) -> dict[str, list[str]]:
        """Device → its frozen cases."""
        found: dict[str, list[str]] = {}
        with self.database.session() as session:
            for sentinel in session.scalars(select(Sentinel).order_by(Sentinel.case_id)):
                found.setdefault(sentinel.device_id, []).append(sentinel.case_id)
        return found

    def freeze(self, device_id: str, case_ids: Sequence[str], run_id: str) -> None:
        with self.database.session() as session:
            for case_id in case_ids:
                session.merge(Sentinel(device_id=device_id, case_id=case_id, chosen_in=run_id))

    def check(self) -> list[Fault]:
        """Every file against the database, and the other way round. What is found is looked at again while
        nobody stores: a run that is just put in has a file before it has a row."""
        if not self._faults():
            return []
        with self._alone():
            return self._faults()

    def _faults(self) -> list[Fault]:
        runs = {run.file: run for run in self.runs()}
        faults = [fault for run in runs.values() if (fault := self._fault(run)) is not None]
        faults += [
            Fault(
                f"verdicts of run {run.run_id}", f"{run.verdicts} is {why}", f"tilefarm report {run.run_id}"
            )
            for run in runs.values()
            if run.verdicts
            and (why := trial_files.check(self.verdict_files / run.verdicts, run.verdicts_sha256))
        ]
        known = {run.run_id for run in runs.values()}
        return faults + [_stray_fault(path, known) for path in sorted(self._strays(list(runs.values())))]

    def compact(self) -> list[str]:
        """Remove files that no run refers to; returns their names. Whole files of runs that the database does
        not know are left: with another database than the farm's, those are all nights that there are."""
        with self._alone():
            runs = self.runs()
            known = {run.run_id for run in runs}
            strays = [path for path in self._strays(runs) if not _stranger(path, known)]
            for path in strays:
                path.unlink()
        return sorted(p.name for p in strays)

    def drop_samples(self, before: str) -> tuple[list[str], list[Fault]]:
        """Retention: raw samples of runs that started before ``before`` (UTC, ISO 8601) go, summaries stay.
        Pinned runs keep theirs.

        Returns:
            Run ids, and files that were left as they are: a damaged one must not get a digest that is right.
        """
        dropped: list[str] = []
        faults: list[Fault] = []
        columns = {name: kind for name, kind in COLUMNS.items() if name not in SAMPLES}
        with self._alone():
            for run in self.runs():
                if run.started_at >= before or run.samples_until or self._is_pinned(run.run_id):
                    continue
                if (fault := self._fault(run)) is not None:
                    faults.append(fault)
                    continue
                rows = trial_files.read(self.path(run), list(columns))
                name, digest = trial_files.write(self.files, run.run_id, columns, rows)
                with self.database.session() as session:
                    stored = session.get_one(StoredRun, run.run_id)
                    stored.file, stored.sha256, stored.samples_until = name, digest, utc_now()
                self.path(run).unlink()
                dropped.append(run.run_id)
        return dropped, faults

    def _fault(self, run: StoredRun) -> Fault | None:
        """Of its trials."""
        why = trial_files.check(self.path(run), run.sha256)
        if not why:
            return None
        return Fault(f"run {run.run_id}", f"{run.file} is {why}", f"tilefarm db store {run.run_id}")

    def _strays(self, runs: Sequence[StoredRun]) -> list[Path]:
        known = {run.file for run in runs} | {run.verdicts for run in runs}
        return [
            p for folder in (self.files, self.verdict_files) for p in folder.glob("*") if p.name not in known
        ]

    def _is_pinned(self, run_id: str) -> bool:
        return run_id in self.baselines.pinned().values()

    @contextmanager
    def _alone(self) -> Generator[None]:
        """One ingester a history; waits for another one, and ends with the process, however it ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            file = (self.folder / ".lock").open("ab")
        except OSError as e:
            raise InfraError(f"{self.folder}: {e.strerror}. Correct TILEFARM_OUT or its rights") from e
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _stranger(stray: Path, known: Collection[str]) -> str:
    """Run id of a whole file whose run is not ``known``; empty: it is none."""
    run_id = stray.name.rpartition("-")[0]
    if run_id in known or stray.name.startswith("."):
        return ""
    try:
        trial_files.format_of(stray)
    except InfraError:
        return ""
    return run_id


def _stray_fault(stray: Path, known: Collection[str]) -> Fault:
    if run_id := _stranger(stray, known):
        why = "no run refers to it, and the database does not know its run: a crash, or another database"
        return Fault(stray.name, why, f"check TILEFARM_DATABASE, then tilefarm db store {run_id}")
    return Fault(
        stray.name, "no run refers to it: a crash, or a later result of its run", "tilefarm db compact"
    )


def _usual(results: RunResults, usual_hz: Mapping[tuple[str, str], float] | None) -> Floats | None:
    if not usual_hz:
        return None
    trials = ordered(results)
    return np.array([usual_hz.get((t.device_id, t.case_id), np.nan) for t in trials], np.float64)

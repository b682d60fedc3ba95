"""The folder of decisions, ``SUITE/20261202T091400Z-4e11d3a3.yaml``: a file for each.

Two people who decide in two branches write two files, and git has nothing to merge; a conflict is left to
those who change one decision. A person may edit and remove files. Whoever writes holds the folder meanwhile.
"""

import fcntl
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from orchestrator.domain.errors import FilesError, InfraError
from orchestrator.execution.run_folder import write_atomically
from orchestrator.planning.yaml_tree import Problem
from orchestrator.triage.decision import Decision, Subject, moment
from orchestrator.triage.reader import MAX_BYTES, read_decision
from orchestrator.triage.writer import file_text


class TriageError(FilesError):
    """Of a folder of decisions."""


class TriageFolder:
    """Decisions about one suite's findings.

    Args:
        folder: of all suites; one that is not there holds no decision.
    """

    def __init__(self, folder: Path, suite: str) -> None:
        self.folder = folder
        self.suite = suite
        self.path = folder / suite

    def load(self) -> list[Decision]:
        """
        Raises:
            TriageError: all that is wrong, one ``FILE:LINE: where: what`` each.
        """
        found, problems = self.load_what_can_be()
        if problems:
            raise TriageError(problems)
        return found

    def load_what_can_be(self) -> tuple[list[Decision], list[str]]:
        """Decisions of the files that are in order, and what is wrong with the others: a night is judged all
        the same."""
        decisions: list[Decision] = []
        problems: list[str] = []
        seen: dict[str, str] = {}
        for path in sorted(self.path.glob("*.yaml")):
            found, wrong = _read(path)
            if found is not None and not wrong:
                wrong = _twice(found, seen)
            problems += [p.render(str(path)) for p in sorted(wrong, key=lambda p: p.line)]
            if found is None or wrong:
                continue
            seen |= {s.finding_id: f"{path.name}:{s.line}" for s in found.subjects}
            decisions.append(replace(found, file=path.name))
        return decisions, problems

    def put(self, decision: Decision) -> list[Path]:
        """Write a decision in the place of what was decided about its findings; returns the files changed.

        Raises:
            TriageError: the files that are there are not in order; nothing was written.
            InfraError: the folder cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with _alone(self.path):
                return self._put(decision)
        except OSError as e:
            raise InfraError(
                f"{self.path}: {e.strerror}. Correct TILEFARM_TRIAGE, or the folder's rights"
            ) from e

    def _put(self, decision: Decision) -> list[Path]:
        ids = [s.finding_id for s in decision.subjects]
        before = self.load()
        path = self._new_path(decision)
        # First the new word: killed here, a finding is decided twice, which is said, and not forgotten.
        write_atomically(path, file_text(self.suite, decision))
        changed = [path]
        for old in before:
            left = old.without(ids)
            if left == old:
                continue
            there = self.path / old.file
            changed.append(there)
            if left.subjects:
                write_atomically(there, file_text(self.suite, left))
            else:
                there.unlink()
        return changed

    def _new_path(self, decision: Decision) -> Path:
        when = f"{moment(decision.decided):%Y%m%dT%H%M%SZ}"
        stem = f"{when}-{min(s.finding_id for s in decision.subjects)[:8]}"
        names = (f"{stem}.yaml", *(f"{stem}-{n}.yaml" for n in range(2, 100)))
        return next(path for name in names if not (path := self.path / name).exists())


def by_finding(decisions: Iterable[Decision]) -> dict[str, tuple[Decision, Subject]]:
    """Finding id → what was decided about it."""
    return {s.finding_id: (d, s) for d in decisions for s in d.subjects}


def _read(path: Path) -> tuple[Decision | None, list[Problem]]:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as e:
        return None, [Problem(1, "", f"cannot be read: {e.strerror}")]
    return read_decision(data)


def _twice(found: Decision, seen: Mapping[str, str]) -> list[Problem]:
    return [
        Problem(s.line, s.finding_id, f"decided twice, first in {seen[s.finding_id]}. Remove one")
        for s in found.subjects
        if s.finding_id in seen
    ]


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Ends with the process, however it ends; leaves no file that git would see."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

"""The folder of decisions: ``SUITE/2026-12.yaml``, a file for each month in which somebody decided.

A person may edit and remove files; git merges them. Whoever writes holds the folder for that moment.
"""

import fcntl
import os
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from orchestrator.domain.errors import InfraError, TilefarmError
from orchestrator.execution.run_folder import write_atomically
from orchestrator.planning.yaml_tree import Problem
from orchestrator.triage.decision import Decision, Subject
from orchestrator.triage.reader import MAX_BYTES, read_decisions
from orchestrator.triage.writer import file_text

_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])(-[a-z0-9-]+)?")


class TriageError(TilefarmError):
    """Everything that is wrong with the files of a folder, in one go."""

    exit_code = 2

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


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
            name = str(path)
            if not wrong:
                wrong = _twice(found, seen)
            if wrong:
                problems += [p.render(name) for p in sorted(wrong, key=lambda p: p.line)]
                continue
            seen |= {s.finding_id: f"{path.name}:{s.line}" for d in found for s in d.subjects}
            decisions += found
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
        after = [d.without(ids) for d in before] + [replace(decision, month=decision.decided[:7])]
        old, new = _by_month(before), _by_month(after)
        changed = [m for m in sorted({*old, *new}) if old.get(m) != new.get(m)]
        for month in changed:
            path = self.path / f"{month}.yaml"
            if new.get(month):
                write_atomically(path, file_text(self.suite, new[month]))
            else:
                path.unlink()
        return [self.path / f"{month}.yaml" for month in changed]


def by_finding(decisions: Iterable[Decision]) -> dict[str, tuple[Decision, Subject]]:
    """Finding id → what was decided about it."""
    return {s.finding_id: (d, s) for d in decisions for s in d.subjects}


def _by_month(decisions: Iterable[Decision]) -> Mapping[str, list[Decision]]:
    found: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        if decision.subjects:
            found[decision.month].append(decision)
    return found


def _read(path: Path) -> tuple[list[Decision], list[Problem]]:
    if not _MONTH.fullmatch(path.stem):
        return [], [Problem(1, "", "a file of decisions is named after a month: 2026-12.yaml")]
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as e:
        return [], [Problem(1, "", f"cannot be read: {e.strerror}")]
    return read_decisions(data, path.stem)


def _twice(found: Iterable[Decision], seen: Mapping[str, str]) -> list[Problem]:
    return [
        Problem(s.line, s.finding_id, f"decided twice, first in {seen[s.finding_id]}. Remove one")
        for d in found
        for s in d.subjects
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

"""Runs that have a name: baselines for drift over many releases, whose samples outlive retention."""

from dataclasses import dataclass

from sqlalchemy import select

from orchestrator.domain.errors import UsageError
from orchestrator.domain.moment import utc_now
from orchestrator.history.database import Database, Pinned, StoredRun


@dataclass(frozen=True, slots=True)
class Baseline:
    name: str
    run_id: str
    pinned_at: str
    """UTC, ISO 8601."""
    by: str
    note: str


class Baselines:
    def __init__(self, database: Database) -> None:
        self._database = database

    def pin(self, name: str, run_id: str, by: str, note: str) -> None:
        """
        Raises:
            UsageError: no such run, or another run has the name.
        """
        with self._database.session() as session:
            if session.get(StoredRun, run_id) is None:
                raise UsageError(f"run {run_id}: not in the history; `tilefarm db store {run_id}` puts it in")
            before = session.get(Pinned, name)
            if before is not None and before.run_id != run_id:
                other = f"choose another name, or `tilefarm db unpin {name}`"
                raise UsageError(f"baseline {name!r} is run {before.run_id}; {other}")
            session.merge(Pinned(name=name, run_id=run_id, pinned_at=utc_now(), by=by, note=note))

    def unpin(self, name: str) -> str:
        """Returns the id of the run that had the name, and is like any other from now on.

        Raises:
            UsageError: there is no such baseline; says which there are.
        """
        with self._database.session() as session:
            pinned = session.get(Pinned, name)
            if pinned is None:
                there = ", ".join(session.scalars(select(Pinned.name).order_by(Pinned.name))) or "none"
                raise UsageError(f"no baseline {name!r}. Pinned: {there}")
            run_id = pinned.run_id
            session.delete(pinned)
        return run_id

    def all(self) -> list[Baseline]:
        """In the order of their names."""
        with self._database.session() as session:
            found = session.scalars(select(Pinned).order_by(Pinned.name))
            return [Baseline(p.name, p.run_id, p.pinned_at, p.by, p.note) for p in found]

    def pinned(self) -> dict[str, str]:
        """Name → run id."""
        return {baseline.name: baseline.run_id for baseline in self.all()}

"""The control plane: runs, devices and what people decided about baselines; SQLite, or PostgreSQL by URL.

Rows are few (a run has a few per device); trials and samples are in Parquet files (``trial_files``).
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from alembic.command import upgrade
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import JSON, ForeignKey, create_engine, event, func, select
from sqlalchemy.engine import Connection, Engine, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from orchestrator.domain.errors import InfraError, UsageError

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_MS = 30_000
"""SQLite: so long a writer waits for another one."""


MAKES_TABLES = 6_204_118
"""PostgreSQL: the advisory lock of the process that makes or changes tables; any number that is not another
program's."""


class Base(DeclarativeBase):
    """All tables; ``migrations`` makes them."""


class StoredRun(Base):
    """A run whose trials are in the history."""

    __tablename__ = "runs"
    run_id: Mapped[str] = mapped_column(primary_key=True)
    suite: Mapped[str] = mapped_column(index=True)
    night: Mapped[str]
    """Night id; empty: a run of a person or of CI."""
    started_at: Mapped[str] = mapped_column(index=True)
    """UTC, ISO 8601, as all times here."""
    finished_at: Mapped[str]
    """Empty: it was cut off, or devices are missing."""
    whole_suite: Mapped[bool]
    """All cases on all devices: a night for others to be compared with."""
    host: Mapped[str]
    commit: Mapped[str]
    tilefarm: Mapped[str]
    file: Mapped[str]
    """Parquet file's name below the history's ``runs`` folder; it holds the digest's beginning."""
    sha256: Mapped[str]
    """Of that file."""
    rows: Mapped[int]
    stored_at: Mapped[str]
    samples_until: Mapped[str] = mapped_column(default="")
    """When its raw samples were dropped by retention; empty: they are there."""
    verdicts: Mapped[str] = mapped_column(default="")
    """Parquet file of what was said of each series that night; empty: it was never judged."""
    verdicts_sha256: Mapped[str] = mapped_column(default="")
    compiler: Mapped[str | None] = mapped_column(default=None)
    """What made SPIR-V of its shaders; empty: nothing did; None: an earlier version stored it."""


class KnownDevice(Base):
    __tablename__ = "devices"
    device_id: Mapped[str] = mapped_column(primary_key=True)
    soc: Mapped[str] = mapped_column(index=True)
    vendor: Mapped[str]
    model: Mapped[str]
    name: Mapped[str]
    virtual: Mapped[bool]
    first_run: Mapped[str]
    last_run: Mapped[str]


class DeviceRun(Base):
    """What a device was in one run: its environment is an epoch's key."""

    __tablename__ = "device_runs"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True)
    device_id: Mapped[str] = mapped_column(ForeignKey("devices.device_id"), primary_key=True)
    drivers: Mapped[dict[str, str]] = mapped_column(JSON)
    """API → driver text."""
    os_build: Mapped[str]
    host: Mapped[str]
    serial: Mapped[str]


class KnownCase(Base):
    __tablename__ = "cases"
    case_id: Mapped[str] = mapped_column(primary_key=True)
    kernel: Mapped[str] = mapped_column(index=True)
    op: Mapped[str]
    workload_id: Mapped[str]
    label: Mapped[str]
    workload: Mapped[dict[str, Any]] = mapped_column(JSON)
    axes: Mapped[dict[str, Any]] = mapped_column(JSON)
    inputs: Mapped[str]
    role: Mapped[str]


class Sentinel(Base):
    """A case that is frozen on a device to watch the device itself; chosen once."""

    __tablename__ = "sentinels"
    device_id: Mapped[str] = mapped_column(primary_key=True)
    case_id: Mapped[str] = mapped_column(primary_key=True)
    chosen_in: Mapped[str]
    """Run id."""


class Pinned(Base):
    """A run that stays a baseline by name, for drift over many releases."""

    __tablename__ = "pinned"
    name: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"))
    pinned_at: Mapped[str]
    by: Mapped[str]
    note: Mapped[str]


class Database:
    """An engine whose tables are those that this version knows.

    Raises:
        UsageError: the URL is none, or its tables are of a later version.
        InfraError: nothing answers there.
    """

    def __init__(self, url: str) -> None:
        self.engine = _engine(url)
        self.shown = self.engine.url.render_as_string(hide_password=True)
        with self._said():
            self._migrate()

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def session(self) -> Generator[Session]:
        """One transaction: all of it or nothing."""
        with self._said(), Session(self.engine) as session, session.begin():
            yield session

    @contextmanager
    def _said(self) -> Generator[None]:
        try:
            yield
        except SQLAlchemyError as e:
            raise InfraError(
                f"database {self.shown}: {str(e).splitlines()[0]}. Check TILEFARM_DATABASE"
            ) from e

    def _migrate(self) -> None:
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS))
        known = ScriptDirectory.from_config(config)
        if self._revision(known) == known.get_current_head():
            return
        with self._alone() as connection:
            if self._revision(known) == known.get_current_head():
                return  # another process was first
            config.attributes["connection"] = connection
            upgrade(config, "head")

    def _revision(self, known: ScriptDirectory) -> str | None:
        """Of the tables; None: there are none yet."""
        with self.engine.connect() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
        if found is not None and found not in {s.revision for s in known.walk_revisions()}:
            raise UsageError(
                f"database {self.shown}: a later version wrote its tables (revision {found}, this one "
                f"knows {known.get_current_head()}); upgrade Tilefarm here"
            )
        return found

    @contextmanager
    def _alone(self) -> Generator[Connection]:
        """A transaction in which no other process makes tables."""
        with ExitStack() as held:
            file = self.engine.url.database
            if self.engine.dialect.name == "sqlite" and file:
                # The folder's lock leaves no file behind, and ends with the process.
                folder = os.open(Path(file).parent, os.O_RDONLY)
                held.callback(os.close, folder)
                fcntl.flock(folder, fcntl.LOCK_EX)
            connection = held.enter_context(self.engine.begin())
            if self.engine.dialect.name == "postgresql":
                connection.execute(select(func.pg_advisory_xact_lock(MAKES_TABLES)))
            yield connection


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(parsed, pool_pre_ping=True)
    except (SQLAlchemyError, ImportError, ValueError) as e:
        raise UsageError(
            f"TILEFARM_DATABASE: {str(e).splitlines()[0]}. Expected e.g. sqlite:///out/tilefarm.db or "
            "postgresql+psycopg://USER@HOST/NAME (`pip install 'tilefarm[postgres]'`)"
        ) from e
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _sqlite)
    return engine


def _sqlite(connection: DBAPIConnection, _record: object) -> None:
    """Readers do not wait for the writer; a crash loses no committed transaction. The timeout comes first:
    the other words may have to wait, too."""
    for pragma in (f"busy_timeout={BUSY_MS}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

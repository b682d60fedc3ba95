"""A history in a temporary folder, and a PostgreSQL server of our own."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from orchestrator.history.history import History


@pytest.fixture
def history(tmp_path: Path) -> Generator[History]:
    opened = History(f"sqlite:///{tmp_path}/tilefarm.db", tmp_path / "history")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def postgres() -> Generator[str]:
    """URL of a real server on a socket in a folder of its own."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
    # Not below pytest's own folder, which no other user may enter.
    folder = Path(tempfile.mkdtemp(prefix="tilefarm-pg-", dir="/tmp"))
    if os.getuid() == 0:  # the server refuses to be root
        owner = pwd.getpwnam("postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    subprocess.run(
        _as_owner([programs / "initdb", "-D", data, "-U", "farm", "--no-sync", "-E", "UTF8"]),
        check=True,
        capture_output=True,
        cwd=folder,
    )
    control = [programs / "pg_ctl", "-D", data, "-w", "-o", f"-c listen_addresses= -k {folder} -F"]
    subprocess.run(
        _as_owner([*control, "-l", folder / "log", "start"]),
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=folder,
    )
    try:
        yield f"postgresql+psycopg://farm@/postgres?host={folder}"
    finally:
        subprocess.run(
            _as_owner([*control, "-m", "immediate", "stop"]), check=True, capture_output=True, cwd=folder
        )
        shutil.rmtree(folder)


@pytest.fixture
def empty_postgres(postgres: str) -> Generator[str]:
    """URL of a database on that server without any table."""
    name = f"t{secrets.token_hex(6)}"
    server = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield postgres.replace("/postgres?", f"/{name}?")
    finally:
        with server.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        server.dispose()


def _as_owner(words: Sequence[str | Path]) -> list[str]:
    setpriv = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    return [*(setpriv if os.getuid() == 0 else []), *map(str, words)]

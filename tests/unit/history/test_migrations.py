"""Tables are those of the models, and those of an earlier version become them with what is in them."""

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.command import upgrade
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import MetaData, String, create_engine

from orchestrator.history.database import MIGRATIONS, Base, Database
from orchestrator.history.history import History
from tests.unit.history.test_history import night


def config() -> Config:
    made = Config()
    made.set_main_option("script_location", str(MIGRATIONS))
    return made


OLD = "20260101T010000Z-nightly-old"
REVISIONS = [s.revision for s in ScriptDirectory.from_config(config()).walk_revisions()][::-1]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_newest_revision_is_what_the_models_say(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/tilefarm.db"
    if kind == "postgresql":
        url = str(request.getfixturevalue("empty_postgres"))
    database = Database(url)
    try:
        with database.engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    finally:
        database.close()


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_an_earlier_version_keeps_its_runs(revision: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tilefarm.db"
    engine = create_engine(url)
    with engine.begin() as connection:
        made = config()
        made.attributes["connection"] = connection
        upgrade(made, revision)
        tables = MetaData()
        tables.reflect(connection)
        runs = tables.tables["runs"]
        words = {c.name: c.name for c in runs.columns if isinstance(c.type, String)}
        connection.execute(runs.insert().values(words | {"run_id": OLD, "whole_suite": True, "rows": 4}))
    engine.dispose()
    history = History(url, tmp_path / "history")
    try:
        (run,) = history.runs("suite")
        assert (run.run_id, run.rows, run.host, run.file) == (OLD, 4, "host", "file")
        assert history.store(night())
        assert len(history.runs()) == 2
    finally:
        history.close()

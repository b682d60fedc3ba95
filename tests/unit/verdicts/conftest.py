"""A history in a temporary folder."""

from collections.abc import Generator
from pathlib import Path

import pytest

from orchestrator.history.history import History


@pytest.fixture
def history(tmp_path: Path) -> Generator[History]:
    opened = History(f"sqlite:///{tmp_path}/tilefarm.db", tmp_path / "history")
    yield opened
    opened.close()

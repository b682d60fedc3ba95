"""A command in this process, with settings of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from tests.farm import Farm
from tests.unit.execution.redis_fixture import board, raw, url

__all__ = ["Invoke", "board", "farm", "invoke", "raw", "url"]

Invoke = Callable[..., Result]


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    return Farm(tmp_path)


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """``invoke("report", "latest")``; an error of ours is the result's ``exception``."""
    monkeypatch.setenv("TILEFARM_OUT", str(tmp_path / "out"))
    monkeypatch.setenv("TILEFARM_WORKDIR", str(tmp_path / "work"))
    for name in ("TILEFARM_BROKER", "TILEFARM_BLOBS"):
        monkeypatch.delenv(name, raising=False)

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, words)

    return call

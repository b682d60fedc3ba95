"""`tilefarm nights`: a night without results is seen, by people and by whoever reads exit codes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.domain.night import NIGHT_KEY_PREFIX, NightRecord, NightState
from orchestrator.execution.night_folder import NightFolder
from orchestrator.execution.roll_call import Roll, Rolls
from orchestrator.storage.night_claims import NightClaims
from orchestrator.storage.redis_client import RedisClient
from tests.results_fixture import device
from tests.unit.cli.conftest import Invoke
from tests.unit.execution.redis_fixture import client, redis_url

__all__ = ["client", "redis_url"]


def record(day: int, state: NightState, suite: str = "nightly", **words: str) -> NightRecord:
    night = f"2026-12-{day:02d}"
    made = NightRecord(f"{night}-{suite}", suite, f"{night}T01:00:00+00:00", state, "keeper", "farm-1")
    return replace(made, run_id=f"{night}-run", started_at=f"{night}T01:00:02+00:00", **words)


@pytest.fixture
def folder(tmp_path: Path) -> NightFolder:
    return NightFolder(tmp_path / "out")


def test_every_night_is_told_newest_first(folder: NightFolder, invoke: Invoke) -> None:
    for made in (
        record(1, "finished", verdict="12 of 12 measured trials passed."),
        record(2, "missed", why="nobody looked"),
        record(3, "failed", why="matrix.yaml:5: wrong"),
        record(4, "started"),
    ):
        assert folder.create(made)
    done = invoke("nights")
    lines = [line.split(None, 2) for line in done.stdout.splitlines()[1:]]
    assert [(words[0], words[1]) for words in lines] == [
        ("2026-12-04-nightly", "running"),
        ("2026-12-03-nightly", "FAILED"),
        ("2026-12-02-nightly", "MISSED"),
        ("2026-12-01-nightly", "ran"),
    ]
    for text in (
        "12 of 12",
        "nobody looked",
        "matrix.yaml:5: wrong",
        "since 2026-12-04T01:00:02+00:00 on farm-1",
    ):
        assert text in done.stdout
    assert done.exit_code == 3
    found = json.loads(invoke("nights", "--json", "--last", "2").stdout)
    assert [n["night"] for n in found["nights"]] == ["2026-12-04-nightly", "2026-12-03-nightly"]
    assert found["without_results"] == ["2026-12-03-nightly"]


def test_the_newest_night_of_each_suite_decides_the_exit_code(folder: NightFolder, invoke: Invoke) -> None:
    assert invoke("nights").exit_code == 0
    folder.create(record(1, "missed"))
    folder.create(record(2, "finished"))
    assert invoke("nights").exit_code == 0
    folder.create(record(1, "missed", suite="speed"))
    assert invoke("nights").exit_code == 3


def test_elsewhere_the_farms_nights_are_shown(
    folder: NightFolder, invoke: Invoke, client: RedisClient, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And this OUT's own where Redis has an older word of them, or does not answer."""
    for key in client.scan_iter(match=f"{NIGHT_KEY_PREFIX}*"):
        client.delete(key.decode())
    NightClaims(client).claim(record(1, "started"))
    NightClaims(client).claim(record(2, "started"))
    folder.create(record(1, "finished", verdict="all passed"))
    monkeypatch.setenv("TILEFARM_BROKER", redis_url)
    shown = invoke("nights").stdout
    assert "all passed" in shown
    assert "2026-12-02-nightly  running" in shown
    monkeypatch.setenv("TILEFARM_BROKER", "redis+socket:///nowhere")
    away = invoke("nights")
    assert "all passed" in away.stdout
    assert "2026-12-02" not in away.stdout


def test_a_phone_that_will_not_come_back_is_let_go(invoke: Invoke, tmp_path: Path) -> None:
    Rolls(tmp_path / "out").put(
        "nightly", Roll().after([device("adb-1", serial="R58N")], "RUN", "2026-12-01T01:00:00")
    )
    assert invoke("nights", "--forget", "R58N").exit_code == 0
    assert Rolls(tmp_path / "out").get("nightly") == Roll()
    assert isinstance(invoke("nights", "--forget", "R58N").exception, UsageError)

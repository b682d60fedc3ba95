"""A night whose worker took nothing is marked, also where its report is made without a farm (G3-03)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.cli import night as night_module
from orchestrator.cli.night import MAX_DEGRADED
from orchestrator.domain.errors import InfraError
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import load_results
from orchestrator.storage.degraded import note_degraded
from orchestrator.storage.night_claims import NightClaims
from orchestrator.storage.redis_client import RedisClient
from tests.unit.cli.conftest import Invoke
from tests.unit.cli.test_night import NIGHT, Host, fails
from tests.unit.execution.redis_fixture import client, redis_url

__all__ = ["client", "redis_url"]
WHY = "its worker took nothing"


def test_g3_03_a_night_that_was_degraded_says_so(
    client: RedisClient, redis_url: str, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G3-03: also where only the run's folder is left to make its report of."""
    monkeypatch.setenv("TILEFARM_BROKER", redis_url)
    monkeypatch.setattr(night_module, "resume_run", fails(InfraError("its device went away")))
    host = Host(tmp_path / "out", invoke)
    host.begun(timedelta(hours=9))
    host.planned()
    manifest = host.run.manifest()
    since = (datetime.now(UTC) - timedelta(hours=9)).isoformat(timespec="seconds")
    planned = replace(manifest.planned, run=replace(manifest.planned.run, started_at=since))
    (host.run.path / "manifest.json").write_text(to_json(replace(manifest, planned=planned)), "utf-8")
    for number in range(MAX_DEGRADED + 1):
        note_degraded(client, "local-1", f"{WHY}, {number}")
    done = host.process()
    found = load_results(host.run.path).run.degraded
    assert len(found) == MAX_DEGRADED + 1
    assert host.record.degraded == found[:MAX_DEGRADED]
    assert host.record.state == "finished"
    assert NightClaims(client).all()[NIGHT] == host.record
    assert "DEGRADED: 21 times a worker took nothing" in done.output
    shown = " ".join(invoke("nights").stdout.split())
    assert "degraded: local-1 at 20" in shown

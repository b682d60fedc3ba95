"""The process of one night: what it does with what is there already, and at the deadline."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import Result

from orchestrator.cli import night as night_module
from orchestrator.domain.errors import (
    BrokerUnavailable,
    InfraError,
    KernelFolderError,
    MatrixError,
    UsageError,
)
from orchestrator.domain.job import CaseJob
from orchestrator.domain.night import NightRecord
from orchestrator.execution.night_folder import NightFolder
from orchestrator.execution.run_folder import Manifest, RunFolder, load_results
from tests.results_fixture import case, passing, results, run_info
from tests.unit.cli.conftest import Invoke

NIGHT, RUN = "2026-12-01-smoke", "20261201T010000Z-smoke-night"
DONE, GAP = case(tile="8x8"), case(tile="16x16")
NOWHERE = "redis+socket:///nowhere"
DEADLINE = timedelta(hours=8)


class Host:
    """An orchestrator's OUT with one night in it, and no Redis."""

    def __init__(self, out: Path, invoke: Invoke) -> None:
        self.folder = NightFolder(out)
        self.run = RunFolder(out / "runs" / RUN)
        self._out = out
        self._invoke = invoke

    def begun(self, ago: timedelta, why: str = "") -> None:
        started = (datetime.now(UTC) - ago).isoformat(timespec="seconds")
        self.folder.create(
            NightRecord(
                NIGHT, "smoke", "2026-12-01T01:00:00+00:00", "started", "keeper", "host", run_id=RUN,
                started_at=started, deadline_s=DEADLINE.total_seconds(), starts=1, why=why,
            )
        )  # fmt: skip

    def planned(self) -> None:
        """Two cases, one of which has its result."""
        made = results(points=[DONE, GAP], run=run_info(RUN, finished=False))
        jobs = [CaseJob(p.case_id, 1, p.label, "gles", "c0de", [], [], []) for p in (DONE, GAP)]
        RunFolder.create(self._out, Manifest(made, {"local-1": jobs}, "memory://b", "nightly"))
        self.run.append([passing(DONE, "local-1")])

    def process(self, *words: str) -> Result:
        return self._invoke("run", "--suite", "smoke", "--nightly", "--night", NIGHT, *words)

    @property
    def record(self) -> NightRecord:
        return self.folder.get(NIGHT)


@pytest.fixture
def host(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("TILEFARM_BROKER", NOWHERE)
    return Host(tmp_path / "out", invoke)


def cancels(*_: object) -> bool:
    return True


def fails(error: Exception) -> Callable[..., NoReturn]:
    def call(*_: object, **__: object) -> NoReturn:
        raise error

    return call


def test_only_a_recorded_night_is_carried_out_and_only_on_a_farm(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(host.process().exception, UsageError)
    assert not (host.folder.path / f"{NIGHT}.lock").exists()
    monkeypatch.delenv("TILEFARM_BROKER")
    assert "TILEFARM_BROKER is not set" in str(host.process().exception)


def test_two_processes_of_a_night_are_one_too_many(host: Host) -> None:
    host.begun(timedelta())
    with host.folder.alone(NIGHT):
        done = host.process()
    assert "another process carries this night out" in str(done.exception)
    assert host.record.state == "started"


def test_a_night_that_is_over_is_not_run_again(host: Host) -> None:
    host.begun(timedelta())
    host.folder.replace(replace(host.record, state="finished"))
    assert "this night is over (finished)" in str(host.process().exception)


def test_a_broker_that_is_away_before_the_deadline_ends_nothing(host: Host) -> None:
    host.begun(timedelta(hours=1))
    host.planned()
    assert isinstance(host.process().exception, BrokerUnavailable)
    assert host.record.state == "started"
    assert "nowhere" in host.record.why
    assert not host.run.results_json.exists()


def test_g3_07_the_report_is_made_of_stored_rows_at_the_deadline_with_the_gaps_named(host: Host) -> None:
    """G3-07: with Redis gone for good; no task has to come back for it."""
    host.begun(DEADLINE + timedelta(seconds=1))
    host.planned()
    done = host.process("--json")
    assert done.exit_code == 3, done.exception
    found = load_results(host.run.path)
    assert [t.case_id for t in found.trials] == [DONE.case_id]
    assert [(m.case_id, m.why) for m in found.missing] == [(GAP.case_id, "the night's deadline of 8 h")]
    assert (host.run.path / "index.html").is_file()
    assert (host.record.state, host.record.exit_code) == ("finished", 3)
    assert "1 result not obtained (1 missing)" in host.record.verdict


def test_a_deadline_that_comes_while_redis_is_away_brings_the_report_at_once(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.begun(DEADLINE - timedelta(hours=1))
    host.planned()

    def away(*_: object, **__: object) -> NoReturn:
        monkeypatch.setattr(night_module, "_now", lambda: datetime.now(UTC) + timedelta(hours=2))
        raise BrokerUnavailable("away for a quarter of an hour")

    monkeypatch.setattr(night_module, "_run", away)
    assert host.process("--json").exit_code == 3
    assert host.record.state == "finished"


def test_kernels_that_fail_in_the_middle_leave_a_report_of_the_others(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.begun(timedelta(hours=1))
    host.planned()
    monkeypatch.setattr(night_module, "_run", fails(KernelFolderError("kernels/mine: division by zero")))
    assert host.process("--json").exit_code == 3
    assert host.record.state == "finished"
    (gap,) = load_results(host.run.path).missing
    assert gap.why == "its kernels failed: kernels/mine: division by zero"


def test_kernels_that_are_broken_at_the_deadline_keep_no_report_back(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.begun(DEADLINE + timedelta(seconds=1))
    host.planned()
    monkeypatch.setattr(night_module, "_cancel", cancels)
    monkeypatch.setattr(night_module, "resume_run", fails(KernelFolderError("kernels/mine: no such op")))
    assert host.process("--json").exit_code == 3
    assert host.record.state == "finished"


def test_a_night_that_was_never_planned_failed_with_its_last_reason(host: Host) -> None:
    host.begun(DEADLINE + timedelta(seconds=1), why="no worker is registered")
    done = host.process()
    assert isinstance(done.exception, InfraError)
    assert host.record.state == "failed"
    assert (
        "nothing was planned until the night's deadline of 8 h; last: no worker is registered"
        in host.record.why
    )


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (MatrixError(["matrix.yaml:5: unknown key"]), "failed"),
        (InfraError("no device can be used"), "started"),
    ],
)
def test_what_trying_again_cannot_mend_fails_at_once(
    host: Host, monkeypatch: pytest.MonkeyPatch, error: Exception, state: str
) -> None:
    host.begun(timedelta())
    monkeypatch.setattr(night_module, "new_run", fails(error))
    assert host.process().exception is error
    assert (host.record.state, host.record.why) == (state, str(error))


def test_a_folder_of_a_process_that_was_killed_before_it_planned_is_made_anew(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.begun(timedelta())
    host.run.path.mkdir(parents=True)
    host.run.append([passing(DONE, "local-1")])
    there: list[bool] = []

    def new_run(*_: object, **__: object) -> NoReturn:
        there.append(host.run.path.exists())
        raise InfraError("killed")

    monkeypatch.setattr(night_module, "new_run", new_run)
    host.process()
    assert there == [False]

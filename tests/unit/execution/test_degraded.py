"""A run tells which of its phones' workers were replaced meanwhile (field case G3-03)."""

from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.job import CaseJob
from orchestrator.execution.manifest import Manifest
from orchestrator.execution.run import carry_out
from orchestrator.execution.run_folder import RunFolder, load_results
from tests.results_fixture import case, code_hash, device, results, run_info
from tests.unit.execution.fake_farm import FakeFarm, Notes

POINT, RUN = case(), "20261201T010000Z-smoke-g303"
WHY = "its worker took nothing"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    planned = results(
        points=[POINT], devices=[device("deaf-7"), device("deaf-8")], run=run_info(RUN, finished=False)
    )
    job = CaseJob(POINT.case_id, 1, POINT.label, "gles", code_hash(POINT), [], [], [])
    jobs = {"deaf-7": [job], "deaf-8": [job]}
    return RunFolder.create(tmp_path / "out", Manifest(planned, jobs, "memory://b", "nightly"))


def farm(*deaf: str) -> FakeFarm:
    return FakeFarm({"deaf-7": "w1", "deaf-8": "w2"}, deaf=dict.fromkeys(deaf, WHY))


def test_a_run_tells_of_its_own_phones(folder: RunFolder, tmp_path: Path) -> None:
    done = carry_out(folder, farm("deaf-8", "another"), Notes(), tmp_path / "out")
    assert done.run.degraded == [f"deaf-8 since {run_info().started_at}: {WHY}"]
    assert load_results(folder.path) == done
    assert done.run.finished_at
    assert done.missing == []


class Away(FakeFarm):
    def degraded(self, device_ids: Iterable[str], since: str) -> NoReturn:
        raise BrokerUnavailable(f"{[*device_ids]} {since}")


def test_a_farm_that_is_away_at_the_end_costs_only_the_mark(folder: RunFolder, tmp_path: Path) -> None:
    done = carry_out(folder, Away({"deaf-7": "w1", "deaf-8": "w2"}), Notes(), tmp_path / "out")
    assert (done.run.degraded, len(done.trials)) == ([], 2)


def test_a_resumed_run_tells_what_its_first_end_told(folder: RunFolder, tmp_path: Path) -> None:
    """Once, whether the farm has forgotten it or tells it again."""
    first = carry_out(folder, farm("deaf-8"), Notes(), tmp_path / "out").run.degraded
    assert len(first) == 1
    assert carry_out(folder, farm(), Notes(), tmp_path / "out").run.degraded == first
    both = carry_out(folder, farm("deaf-8", "deaf-7"), Notes(), tmp_path / "out").run.degraded
    assert (both[0], len(both)) == (first[0], 2)

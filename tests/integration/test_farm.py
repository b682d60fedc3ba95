"""Broker, workers in other processes, and what happens when they are killed."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.broker import Broker
from orchestrator.execution.run_folder import RunFolder
from tests.farm import Farm, wait_for

MATRIX = """
version: 1
suites:
  smoke:
    repeats: 3
    idle_replays: 1
    idle_s: 0.2
    blocks:
      - kernel: scale
        workloads: [{n: [33, 40, 65, 1001], percent: [100, 150]}]
        axes: {precision: [fp32, fp16_storage], vector: [1, 4]}
"""
"""Quickly compiled; a rest makes every case last, so that there is a middle to be killed in."""
CASES = 32


@pytest.fixture
def matrix(tmp_path: Path) -> str:
    path = tmp_path / "matrix.yaml"
    path.write_text(MATRIX)
    return str(path)


@pytest.fixture
def shared(farm: Farm, broker: str) -> Farm:
    farm.environment["TILEFARM_BROKER"] = broker
    return farm


@contextmanager
def worker(farm: Farm) -> Generator["subprocess.Popen[bytes]"]:
    """A worker of this machine's GPU, registered."""
    process = farm.start("worker", "--device", "local:llvmpipe", log=farm.folder / "worker.log")
    try:
        wait_for(lambda: _registered_pid(farm) == process.pid, "the worker's registration")
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


def _registered_pid(farm: Farm) -> int:
    broker = Broker(farm.environment["TILEFARM_BROKER"])
    try:
        return next((r.pid for r in broker.registrations().values()), 0)
    finally:
        broker.close()


def _trials(farm: Farm) -> list[Trial]:
    """What is on disk so far, of the only run."""
    folders = list((farm.out / "runs").glob("*"))
    return list(RunFolder(folders[0]).trials().values()) if folders else []


def _assert_complete_once(farm: Farm) -> None:
    results = farm.latest()
    assert results.run.finished_at
    assert not results.missing
    assert len(results.trials) == CASES
    assert {t.verdict for t in results.trials} == {Verdict.PASS}
    lines = (farm.out / "latest" / "trials.jsonl").read_text().splitlines()
    assert len(lines) == CASES, Counter(lines).most_common(1)


def test_workers_in_other_processes_give_the_same_result(shared: Farm, matrix: str, tmp_path: Path) -> None:
    with worker(shared):
        shared.run("run", "--matrix", matrix)
    _assert_complete_once(shared)
    alone = Farm(tmp_path / "alone")
    alone.folder.mkdir()
    alone.run("run", "--matrix", matrix, "--device", "local:llvmpipe")
    assert _identity(shared) == _identity(alone)


def _identity(farm: Farm) -> set[tuple[str, str, str, str]]:
    return {(t.case_id, t.verdict, t.code_hash, t.outputs[0].hash) for t in farm.latest().trials}


def test_worker_killed_in_the_middle_and_started_again(shared: Farm, matrix: str) -> None:
    with worker(shared) as first:
        run = shared.start("run", "--matrix", matrix, log=shared.folder / "run.log")
        wait_for(lambda: len(_trials(shared)) > 0, "the first results")
        first.kill()
        first.wait(60)
    done_before = len(_trials(shared))
    assert done_before < CASES
    with worker(shared):
        assert run.wait(240) == 0, (shared.folder / "run.log").read_text()
    _assert_complete_once(shared)


def test_everything_killed_then_resumed(shared: Farm, matrix: str) -> None:
    with worker(shared) as first:
        run = shared.start("run", "--matrix", matrix)
        wait_for(lambda: len(_trials(shared)) > 0, "the first results")
        run.send_signal(signal.SIGKILL)
        first.kill()
        run.wait(60)
        first.wait(60)
    kept = {t.key: t for t in _trials(shared)}
    assert 0 < len(kept) < CASES
    run_id = next((shared.out / "runs").iterdir()).name
    with worker(shared):
        shared.run("run", "--resume", run_id)
    _assert_complete_once(shared)
    after = {t.key: t for t in _trials(shared)}
    assert all(after[key] == trial for key, trial in kept.items())


def test_a_private_run_killed_then_resumed_leaves_no_process_behind(farm: Farm, matrix: str) -> None:
    run = farm.start("run", "--matrix", matrix, "--device", "local:llvmpipe")
    wait_for(lambda: len(_trials(farm)) > 0, "the first results")
    children = _descendants(run.pid)
    assert len(children) >= 2
    run.kill()
    run.wait(60)
    wait_for(lambda: not any(_alive(pid) for pid in children), "redis-server and workers to end")
    run_id = next((farm.out / "runs").iterdir()).name
    farm.run("run", "--resume", run_id)
    _assert_complete_once(farm)


def test_a_device_has_one_worker(shared: Farm) -> None:
    with worker(shared):
        done = shared.run("worker", "--device", "local:llvmpipe", expect=3)
    assert "is served by process" in done.stderr


def test_no_worker_is_exit_code_3_and_says_so(shared: Farm, matrix: str) -> None:
    done = shared.run("run", "--matrix", matrix, "--device", "local:llvmpipe", expect=3)
    assert "no such device" in done.stderr


def test_unreachable_broker_names_the_setting(farm: Farm, matrix: str) -> None:
    farm.environment["TILEFARM_BROKER"] = "redis://127.0.0.1:1/0"
    done = farm.run("run", "--matrix", matrix, expect=3)
    assert "TILEFARM_BROKER" in done.stderr


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *_descendants(int(child))]
    return found


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"

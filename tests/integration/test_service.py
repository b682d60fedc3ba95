"""Runs without a terminal: submitted, carried out by an orchestrator, whole whatever is killed meanwhile."""

import subprocess
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.domain.errors import UsageError
from orchestrator.domain.run_state import RunState
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.board import Board
from orchestrator.execution.broker import Broker
from orchestrator.execution.run_folder import RunFolder, load_results
from tests.farm import Farm, wait_for
from tests.redis_server import RedisServer

MATRIX = """
version: 1
suites:
  smoke:
    repeats: 3
    idle_replays: 1
    idle_s: IDLE
    blocks:
      - kernel: scale
        workloads: [{n: [33, 65], percent: [100, 150]}]
        axes: {precision: [fp32, fp16_storage], vector: [1, 4]}
"""
"""Quickly compiled; a rest makes every case last, so that there is a middle to be killed in."""
CASES = 16


@dataclass(slots=True)
class Bench:
    """One farm for all tests here; each has a client and an orchestrator's OUT of its own."""

    redis: RedisServer
    client: Farm
    server: Farm

    def command(self, *words: str) -> str:
        """In this process, whose imports are done; what it printed."""
        done = CliRunner().invoke(app, words, env=self.client.env())
        assert done.exit_code == 0, done.exception
        return done.stdout

    def submit(self, idle_s: float = 0.3) -> str:
        matrix = self.client.folder / "matrix.yaml"
        matrix.write_text(MATRIX.replace("IDLE", str(idle_s)))
        return self.command("submit", "--matrix", str(matrix), "--fail-on", "regressed").strip()

    def state(self, run_id: str) -> RunState:
        with closing(Board(self.redis.url)) as board:
            state = board.run(run_id)
        assert state is not None
        return state

    def submissions(self) -> list[str]:
        with closing(Board(self.redis.url)) as board:
            return list(board.submissions())

    @contextmanager
    def orchestrator(self) -> Generator["subprocess.Popen[bytes]"]:
        process = self.server.start("orchestrator", log=self.server.folder / "orchestrator.log")
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(60)

    def folder(self, run_id: str) -> RunFolder:
        return RunFolder(self.server.out / "runs" / run_id)

    def done(self, run_id: str) -> int:
        """Trials on the server's disk."""
        return len(self.folder(run_id).trials())

    def await_middle(self, run_id: str) -> None:
        wait_for(lambda: self.done(run_id) > 0, f"first results, {self.log(run_id)}")
        assert self.done(run_id) < CASES

    def await_end(self, run_id: str) -> RunState:
        wait_for(lambda: self.state(run_id).exit_code is not None, f"the end, {self.log(run_id)}")
        return self.state(run_id)

    def log(self, run_id: str) -> str:
        """Of the run's processes; for a test that fails."""
        path = self.server.out / "logs" / run_id / "dispatch.log"
        return path.read_text() if path.is_file() else "no log"

    def assert_complete_once(self, run_id: str) -> None:
        results = load_results(self.folder(run_id).path)
        assert results.run.finished_at
        assert results.run.fail_on == "regressed"
        assert not results.missing
        assert Counter(t.verdict for t in results.trials) == {Verdict.PASS: CASES}
        lines = (self.folder(run_id).path / "trials.jsonl").read_text().splitlines()
        assert len(lines) == CASES, Counter(lines).most_common(1)
        assert (self.folder(run_id).path / "index.html").is_file()


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Generator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"), appendfsync="always")
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def environment(redis: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, str]]:
    """Of a farm with one worker of this machine's GPU."""
    folder = tmp_path_factory.mktemp("farm")
    shared = {"TILEFARM_BROKER": redis.url, "TILEFARM_BLOBS": (folder / "blobs").as_uri()}
    farm = Farm(folder, shared)
    worker = farm.start("worker", "--device", "local:llvmpipe", log=folder / "worker.log")
    with closing(Broker(redis.url)) as broker:
        wait_for(lambda: bool(broker.registrations()), "the worker's registration")
    yield shared
    worker.terminate()
    worker.wait(60)


@pytest.fixture
def bench(redis: RedisServer, environment: dict[str, str], tmp_path: Path) -> Bench:
    farms = [Farm(tmp_path / who, dict(environment)) for who in ("client", "server")]
    for farm in farms:
        farm.folder.mkdir()
    return Bench(redis, *farms)


def test_a_submitted_run_is_carried_out_and_watched_over_a_kill_of_redis(bench: Bench) -> None:
    """Both sides of the farm wait for Redis, and what it had forgotten is sent again."""
    run_id = bench.submit()
    assert not list(bench.client.out.glob("runs/*"))
    said = bench.client.folder / "watch.log"
    watch = bench.client.start("watch", run_id, log=said)
    wait_for(
        lambda: "none lives: start `tilefarm orchestrator`" in said.read_text(), "watch to say why it waits"
    )
    with bench.orchestrator():
        bench.await_middle(run_id)
        bench.redis.kill()
        bench.redis.start()
        assert watch.wait(240) == 0, bench.log(run_id)
        bench.assert_complete_once(run_id)
        wait_for(lambda: not bench.submissions(), "the submission to be struck off")
    # Warnings about Redis are in the log, and not in what the child says at its end.
    assert "waiting for it" in bench.log(run_id)
    told = (bench.server.folder / "orchestrator.log").read_text().splitlines()
    assert sum("starting " in line and run_id in line for line in told) == 1
    assert f"{bench.folder(run_id).path / 'index.html'} on " in said.read_text()
    assert bench.state(run_id).phase == "finished"


def test_a_killed_orchestrator_goes_on_with_its_runs_where_they_were(bench: Bench) -> None:
    run_id = bench.submit()
    with bench.orchestrator() as first:
        bench.await_middle(run_id)
        first.kill()
        first.wait(60)
    wait_for(lambda: not _carried_out(bench.folder(run_id)), "its child to end with it")
    kept = bench.folder(run_id).trials()
    assert 0 < len(kept) < CASES
    assert bench.submissions() == [run_id]
    with bench.orchestrator():
        assert bench.await_end(run_id).exit_code == 0
        wait_for(lambda: not bench.submissions(), "the submission to be struck off")
    bench.assert_complete_once(run_id)
    after = bench.folder(run_id).trials()
    assert all(after[key] == trial for key, trial in kept.items())


def test_cancel_strikes_off_what_waits_and_ends_what_runs_with_a_report(bench: Bench) -> None:
    bench.server.environment["TILEFARM_RUNS_AT_ONCE"] = "1"
    running, waiting = bench.submit(idle_s=60), bench.submit()
    with bench.orchestrator():
        wait_for(
            lambda: any(t.flying and not t.waiting_since for t in bench.state(running).targets), "a case"
        )
        bench.command("cancel", waiting, "--why", "not needed")
        assert bench.state(waiting).phase == "cancelled"
        bench.command("cancel", running, "--why", "wrong branch")
        ended = bench.await_end(running)
        wait_for(lambda: not bench.submissions(), "both to be struck off")
    assert (ended.phase, ended.exit_code) == ("cancelled", 3)
    assert "wrong branch" in ended.why
    results = load_results(bench.folder(running).path)
    assert results.trials == []
    assert ["wrong branch" in m.why for m in results.missing] == [True] * CASES
    assert Path(ended.report).is_file()
    assert not bench.folder(waiting).path.exists()


def _carried_out(folder: RunFolder) -> bool:
    try:
        with folder.only_one():
            return False
    except UsageError:
        return True

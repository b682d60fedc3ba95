"""Field cases of Celery over a real Redis, with worker processes: registered, leased, one a phone."""

from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.cli.finish import finish_run
from orchestrator.domain.event import Progress
from orchestrator.domain.gate import Gate
from orchestrator.domain.moment import utc_now
from orchestrator.domain.names import lease_key
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution import dispatch
from orchestrator.execution.broker import Broker
from orchestrator.execution.dispatch import DispatchLimits
from orchestrator.execution.lanes import BatchLimits
from orchestrator.execution.manifest import Manifest
from orchestrator.execution.run import carry_out
from orchestrator.execution.run_folder import RunFolder
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import connect
from tests.farm import wait_for
from tests.integration.celery_line import Line
from tests.integration.celery_worker import SOC, TTL_S
from tests.results_fixture import TODAY, case, code_hash, device, results, run_info

ONE, TWO, THREE = "phone-one", "phone-two", "phone-three"


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Generator[Line]:
    """Two workers; the second one's visibility timeout is a fraction of a second."""
    found = Line(tmp_path_factory.mktemp("line"))
    found.redis.start()
    try:
        with found.worker(ONE), found.worker(TWO, "0.3"):
            yield found
    finally:
        found.redis.kill()


def test_g3_01_the_shortest_visibility_timeout_of_all_workers_delivers_twice_and_the_phone_works_once(
    line: Line,
) -> None:
    """G3-01: another phone's worker was left at 0.3 s; a batch of the first one takes longer."""
    line.send("g3-01", ONE, "wait-long", "quick-1")
    wait_for(lambda: line.executed(ONE)["wait-long"] == 1, "the batch to begin")
    wait_for(lambda: line.queued(ONE) > 0, "the batch to be delivered again")
    (line.folder / "long").touch()
    wait_for(lambda: line.queued(ONE) == line.in_hand() == 0, "the second delivery to be done with")
    assert line.executed(ONE)["wait-long"] == line.executed(ONE)["quick-1"] == 1
    assert line.results("g3-01") == {"wait-long": 1, "quick-1": 1}
    assert line.executed(TWO)["wait-long"] == 0


def test_g3_04_after_a_cut_connection_an_idle_phones_batch_waits_for_no_other_phone(line: Line) -> None:
    """G3-04: one worker process a phone: nothing is piped behind the long task of another one."""
    line.send("g3-04", ONE, "wait-busy")
    wait_for(lambda: line.executed(ONE)["wait-busy"] == 1, "the long batch to begin")
    line.cut()
    line.send("g3-04", TWO, "idle-1")
    wait_for(lambda: line.results("g3-04")["idle-1"] == 1, "the idle phone's batch")
    assert line.results("g3-04") == {"idle-1": 1}, "the long one still runs"
    (line.folder / "busy").touch()
    wait_for(lambda: line.results("g3-04")["wait-busy"] == 1, "the long batch")
    assert line.executed(ONE)["wait-busy"] == 1


def test_g2_04_a_worker_that_was_paused_for_longer_than_its_lease_writes_nothing_of_that_time(
    line: Line,
) -> None:
    """G2-04: the whole process stands still; meanwhile its lease ends and another one has the phone."""
    line.send("g2-04", ONE, "wait-pause")
    wait_for(lambda: line.executed(ONE)["wait-pause"] == 1, "the batch to begin")
    with line.paused(ONE):
        (line.folder / "pause").touch()  # it is done as soon as it wakes up, before its lease is renewed
        client = connect(line.url)
        leases = Leases(client)
        wait_for(lambda: client.get(lease_key(ONE)) is None, "the lease to end")
        second = leases.claim(ONE, "another", ttl_s=600)
        assert second is not None
        assert line.results("g2-04") == {}
    wait_for(lambda: line.refusals(ONE) > 0, "the late result to be refused")
    assert line.results("g2-04") == {}, "it waits for the phone"
    assert line.executed(ONE)["wait-pause"] == 1
    leases.end(second)
    client.close()
    wait_for(lambda: line.results("g2-04") == {"wait-pause": 1}, "the batch under a lease of its own")
    assert line.executed(ONE)["wait-pause"] == 2


def test_g3_03_thirty_tasks_outlive_three_cuts_and_a_restart_of_redis(line: Line) -> None:
    """G3-03: workers consume again after each, without a restart of theirs."""
    pids = [line.pid(ONE), line.pid(TWO)]
    cases = [f"thirty-{n}" for n in range(30)]
    for n, one in enumerate(cases):
        if n in (6, 12, 18):
            line.cut()
        if n == 24:
            line.redis.kill()
            line.redis.start()
        line.send("g3-03", (ONE, TWO)[n % 2], one)
        if n % 6 == 5:  # what is sent is being consumed again
            wait_for(lambda n=n: len(line.results("g3-03")) == n + 1, f"{n + 1} results")
    assert line.results("g3-03") == dict.fromkeys(cases, 1)
    assert line.executed(ONE) + line.executed(TWO) >= Counter(cases)
    assert [line.pid(ONE), line.pid(TWO)] == pids


def test_g3_05_the_lease_of_a_worker_that_was_killed_while_it_hung_ends_by_itself(line: Line) -> None:
    """G3-05: nothing of the worker runs after SIGKILL; its successor waits for the lease to end."""
    with line.worker(THREE) as hanging:
        line.send("g3-05", THREE, "wait-never")
        wait_for(lambda: line.executed(THREE)["wait-never"] == 1, "the batch to begin")
        hanging.kill()
        hanging.wait(60)
    with line.raw() as raw:
        assert 0 < raw.pttl(lease_key(THREE)) <= 1000 * TTL_S
    line.send("g3-05", THREE, "wait-never")
    (line.folder / "never").touch()
    with line.worker(THREE):
        wait_for(lambda: line.results("g3-05")["wait-never"] == 1, "its successor's result")


class Night:
    """Follows a run; meanwhile starts again who died, as an agent does, and Redis once."""

    def __init__(self, line: Line, workers: ExitStack, restart_after: int) -> None:
        self.line = line
        self.deaths = 0
        self._stack = workers
        self._restart_after = restart_after
        self._done = 0
        self._workers = {d: workers.enter_context(line.worker(d)) for d in (ONE, TWO)}

    def trial(self, trial: Trial) -> None:
        self._done += 1

    def progress(self, news: Progress) -> None:
        del news

    def lost(self, target: str, cases: int, why: str) -> None:
        del target, cases, why

    def tick(self) -> None:
        if self._done >= self._restart_after:
            self._restart_after = 1_000_000
            self.line.redis.kill()
            self.line.redis.start()
        for device_id, worker in self._workers.items():
            if worker.poll() is not None:
                self.deaths += 1
                self._workers[device_id] = self._stack.enter_context(self.line.worker(device_id))


def test_g3_03_a_worker_that_takes_nothing_is_replaced_and_its_run_is_degraded(tmp_path: Path) -> None:
    """G3-03: it lives, and so does its registration; another one is started, and the report says so."""
    line = Line(tmp_path)
    (tmp_path / f"{ONE}.deaf").touch()
    points = [case(seq=33 + n) for n in range(2)]
    jobs = [replace(line.stock.job(p.case_id), code_hash=code_hash(p), deadline_ms=1000) for p in points]
    devices = [device(d, serial=d, soc=SOC) for d in (ONE, TWO)]
    run = replace(run_info("20261201T010000Z-night-g303", finished=False), started_at=utc_now())
    planned = results(points=points, devices=devices, run=run)
    folder = RunFolder.create(
        tmp_path / "out", Manifest(planned, {ONE: jobs[:1], TWO: jobs[1:]}, line.stock.store.url, "nightly")
    )
    line.redis.start()
    broker = Broker(line.url)
    try:
        with ExitStack() as workers:
            night = Night(line, workers, restart_after=1_000_000)
            found = carry_out(folder, broker, night, tmp_path / "out")
    finally:
        broker.close()
        line.redis.kill()
    assert [t.verdict for t in found.trials] == [Verdict.PASS] * 2
    assert night.deaths == 1
    (sentence,) = found.run.degraded
    assert sentence.startswith(f"{ONE} at 20")
    assert "took none of the work queued" in sentence
    finished = finish_run(folder, found, Settings(out=tmp_path / "out"), TODAY, Gate())
    assert sentence in finished.reports.index.read_text("utf-8")
    assert finished.summary.exit_code == 0


def test_g3_07_a_night_of_120_tasks_has_its_report_with_three_named_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G3-07: one kills its worker each time, one raises, one's result is lost, Redis is restarted once. No
    chord waits for them: the report is made of the rows that are there."""
    monkeypatch.setattr(dispatch, "RETRY_AFTER_S", (0.0, 0.0))
    line = Line(tmp_path)
    points = [case(seq=33 + n) for n in range(120)]
    kills, raises, loses = (points[n].case_id for n in (20, 80, 100))
    (tmp_path / "acts.txt").write_text(f"{kills} kill-it\n{raises} raise-it\n{loses} lose-it\n", "utf-8")
    jobs = [replace(line.stock.job(p.case_id), code_hash=code_hash(p), deadline_ms=1000) for p in points]
    devices = [device(d, serial=d, soc=SOC) for d in (ONE, TWO)]
    planned = results(
        points=points, devices=devices, run=run_info("20261201T010000Z-night-g307", finished=False)
    )
    manifest = Manifest(planned, {ONE: jobs[:60], TWO: jobs[60:]}, line.stock.store.url, "nightly")
    folder = RunFolder.create(tmp_path / "out", manifest)
    limits = DispatchLimits(batch=BatchLimits(cases=1, many=1), stalled_s=20.0)
    line.redis.start()
    broker = Broker(line.url)
    try:
        with ExitStack() as workers:
            night = Night(line, workers, restart_after=60)
            found = carry_out(folder, broker, night, tmp_path / "out", limits=limits)
    finally:
        broker.close()
        line.redis.kill()
    finished = finish_run(folder, found, Settings(out=tmp_path / "out"), TODAY, Gate())
    assert finished.reports.index.is_file()
    assert finished.summary.exit_code != 0
    verdicts = Counter(t.verdict for t in found.trials)
    assert verdicts == {Verdict.PASS: 117, Verdict.CRASHED: 1, Verdict.INFRA: 1}
    reasons = {t.case_id: t.reason for t in found.trials if t.reason}
    assert reasons.keys() == {kills, raises}
    assert "it ended 2 workers in run" in reasons[kills]
    assert reasons[raises] == "KeyError: 'it'"
    assert [(m.device_id, m.case_id) for m in found.missing] == [(TWO, loses)]
    assert "no news for" in found.missing[0].why
    assert night.deaths == 2

"""What the service does with submissions, children that die, outages, and its own end."""

from dataclasses import replace

import pytest

from orchestrator.domain.errors import InfraError, WireError
from orchestrator.domain.run_state import RunState
from orchestrator.domain.submission import Submission
from orchestrator.execution.service.orchestrator import AGAIN_AFTER_S, BUSY_S
from tests.unit.execution.service.fakes import STARTED, Bench, submission

ONE, TWO = submission(1), submission(2)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_submission_becomes_one_run_and_is_struck_off_at_its_end(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick(10)
    assert len(bench.house.children[ONE.run_id]) == 1
    assert bench.farm.states[ONE.run_id].phase == "preparing"
    assert bench.farm.states[ONE.run_id].user == "ann@desk"
    bench.house.end(ONE.run_id, exit_code=1)
    bench.tick()
    state = bench.farm.states[ONE.run_id]
    assert (state.phase, state.exit_code, state.host) == ("finished", 1, "server")
    assert state.verdict == "all passed"
    assert state.report.endswith("index.html")
    assert not bench.farm.waiting
    assert not bench.house.on_disk
    bench.tick(5)
    assert len(bench.house.children[ONE.run_id]) == 1


def test_what_the_child_said_of_its_end_stays(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    said = replace(bench.farm.states[ONE.run_id], phase="cancelled", why="wrong branch", exit_code=3)
    bench.farm.states[ONE.run_id] = said
    bench.house.end(ONE.run_id, exit_code=3)
    bench.tick()
    assert bench.farm.states[ONE.run_id] == said


def test_a_killed_service_goes_on_with_what_it_had_begun_even_if_redis_lost_it(bench: Bench) -> None:
    bench.farm.submit(ONE, TWO)
    bench.tick()
    bench.farm.waiting.pop(TWO.run_id)
    bench.farm.states.clear()
    bench.house.elsewhere = {ONE.run_id}
    bench.house.die(ONE.run_id, -15)
    bench.house.die(TWO.run_id, -15)
    bench.restart()
    bench.tick()
    assert bench.living() == [TWO.run_id], "a child of the killed service still carries the other one out"
    bench.house.elsewhere.clear()
    bench.wait(BUSY_S)
    assert sorted(bench.living()) == [ONE.run_id, TWO.run_id]
    bench.house.end(TWO.run_id)
    bench.tick()
    assert bench.farm.states[TWO.run_id].phase == "finished"


def test_an_end_that_no_service_saw_is_told_by_the_next_one(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    bench.house.end(ONE.run_id)
    bench.restart()
    bench.tick()
    assert bench.farm.states[ONE.run_id].phase == "finished"
    assert len(bench.house.children[ONE.run_id]) == 1
    assert not bench.farm.waiting


def test_a_run_that_another_orchestrator_finished_meanwhile_is_left_alone(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    bench.house.die(ONE.run_id)
    bench.farm.strike_off(ONE.run_id)
    bench.farm.states[ONE.run_id] = replace(bench.farm.states[ONE.run_id], phase="finished", host="other")
    bench.restart()
    bench.tick()
    assert len(bench.house.children[ONE.run_id]) == 1
    assert not bench.house.on_disk


def test_a_child_that_dies_is_started_again_with_growing_waits_then_the_run_has_failed(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    for count, wait_s in enumerate(AGAIN_AFTER_S, start=1):
        bench.house.die(ONE.run_id)
        bench.tick()
        bench.wait(wait_s * 0.9)
        assert len(bench.house.children[ONE.run_id]) == count
        bench.wait(wait_s * 0.2)
        assert len(bench.house.children[ONE.run_id]) == count + 1
    bench.house.die(ONE.run_id)
    bench.tick()
    state = bench.farm.states[ONE.run_id]
    assert state.phase == "failed"
    assert "exit code -9: tilefarm: no space left" in state.why
    assert f"`tilefarm run --resume {ONE.run_id}`" in state.why
    assert not bench.farm.waiting
    bench.wait(3600)
    assert len(bench.house.children[ONE.run_id]) == len(AGAIN_AFTER_S) + 1


def test_nothing_is_blamed_on_a_run_while_redis_is_away(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    for _ in range(len(AGAIN_AFTER_S) + 1):
        bench.farm.away = True
        bench.tick()
        bench.house.die(ONE.run_id, 3)
        bench.tick()
        assert not bench.living()
        bench.farm.away = False
        bench.tick()
        assert bench.living() == [ONE.run_id]
    bench.farm.away = True
    bench.house.end(ONE.run_id)
    bench.tick()
    bench.farm.away = False
    bench.tick()
    assert bench.farm.states[ONE.run_id].phase == "finished"


@pytest.mark.parametrize("run_id", [TWO.run_id, "../../etc", "x" * 500, "\udcff\udcfe", "\x1b[2J"])
def test_a_broken_submission_is_refused_and_stops_no_other(bench: Bench, run_id: str) -> None:
    bench.farm.waiting[run_id] = WireError("wire version 7; this Tilefarm reads 1")
    bench.farm.submit(ONE)
    bench.tick()
    assert bench.living() == [ONE.run_id]
    assert set(bench.farm.waiting) == {ONE.run_id}
    told = {TWO.run_id, "../../etc"} & {run_id}
    assert {s.run_id: s.why for s in bench.farm.states.values() if s.phase == "failed"} == dict.fromkeys(
        told, "refused: wire version 7; this Tilefarm reads 1"
    )


def test_a_manifest_that_is_not_fit_is_refused_and_one_that_cannot_be_read_is_tried_again(
    bench: Bench,
) -> None:
    tries = 0

    def taking(submitted: Submission) -> None:
        nonlocal tries
        if submitted == ONE:
            raise WireError("manifest aaaaaaaaaaaa: planned: Field required")
        tries += 1
        if tries < 3:
            raise InfraError("blob cannot be read")

    bench.house.taking = taking
    bench.farm.submit(ONE, TWO)
    bench.tick()
    assert bench.farm.states[ONE.run_id].why.startswith("refused: manifest")
    assert set(bench.farm.waiting) == {TWO.run_id}
    bench.wait(AGAIN_AFTER_S[0])
    bench.wait(AGAIN_AFTER_S[1])
    assert bench.living() == [TWO.run_id]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("a fault of ours")])
def test_a_process_that_cannot_be_started_keeps_no_other_from_it(bench: Bench, error: Exception) -> None:
    def starting(submitted: Submission) -> None:
        if submitted == ONE:
            raise error

    bench.house.starting = starting
    bench.farm.submit(ONE, TWO)
    bench.tick()
    assert bench.living() == [TWO.run_id]


def test_a_run_whose_folder_cannot_be_made_can_be_cancelled(bench: Bench) -> None:
    def taking(_: Submission) -> None:
        raise InfraError("blob \udcff cannot be read")

    bench.house.taking = taking
    bench.farm.submit(ONE)
    bench.tick()
    bench.farm.ended[ONE.run_id] = "cancelled by bob@desk"
    bench.wait(AGAIN_AFTER_S[0])
    assert bench.farm.states[ONE.run_id].phase == "cancelled"
    assert not bench.farm.waiting
    assert not bench.house.on_disk


def test_an_end_that_cannot_be_told_keeps_no_other_from_it(bench: Bench) -> None:
    bench.farm.submit(ONE, TWO)
    bench.tick()

    def forgetting(run_id: str) -> None:
        if run_id == ONE.run_id:
            raise OSError(30, "Read-only file system")

    bench.house.forgetting = forgetting
    bench.house.end(ONE.run_id)
    bench.house.end(TWO.run_id)
    bench.tick()
    assert {s.phase for s in bench.farm.states.values()} == {"finished"}
    assert TWO.run_id not in bench.house.on_disk


def test_places_go_to_ondemand_runs_first_and_nights_leave_half_of_them(bench: Bench) -> None:
    nights = [submission(n, "nightly") for n in range(1, 5)]
    bench.farm.submit(*reversed(nights))
    bench.tick()
    assert bench.living() == [nights[0].run_id, nights[1].run_id]
    soon = [submission(n) for n in range(5, 9)]
    bench.farm.submit(*reversed(soon))
    bench.tick()
    assert bench.living()[2:] == [soon[0].run_id, soon[1].run_id]
    bench.house.end(nights[0].run_id)
    bench.tick()
    assert bench.living()[-1] == soon[2].run_id


def test_a_night_runs_where_only_one_run_may(bench: Bench) -> None:
    bench = Bench(at_once=1)
    bench.farm.submit(submission(1, "nightly"), submission(2, "nightly"))
    bench.tick()
    assert bench.living() == [f"{STARTED}1"]


@pytest.mark.parametrize("struck_off", [True, False], ids=["by the person's command", "not yet"])
def test_a_run_that_was_cancelled_before_it_began_is_never_started(bench: Bench, struck_off: bool) -> None:
    bench = Bench(at_once=1)
    bench.farm.submit(ONE, TWO)
    bench.tick()
    bench.farm.ended[TWO.run_id] = "cancelled by bob@desk"
    if struck_off:
        bench.farm.strike_off(TWO.run_id)
    bench.house.end(ONE.run_id)
    bench.tick(5)
    assert list(bench.house.children) == [ONE.run_id]
    assert not bench.farm.waiting
    if not struck_off:
        assert bench.farm.states[TWO.run_id].phase == "cancelled"
        assert bench.farm.states[TWO.run_id].why == "cancelled by bob@desk"


def test_a_run_that_was_cancelled_while_it_ran_has_its_report_and_says_so(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    bench.farm.ended[ONE.run_id] = "cancelled by bob@desk"
    bench.house.end(ONE.run_id, exit_code=3)
    bench.tick()
    state = bench.farm.states[ONE.run_id]
    assert (state.phase, state.why, state.exit_code) == ("cancelled", "cancelled by bob@desk", 3)
    assert state.report


def test_a_run_that_was_cancelled_while_the_service_was_down_has_its_report_too(bench: Bench) -> None:
    """What it measured before stays."""
    bench.farm.submit(ONE)
    bench.tick()
    bench.house.die(ONE.run_id)
    bench.farm.ended[ONE.run_id] = "cancelled by bob@desk"
    bench.restart()
    bench.tick()
    assert len(bench.house.children[ONE.run_id]) == 2, "a child that finds it cancelled, and reports"
    bench.house.end(ONE.run_id, exit_code=3)
    bench.tick()
    state = bench.farm.states[ONE.run_id]
    assert (state.phase, state.exit_code, bool(state.report)) == ("cancelled", 3, True)
    assert not bench.house.on_disk


def test_the_service_ends_in_order_and_its_successor_goes_on(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    bench.service.stop()
    child = bench.house.children[ONE.run_id][0]
    assert child.asked
    assert bench.service.children == 1
    bench.farm.submit(TWO)
    bench.house.die(ONE.run_id, 130)
    bench.tick()
    assert bench.service.children == 0
    assert TWO.run_id not in bench.house.children
    assert set(bench.farm.waiting) == {ONE.run_id, TWO.run_id}
    bench.restart()
    bench.tick()
    assert bench.living() == [ONE.run_id, TWO.run_id]


def test_an_orchestrator_that_does_not_lead_ends_its_children_and_begins_nothing(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    bench.farm.leads = False
    bench.farm.submit(TWO)
    bench.tick()
    assert bench.house.children[ONE.run_id][0].asked
    bench.house.die(ONE.run_id, 130)
    bench.tick(10)
    assert not bench.living()
    bench.farm.leads = True
    bench.tick()
    assert bench.living() == [ONE.run_id, TWO.run_id]


def test_the_state_that_a_dispatcher_left_is_kept_when_the_run_fails(bench: Bench) -> None:
    bench.farm.submit(ONE)
    bench.tick()
    left = RunState(ONE.run_id, "smoke", "ann@desk", "ondemand", "running", "start", "now", "server")
    bench.farm.states[ONE.run_id] = left
    for wait_s in (*AGAIN_AFTER_S, 0):
        bench.house.die(ONE.run_id)
        bench.tick()
        bench.wait(wait_s)
    state = bench.farm.states[ONE.run_id]
    assert (state.phase, state.started_at) == ("failed", "start")

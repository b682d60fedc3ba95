"""A fair share of each device between people, decided by each run's dispatcher alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.event import Progress
from orchestrator.domain.job import CaseJob
from orchestrator.domain.run_state import RunState, Target
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.dispatch import DispatchLimits
from orchestrator.execution.lanes import MANY_CASES, WINDOW, BatchLimits
from orchestrator.execution.turns import AGE_S, ONDEMAND_SHARE
from orchestrator.planning.plan import BATCH_S
from tests.unit.execution.fake_farm import FakeFarm, Notes, passes, silent, trial_of
from tests.unit.execution.test_dispatch import RUN, dispatch, farm, job, new_folder, notes

__all__ = ["farm", "notes"]
BEHIND_OTHERS = DispatchLimits(BatchLimits(cases=12), silent_s=900.0)
"""While these get something done, nobody is silent."""


def other_run(user: str, started_at: str = "2026-11-30T23:00:00+00:00", left: int = 5) -> RunState:
    target = Target("phone", "SM8650", "Phone", total=9, done=9 - left, devices=["phone"])
    return RunState(
        run_id="20261130T230000Z-smoke-bbbb",
        suite="smoke",
        user=user,
        lane="ondemand",
        phase="running",
        started_at=started_at,
        updated_at=started_at,
        host="desk",
        targets=[target],
        live=True,
    )


def test_no_more_than_two_batches_of_a_device_stand_before_those_of_others(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(100)]})
    seen: list[int] = []
    farm.verdicts = silent
    farm.at_poll = {3: lambda: seen.append(len(farm.sent)), 4: lambda: setattr(farm, "verdicts", passes)}
    farm.at_poll[5] = farm.restart  # what was silent would never be heard of
    assert dispatch(farm, folder, notes) == {}
    assert seen == [WINDOW]
    assert len(folder.trials()) == 100


def test_a_persons_runs_on_a_device_follow_each_other(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    farm.others = [other_run("anna@desk")]
    ends = {10: lambda: setattr(farm, "others", [replace(farm.others[0], phase="finished")])}
    seen: list[int] = []
    farm.at_poll = {9: lambda: seen.append(len(farm.sent)), **ends}
    assert dispatch(farm, new_folder(tmp_path, {"phone": [job(1)]}), notes) == {}
    assert (seen, len(farm.sent)) == ([0], 1)


@pytest.mark.parametrize(
    "other",
    [
        other_run("ben@desk"),
        replace(other_run("anna@desk"), lane="nightly"),
        replace(other_run("anna@desk"), live=False),
        other_run("anna@desk", left=0),
        other_run("anna@desk", started_at="2026-12-02T01:00:00+00:00"),
        replace(other_run("anna@desk"), targets=[Target("tablet", "SM8650", "", 9, devices=["tablet"])]),
    ],
    ids=["another person", "another lane", "nobody carries it out", "has all it wants", "later", "elsewhere"],
)
def test_nobody_waits_for_other_runs(farm: FakeFarm, notes: Notes, tmp_path: Path, other: RunState) -> None:
    farm.others = [other]
    dispatch(farm, new_folder(tmp_path, {"phone": [job(1)]}), notes)
    assert farm.polls == 1


def test_nightly_work_that_waits_for_long_has_one_turn_among_runs_on_demand(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    assert pytest.approx(BATCH_S) == AGE_S * (1 - ONDEMAND_SHARE)
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(2)]}, "nightly")
    farm.verdicts = silent
    polls = int(AGE_S / 0.5)
    begins = Progress("phone", "batch")

    def end() -> None:
        for n in range(2):
            farm.tell(RUN, trial_of(RUN, "phone", job(n), Verdict.PASS))

    farm.at_poll = {
        2 * polls: lambda: farm.tell(RUN, begins),  # the copy had its turn, and another one waits as long
        int(3.5 * polls): end,
    }
    assert dispatch(farm, folder, notes, limits=BEHIND_OTHERS) == {}
    assert [lane for _, lane in farm.sent] == ["nightly", "ondemand", "ondemand"]
    assert len({batch.batch_id for batch, _ in farm.sent}) == 1, "copies of one batch"


def test_what_follows_a_batch_waits_and_is_what_is_copied(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    """While one batch runs nothing waits; once it is over, the next one does, though it was sent long ago."""
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(20)]}, "nightly")
    farm.verdicts = silent
    polls = int(AGE_S / 0.5)
    waited: list[bool] = []

    def told() -> None:
        waited.append(bool(farm.states[-1].targets[0].waiting_since))

    def begin(number: int) -> None:
        farm.tell(RUN, Progress("phone", "batch", detail=farm.sent[number][0].batch_id))

    def end(number: int) -> None:
        for case in farm.sent[number][0].cases:
            farm.tell(RUN, trial_of(RUN, "phone", case, Verdict.PASS))

    farm.at_poll = {
        10: lambda: begin(0),
        20: told,
        2 * polls: lambda: end(0),
        2 * polls + 10: told,
        2 * polls + 20: lambda: end(1),
    }
    assert dispatch(farm, folder, notes, limits=BEHIND_OTHERS) == {}
    assert waited == [False, True]
    running, following, copy = (batch for batch, _ in farm.sent)
    assert copy == following != running


def test_who_waits_behind_others_that_get_on_is_not_stalled(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    """Also for longer than a stalled worker would be given."""
    farm.verdicts = silent

    def others_get_on(done: int) -> None:
        ben = other_run("ben@desk")
        farm.others = [replace(ben, targets=[replace(ben.targets[0], done=done)])]

    farm.at_poll = {n: lambda n=n: others_get_on(n) for n in range(100, 4000, 100)}
    farm.at_poll[4001] = lambda: farm.tell(RUN, trial_of(RUN, "phone", job(1), Verdict.PASS))
    assert dispatch(farm, new_folder(tmp_path, {"phone": [job(1)]}), notes) == {}


def test_others_that_stand_still_too_keep_nobody_waiting(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    farm.verdicts = silent
    farm.others = [other_run("ben@desk")]
    lost = dispatch(farm, new_folder(tmp_path, {"phone": [job(1)]}), notes)
    assert lost["phone", "case-1"].startswith("no news for 9")


def slow(job: CaseJob) -> int:
    return 4 * job.estimate_ms


def test_batches_get_their_size_from_what_cases_took(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    """A plan that is wrong by four makes batches of four minutes, until the first results are in."""
    jobs = [replace(job(n), estimate_ms=6_000) for n in range(40)]
    farm.took_ms = slow
    dispatch(farm, new_folder(tmp_path, {"phone": jobs}), notes)
    sizes = [len(b.cases) for b, _ in farm.sent]
    assert sizes[:2] == [10, 10]
    assert set(sizes[2:]) == {2}


def test_batches_of_short_cases_grow_once_their_times_are_known(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    jobs = [replace(job(n), estimate_ms=100) for n in range(300)]
    farm.took_ms = lambda job: job.estimate_ms
    dispatch(farm, new_folder(tmp_path, {"phone": jobs}), notes)
    sizes = [len(b.cases) for b, _ in farm.sent]
    assert sizes[:3] == [12, 12, MANY_CASES]


def test_everybody_is_told_how_far_the_run_is(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    farm.at_poll = {1: lambda: farm.tell(RUN, Progress("phone", "waiting", detail="hot: 41 °C"))}
    farm.verdicts = lambda j: Verdict.PASS if farm.polls > 8 or j.case_id == "case-0" else None
    farm.at_poll[9] = farm.restart
    jobs = [replace(job(n), estimate_ms=2_000) for n in range(3)]
    dispatch(farm, new_folder(tmp_path, {"phone": jobs}), notes)
    state = farm.states[0]
    assert (state.run_id, state.user, state.lane, state.phase) == (RUN, "anna@desk", "ondemand", "running")
    (target,) = state.targets
    assert (target.device_id, target.devices, target.total) == ("phone", ["phone"], 3)
    assert (target.done, target.flying, target.left_s) == (1, 2, 4.0)
    assert target.waiting_since
    assert target.why == "hot: 41 °C"

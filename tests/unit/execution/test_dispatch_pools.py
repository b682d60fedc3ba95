"""Cases for any phone of a SoC, and phones that stand in for one that infrastructure lost."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.dispatch import REDISPATCHES
from orchestrator.execution.lanes import DOUBT_S, WINDOW, Lane
from orchestrator.execution.manifest import Manifest, Pool, pool_id
from orchestrator.execution.run_folder import RunFolder
from tests.results_fixture import device, results, run_info
from tests.unit.execution.fake_farm import FakeFarm, Notes, passes, silent
from tests.unit.execution.pool_farm import PoolFarm
from tests.unit.execution.test_dispatch import LIMITS, RUN, canary, dispatch, farm, job, notes

__all__ = ["farm", "notes"]
PHONES = ["one", "two", "three"]
SOC = device("one").soc.name
POOL = pool_id(0, SOC)


def folder_with(
    out: Path,
    *,
    pooled: int = 0,
    planned: Mapping[str, list[int]] | None = None,
    reserve: list[DeviceRecord] | None = None,
) -> RunFolder:
    """``planned``: device → numbers of its own cases; every phone is able to do all cases."""
    jobs = {d: [job(n) for n in (planned or {}).get(d, ())] for d in planned or PHONES}
    able = [f"case-{n}" for n in range(9)]
    manifest = Manifest(
        results(devices=[device(d) for d in jobs], run=run_info(RUN, finished=False)),
        jobs,
        "memory://blobs",
        "ondemand",
        pools={POOL: Pool(SOC, PHONES, [job(n) for n in range(pooled)], [canary("gles")])} if pooled else {},
        able={d: list(able) for d in PHONES},
        reserve=reserve or [],
    )
    return RunFolder.create(out, manifest)


def test_a_pools_batches_are_for_any_of_its_phones(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    farm.workers = {"two": "worker-2"}
    folder = folder_with(tmp_path, pooled=3)
    assert dispatch(farm, folder, notes) == {}
    ((batch, _),) = farm.sent
    assert (batch.device_id, batch.soc, batch.only_on, batch.planned_for) == ("", SOC, PHONES, POOL)
    assert [c.expected.gpu_ns for c in batch.canaries] == [0]
    trials = list(folder.trials().values())
    assert {(t.device_id, t.target) for t in trials} == {("two", POOL)}
    done = folder.finish("", "now", {})
    assert done.missing == []
    assert len(done.trials) == 3
    assert folder.unfinished() == {"one": [], "two": [], "three": [], POOL: []}


@pytest.mark.parametrize("there", [PHONES, ["two"]], ids=len)
def test_all_phones_of_a_pool_work_at_once_and_one_more_batch_follows(
    farm: FakeFarm, notes: Notes, tmp_path: Path, there: list[str]
) -> None:
    """What is queued for phones without a worker would only stand before other people's work."""
    farm.workers = {name: f"worker-{name}" for name in there}
    farm.verdicts, seen = silent, list[int]()
    farm.at_poll = {3: lambda: seen.append(len(farm.sent)), 4: lambda: setattr(farm, "verdicts", passes)}
    farm.at_poll[5] = farm.restart  # what was silent would never be heard of
    assert dispatch(farm, folder_with(tmp_path, pooled=100), notes) == {}
    assert seen == [len(there) + WINDOW - 1]


def test_a_pool_without_any_worker_is_missing_by_name(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    farm.workers = {}
    folder = folder_with(tmp_path, pooled=1)
    lost = dispatch(farm, folder, notes)
    assert lost == {(POOL, "case-0"): "no worker for 60 s"}
    assert [(m.device_id, m.case_id) for m in folder.finish("", "now", lost).missing] == [("one", "case-0")]


def test_what_infrastructure_kept_one_phone_from_is_tried_on_another(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    farm.workers = {d: f"worker-{d}" for d in PHONES}
    folder = folder_with(tmp_path, planned={"one": [0], "two": [1], "three": [0]})
    farm.verdicts = lambda j: Verdict.INFRA if (j.case_id, j.attempt) == ("case-1", 1) else Verdict.PASS
    assert dispatch(farm, folder, notes) == {}
    again = farm.sent[-1][0]
    assert (again.device_id, again.only_on, again.planned_for) == ("", ["one", "three"], "two")
    done = folder.finish("", "now", {})
    assert [(t.device_id, t.verdict) for t in done.trials if t.case_id == "case-1"] == [("one", Verdict.PASS)]
    assert done.missing == []


def test_nobody_does_a_case_twice_for_two_phones(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    """All others have the case themselves: its own phone tries again."""
    farm.workers = {d: f"worker-{d}" for d in PHONES}
    folder = folder_with(tmp_path, planned={d: [0] for d in PHONES})
    failed: list[str] = []

    def first_fails(j: object) -> Verdict:
        failed.append("once")
        return Verdict.INFRA if len(failed) == 1 else Verdict.PASS

    farm.verdicts = first_fails
    dispatch(farm, folder, notes)
    assert farm.sent[-1][0].device_id == "one"
    assert len(folder.finish("", "now", {}).trials) == 3


def test_a_phone_that_is_gone_leaves_its_cases_to_those_that_stand_in(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    """Also to one that nothing was planned for, and that then has its place in the results."""
    farm.workers = {"three": "worker-3"}
    folder = folder_with(tmp_path, planned={"one": [0, 1], "two": []}, reserve=[device("three")])
    assert dispatch(farm, folder, notes) == {}
    done = folder.finish("", "now", {})
    assert {(t.device_id, t.planned_for) for t in done.trials} == {("three", "one")}
    assert [d.device_id for d in done.devices] == ["one", "two", "three"]


def test_virtual_phones_do_not_stand_in_for_real_ones(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    farm.workers = {"three": "worker-3"}
    virtual = replace(device("three"), virtual=not device("one").virtual)
    folder = folder_with(tmp_path, planned={"one": [0], "two": []}, reserve=[virtual])
    assert dispatch(farm, folder, notes) == {("one", "case-0"): "no worker for 60 s"}


def test_a_pools_worker_that_dies_loses_nothing(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    farm.workers = {"one": "worker-1", "two": "worker-2"}
    farm.verdicts = silent

    def dies() -> None:
        farm.workers["two"] = "worker-2b"
        farm.verdicts = lambda j: Verdict.PASS

    farm.at_poll = {3: dies}
    folder = folder_with(tmp_path, pooled=2)
    assert dispatch(farm, folder, notes) == {}
    assert len(folder.trials()) == 2, "one result each, whichever phones did it"


def test_a_host_that_restarts_with_all_its_phones_costs_a_pool_nothing(
    farm: FakeFarm, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight workers are replaced, 3 s apart, before the next result."""
    phones = [f"phone-{n}" for n in range(8)]
    monkeypatch.setattr(__name__ + ".PHONES", phones)
    farm.workers = dict.fromkeys(phones, "worker")
    farm.verdicts = silent

    def registers(device_id: str) -> None:
        farm.workers[device_id] = "another worker"
        if device_id == phones[-1]:
            farm.verdicts = passes

    farm.at_poll = {6 * n: lambda d=d: registers(d) for n, d in enumerate(phones, start=1)}
    folder = folder_with(tmp_path, pooled=100)
    assert dispatch(farm, folder, notes) == {}
    assert len(folder.trials()) == 100


def test_a_phone_whose_worker_dies_again_and_again_costs_its_pool_nothing(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    farm.workers = dict.fromkeys(PHONES, "worker")
    farm.verdicts = silent
    farm.at_poll = {n: lambda n=n: farm.workers.update(two=f"worker-{n}") for n in range(2, 20)}
    farm.at_poll[20] = lambda: (farm.workers.update(two="the last"), setattr(farm, "verdicts", passes))[1]
    folder = folder_with(tmp_path, pooled=100)
    assert dispatch(farm, folder, notes) == {}
    assert len(folder.trials()) == 100


@pytest.mark.parametrize("there", [PHONES, ["one", "two"]], ids=len)
def test_a_pool_is_given_up_once_each_of_its_phones_lost_its_worker_too_often(
    farm: FakeFarm, notes: Notes, tmp_path: Path, there: list[str]
) -> None:
    """Phones without a worker keep nobody waiting for it."""
    farm.workers = dict.fromkeys(there, "worker")
    farm.verdicts = silent

    def replaced(number: int) -> None:
        farm.workers[there[number % len(there)]] = f"worker-{number}"

    farm.at_poll = {n + 2: lambda n=n: replaced(n) for n in range(100)}
    lost = dispatch(farm, folder_with(tmp_path, pooled=2), notes)
    times = ", ".join(f"{d} {REDISPATCHES + 1} times" for d in sorted(there))
    why = f"the workers of its phones died without a result between: {times}"
    assert lost == {(POOL, "case-0"): why, (POOL, "case-1"): why}
    assert farm.polls == 1 + (REDISPATCHES + 1) * len(there)


def pool_farm(opening_s: float = 0.0) -> PoolFarm:
    return PoolFarm(workers=dict.fromkeys(PHONES, "worker"), opening_s=opening_s)


def cases_sent(farm: FakeFarm) -> Counter[str]:
    return Counter(case_id for case_id, _ in farm.attempts())


def test_a_worker_that_dies_costs_the_other_phones_of_its_pool_no_second_measurement(
    notes: Notes, tmp_path: Path
) -> None:
    """Neither what they have in hand nor what stands in the queue is sent again."""
    farm, lost = pool_farm(), list[str]()

    def dies() -> None:
        lost.extend(job.case_id for job in farm.hands["two"].cases)
        farm.kill("two")

    farm.at_poll = {20: dies}
    assert dispatch(farm, folder_with(tmp_path, pooled=100), notes) == {}
    assert [case for case, times in cases_sent(farm).items() if times > 1] == lost
    assert set(farm.measured.values()) == {1}
    assert len(farm.measured) == 100


def test_what_a_worker_had_taken_before_it_said_so_is_sent_again(notes: Notes, tmp_path: Path) -> None:
    """The other phones say meanwhile what they have taken, and the rest begins in its turn."""
    farm = pool_farm(opening_s=5)
    farm.at_poll = {4: lambda: farm.kill("two")}
    assert dispatch(farm, folder_with(tmp_path, pooled=100), notes) == {}
    assert set(farm.measured.values()) == {1}
    assert len(farm.measured) == 100
    assert farm.clock < 1000 + LIMITS.silent_s


def test_workers_that_end_their_batches_and_are_replaced_cost_nothing(notes: Notes, tmp_path: Path) -> None:
    """An agent is restarted: all its phones find their queue as it was, one after the other."""
    farm = pool_farm(opening_s=2)
    farm.at_poll = {20: lambda: farm.resting.update(PHONES)}
    farm.at_poll |= {100 + 6 * n: lambda d=d: farm.start(d) for n, d in enumerate(PHONES)}
    assert dispatch(farm, folder_with(tmp_path, pooled=100), notes) == {}
    assert set(cases_sent(farm).values()) == {1}
    assert set(farm.measured.values()) == {1}


def test_what_a_new_worker_has_begun_is_not_what_the_dead_one_had(notes: Notes, tmp_path: Path) -> None:
    """It registers, takes a batch and says so between two looks at who is registered."""
    farm = pool_farm()
    farm.at_poll = {20: lambda: farm.resting.add("two"), 100: lambda: farm.start("two")}
    assert dispatch(farm, folder_with(tmp_path, pooled=100), notes) == {}
    assert set(cases_sent(farm).values()) == {1}
    assert set(farm.measured.values()) == {1}


def test_what_a_phone_had_before_it_began_another_batch_is_sent_again() -> None:
    """The word of it came late, and was taken for the new worker's."""
    lane = Lane(POOL, PHONES, SOC, pool=True)
    sent: list[str] = []
    for n in range(WINDOW):
        lane.add(job(n))
        batch = lane.due("memory://blobs", RUN, LIMITS.batch, 0.0, dict.fromkeys(PHONES, SOC))
        assert batch is not None
        lane.sent(batch)
        sent.append(batch.batch_id)
    for at, batch_id in enumerate(sent):
        lane.begin(batch_id, "two", float(at))
    lane.recall_doubtful(1.0 + DOUBT_S)
    assert list(lane.flights) == sent[1:]

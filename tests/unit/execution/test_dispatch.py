"""The loop between plan and run folder: nothing lost, nothing twice, and always an end."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.event import Progress
from orchestrator.domain.job import CanaryJob, CaseJob
from orchestrator.domain.names import Lane
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.dispatch import INFRA_ATTEMPTS, REDISPATCHES, Dispatcher, DispatchLimits
from orchestrator.execution.lanes import BatchLimits
from orchestrator.execution.run_folder import Manifest, RunFolder
from tests.results_fixture import device, results, run_info
from tests.unit.execution.fake_farm import FakeFarm, Notes, passes, silent, trial_of

RUN = "20261201T010000Z-smoke-aaaa"
LIMITS = DispatchLimits(BatchLimits(cases=12), gone_s=60, stalled_s=900)


def job(number: int, attempt: int = 1) -> CaseJob:
    return CaseJob(f"case-{number}", attempt, f"label {number}", "gles", "c0de", [], [], [])


def new_folder(
    out: Path,
    jobs: Mapping[str, list[CaseJob]],
    lane: Lane = "ondemand",
    canaries: Mapping[str, list[CanaryJob]] | None = None,
) -> RunFolder:
    planned = results(devices=[device(d) for d in jobs], run=run_info(RUN, finished=False))
    manifest = Manifest(planned, dict(jobs), "memory://blobs", lane, dict(canaries or {}), user="anna@desk")
    return RunFolder.create(out, manifest)


@pytest.fixture
def farm() -> FakeFarm:
    return FakeFarm(workers={"phone": "worker-1"})


@pytest.fixture
def notes() -> Notes:
    return Notes()


def dispatch(
    farm: FakeFarm,
    folder: RunFolder,
    notes: Notes,
    limits: DispatchLimits = LIMITS,
    absent: Mapping[str, str] | None = None,
) -> dict[tuple[str, str], str]:
    dispatcher = Dispatcher(farm, folder, limits=limits, now=farm.now, sleep=farm.sleep)
    return dispatcher.run(folder.unfinished(), notes, absent)


def on_disk(folder: RunFolder) -> list[tuple[str, int, Verdict]]:
    return [(t.case_id, t.attempt, t.verdict) for t in folder.trials().values()]


def test_every_case_is_sent_once_in_order_in_batches(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(30)]}, "nightly")
    assert dispatch(farm, folder, notes) == {}
    assert farm.attempts() == [(f"case-{n}", 1) for n in range(30)]
    assert [(len(b.cases), lane) for b, lane in farm.sent] == [
        (12, "nightly"),
        (12, "nightly"),
        (6, "nightly"),
    ]
    assert len({b.batch_id for b, _ in farm.sent}) == 3
    assert {(b.run_id, b.device_id, b.blob_store) for b, _ in farm.sent} == {(RUN, "phone", "memory://blobs")}
    assert [t.case_id for t in notes.trials] == [f"case-{n}" for n in range(30)]


def test_nothing_to_do_ends_at_once(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    assert dispatch(farm, new_folder(tmp_path, {"phone": []}), notes) == {}
    assert (farm.sent, notes.ticks) == ([], 0)


def test_a_trial_is_on_disk_before_anybody_hears_of_it(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1), job(2)]})

    def check(trial: Trial) -> None:
        assert trial.key in folder.trials()

    notes.on_trial = check
    dispatch(farm, folder, notes)
    assert len(notes.trials) == 2


def test_a_result_that_comes_twice_counts_once(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1), job(2)]})
    first = trial_of(RUN, "phone", job(1), Verdict.MISMATCH)
    farm.at_poll = {1: lambda: farm.tell(RUN, first), 2: lambda: farm.tell(RUN, first)}
    farm.verdicts = lambda j: Verdict.PASS if j.case_id == "case-2" and farm.polls >= 2 else None
    farm.at_poll[3] = lambda: farm.tell(RUN, trial_of(RUN, "phone", job(2), Verdict.PASS))
    dispatch(farm, folder, notes)
    assert on_disk(folder) == [("case-1", 1, Verdict.MISMATCH), ("case-2", 1, Verdict.PASS)]
    assert (folder.path / "trials.jsonl").read_bytes().count(b"\n") == 2
    assert [t.case_id for t in notes.trials] == ["case-1", "case-2"]


def test_infra_is_tried_again_and_a_verdict_ends_it(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1)]})
    farm.verdicts = lambda j: Verdict.INFRA if j.attempt == 1 else Verdict.MISMATCH
    assert dispatch(farm, folder, notes) == {}
    assert farm.attempts() == [("case-1", 1), ("case-1", 2)]
    assert on_disk(folder) == [("case-1", 1, Verdict.INFRA), ("case-1", 2, Verdict.MISMATCH)]
    assert [(t.attempt, t.verdict) for t in notes.trials] == [(2, Verdict.MISMATCH)]


def test_infra_is_tried_three_times_and_then_stands(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1), job(2)]})
    farm.verdicts = lambda j: Verdict.INFRA if j.case_id == "case-1" else Verdict.PASS
    assert dispatch(farm, folder, notes) == {}
    assert INFRA_ATTEMPTS == 3
    assert [a for c, a in farm.attempts() if c == "case-1"] == [1, 2, 3]
    assert [(t.case_id, t.attempt) for t in notes.trials] == [("case-2", 1), ("case-1", 3)]
    assert folder.finish("", "now", {}).missing == []


def test_g1_17_what_is_tried_again_drags_nobody_along(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    """G1-17: one case that breaks the device spoils a batch once; then each has a batch of its own."""
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(4)]})
    farm.verdicts = lambda j: Verdict.INFRA if j.attempt == 1 or j.case_id == "case-2" else Verdict.PASS
    assert dispatch(farm, folder, notes) == {}
    assert [len(b.cases) for b, _ in farm.sent] == [4, 1, 1, 1, 1, 1]
    ends = {case_id: verdict for case_id, _, verdict in on_disk(folder)}
    assert [v for v in ends.values() if v is not Verdict.PASS] == [ends["case-2"]] == [Verdict.INFRA]


def test_g1_17_a_resumed_run_keeps_what_was_infra_apart(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    """G1-17: also beside cases that nobody has tried yet."""
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(4)]})
    folder.append([trial_of(RUN, "phone", job(1), Verdict.INFRA)])
    dispatch(farm, folder, notes)
    sent = [[c.case_id for c in b.cases] for b, _ in farm.sent]
    assert sorted(sent) == [["case-0", "case-2", "case-3"], ["case-1"]]


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.INFRA])
def test_no_other_verdict_is_tried_again(
    farm: FakeFarm, notes: Notes, tmp_path: Path, verdict: Verdict
) -> None:
    """G1-01: a nondeterministic kernel is never retried into green."""
    folder = new_folder(tmp_path, {"phone": [job(1)]})
    farm.verdicts = lambda _job: verdict
    dispatch(farm, folder, notes)
    assert farm.attempts() == [("case-1", 1)]


def test_what_a_dead_worker_held_is_sent_again(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(4)]})
    farm.verdicts = lambda j: Verdict.PASS if j.case_id in ("case-0", "case-1") else None

    def restart() -> None:
        farm.workers["phone"] = "worker-2"
        farm.verdicts = passes

    farm.at_poll = {3: restart}
    assert dispatch(farm, folder, notes) == {}
    assert farm.attempts()[4:] == [("case-2", 1), ("case-3", 1)], "the same attempts: no result, no attempt"
    assert sorted(on_disk(folder)) == [(f"case-{n}", 1, Verdict.PASS) for n in range(4)]


def test_a_worker_that_goes_and_comes_back_in_time_loses_nothing(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1)]})
    farm.verdicts = silent

    def back() -> None:
        farm.workers["phone"] = "worker-2"
        farm.verdicts = passes

    farm.at_poll = {2: farm.workers.clear, 60: back}
    assert dispatch(farm, folder, notes) == {}
    assert on_disk(folder) == [("case-1", 1, Verdict.PASS)]


def test_a_worker_that_dies_again_and_again_is_given_up(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1), job(2)]})
    farm.verdicts = silent

    def another(number: int) -> None:
        farm.workers["phone"] = f"worker-{number}"

    farm.at_poll = {n: lambda n=n: another(n) for n in range(2, 40)}
    lost = dispatch(farm, folder, notes)
    assert len(farm.sent) == 1 + REDISPATCHES
    why = f"its worker died {REDISPATCHES + 1} times"
    assert lost == {("phone", "case-1"): why, ("phone", "case-2"): why}
    assert notes.losses == [("phone", 2, why)]


@pytest.mark.parametrize("ever_there", [True, False])
def test_a_device_without_a_worker_is_given_up_with_the_reason(
    farm: FakeFarm, notes: Notes, tmp_path: Path, ever_there: bool
) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1), job(2)]})
    farm.verdicts = silent
    if ever_there:
        farm.at_poll = {1: farm.workers.clear}
    else:
        farm.workers.clear()
    lost = dispatch(farm, folder, notes)
    assert set(lost) == {("phone", "case-1"), ("phone", "case-2")}
    assert lost["phone", "case-1"] == "no worker for 60 s"
    assert farm.clock < 1000 + 62
    done = folder.finish("", "now", lost)
    assert {(m.case_id, m.why) for m in done.missing} == {
        (c, "no worker for 60 s") for c in ("case-1", "case-2")
    }


def test_a_living_worker_without_news_is_given_up(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1)]})
    farm.verdicts = silent
    assert dispatch(farm, folder, notes) == {("phone", "case-1"): "no news for 930 s"}
    assert farm.clock < 1000 + 932, "900 s and the 30 s that the case itself may take"


def test_a_cancelled_run_ends_with_what_it_has(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1), job(2)]})
    farm.verdicts = lambda j: Verdict.PASS if j.case_id == "case-1" else None
    farm.at_poll[3] = lambda: farm.ended.update({RUN: "cancelled by anna@desk"})
    assert dispatch(farm, folder, notes) == {("phone", "case-2"): "cancelled by anna@desk"}
    assert farm.polls == 3
    assert [t.case_id for t in notes.trials] == ["case-1"]


def test_a_case_that_rests_between_replays_is_not_stalled(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    resting = replace(job(1), deadline_ms=3_630_000, idle_replays=60, idle_ms=60_000)
    folder = new_folder(tmp_path, {"phone": [resting]})
    farm.verdicts = silent
    farm.at_poll[7_000] = lambda: farm.tell(RUN, trial_of(RUN, "phone", job(1), Verdict.PASS))
    assert dispatch(farm, folder, notes) == {}
    assert farm.clock > 1000 + 3_000


def canary(api: str) -> CanaryJob:
    return CanaryJob(CaseJob(f"canary-{api}", 1, "canary", api, "c0de", [], [], []), 5.0)


def test_batches_hold_one_api_each_and_its_canary(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    apis = ["vulkan", "gles", "vulkan", "gles", "other"]
    jobs = [replace(job(n), api=api) for n, api in enumerate(apis)]
    canaries = {"phone": [canary("gles"), canary("vulkan")]}
    assert dispatch(farm, new_folder(tmp_path, {"phone": jobs}, canaries=canaries), notes) == {}
    sent = [([c.case_id for c in b.cases], [c.job.case_id for c in b.canaries]) for b, _ in farm.sent]
    assert sent == [
        (["case-0", "case-2"], ["canary-vulkan"]),
        (["case-1", "case-3"], ["canary-gles"]),
        (["case-4"], []),
    ]


def test_what_is_tried_again_has_its_canary_again(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    """A canary that did not vouch makes its batch infra; the next attempt is judged by it, too."""
    folder = new_folder(tmp_path, {"phone": [job(1)]}, canaries={"phone": [canary("gles")]})
    farm.verdicts = lambda j: Verdict.INFRA if j.attempt == 1 else Verdict.PASS
    dispatch(farm, folder, notes)
    assert [[c.job.case_id for c in b.canaries] for b, _ in farm.sent] == [["canary-gles"], ["canary-gles"]]


def test_any_news_shows_that_a_worker_is_not_stalled(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    """A phone waits its turn on a shared processor, for longer than a stalled one would be given."""
    folder = new_folder(tmp_path, {"phone": [job(1)]})
    farm.verdicts = silent
    waiting = Progress("phone", "waiting", detail="cpu@host")
    farm.at_poll = {n: lambda: farm.tell(RUN, waiting) for n in range(100, 4000, 100)}
    farm.at_poll[4001] = lambda: farm.tell(RUN, trial_of(RUN, "phone", job(1), Verdict.PASS))
    assert dispatch(farm, folder, notes) == {}
    assert len(notes.news) == 39


def test_one_lost_device_does_not_hold_up_the_others(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    jobs = {"phone": [job(1)], "gone": [job(1), job(2)]}
    folder = new_folder(tmp_path, jobs)
    lost = dispatch(farm, folder, notes)
    assert {d for d, _ in lost} == {"gone"}
    assert [t.device_id for t in notes.trials] == ["phone"]
    assert notes.losses == [("gone", 2, "no worker for 60 s")]


def test_a_result_after_giving_up_still_counts(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    """The device came back while another one was still at work."""
    folder = new_folder(tmp_path, {"phone": [job(1)], "gone": [job(1)]})
    farm.verdicts = silent
    farm.at_poll = {
        200: lambda: farm.tell(RUN, trial_of(RUN, "gone", job(1), Verdict.PASS)),
        201: lambda: farm.tell(RUN, trial_of(RUN, "phone", job(1), Verdict.PASS)),
    }
    assert dispatch(farm, folder, notes) == {}
    assert {t.device_id for t in folder.trials().values()} == {"phone", "gone"}


def test_events_of_other_runs_and_devices_are_none_of_ours(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1)]})
    farm.tell("another-run", trial_of("another-run", "phone", job(1), Verdict.MISMATCH))
    farm.tell(RUN, trial_of(RUN, "stranger", job(1), Verdict.MISMATCH))
    farm.tell(RUN, Progress("stranger", "started", "case-1"))
    dispatch(farm, folder, notes)
    assert on_disk(folder) == [("case-1", 1, Verdict.PASS)]
    assert {t.device_id for t in notes.trials} == {"phone"}
    assert notes.news == []


def test_a_resumed_run_sends_only_what_has_no_verdict(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(4)], "done": [job(9)]})
    folder.append(
        [
            trial_of(RUN, "phone", job(0), Verdict.PASS),
            trial_of(RUN, "phone", job(1), Verdict.MISMATCH),
            trial_of(RUN, "phone", job(2), Verdict.INFRA),
            trial_of(RUN, "done", job(9), Verdict.PASS),
        ]
    )
    for known in folder.trials().values():
        farm.tell(RUN, known)
    assert dispatch(farm, folder, notes) == {}
    assert sorted(farm.attempts()) == [("case-2", 2), ("case-3", 1)]
    assert len(on_disk(folder)) == 6
    assert folder.unfinished() == {"phone": [], "done": []}


def test_results_that_came_while_the_orchestrator_was_dead_are_not_run_again(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    """They are in Redis and not yet on disk; the worker leaves out what it has done."""
    folder = new_folder(tmp_path, {"phone": [job(1), job(2)]})
    farm.tell(RUN, trial_of(RUN, "phone", job(1), Verdict.MISMATCH))
    assert dispatch(farm, folder, notes) == {}
    assert sorted(on_disk(folder)) == [("case-1", 1, Verdict.MISMATCH), ("case-2", 1, Verdict.PASS)]


def test_a_late_infra_of_an_earlier_attempt_starts_no_fourth_one(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1)]})
    folder.append([trial_of(RUN, "phone", job(1), Verdict.INFRA)])
    farm.verdicts = silent
    farm.at_poll = {
        2: lambda: farm.tell(RUN, trial_of(RUN, "phone", job(1), Verdict.INFRA)),
        3: lambda: farm.tell(RUN, trial_of(RUN, "phone", job(1, 2), Verdict.PASS)),
    }
    dispatch(farm, folder, notes)
    assert farm.attempts() == [("case-1", 2)]


def test_a_retry_waits_for_a_phone_to_come_back(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    back_at = farm.clock + 40

    def while_it_restarts(_job: CaseJob) -> Verdict | None:
        return Verdict.PASS if farm.clock >= back_at else Verdict.INFRA

    farm.verdicts = while_it_restarts
    folder = new_folder(tmp_path, {"phone": [job(1)]})
    assert dispatch(farm, folder, notes) == {}
    assert on_disk(folder)[-1] == ("case-1", 3, Verdict.PASS)


def test_a_batch_holds_about_a_minute_of_work(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    jobs = [replace(job(n), estimate_ms=ms) for n, ms in enumerate([20_000, 20_000, 30_000, 200_000, 1_000])]
    dispatch(farm, new_folder(tmp_path, {"phone": jobs}), notes)
    assert [[c.estimate_ms for c in b.cases] for b, _ in farm.sent] == [
        [20_000, 20_000],
        [30_000],
        [200_000],
        [1_000],
    ]


def test_a_device_that_will_not_come_is_given_up_at_once(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    folder = new_folder(tmp_path, {"phone": [job(1)], "gone": [job(2)]})
    before = farm.clock
    lost = dispatch(farm, folder, notes, absent={"gone": "not listed by adb"})
    assert lost == {("gone", "case-2"): "not listed by adb"}
    assert on_disk(folder) == [("case-1", 1, Verdict.PASS)]
    assert farm.clock - before < LIMITS.gone_s

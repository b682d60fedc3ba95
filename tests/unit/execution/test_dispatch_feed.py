"""Dispatching while more is being prepared: devices get work early, and in batches that are worth it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from orchestrator.domain.job import CaseJob
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.dispatch import Dispatcher
from orchestrator.execution.manifest import Manifest, Unprepared
from orchestrator.execution.run_folder import RunFolder
from orchestrator.planning.matrix import Sampling
from tests.results_fixture import device, results, run_info
from tests.unit.execution.fake_farm import FakeFarm, Notes, trial_of
from tests.unit.execution.test_dispatch import LIMITS, RUN, job


@dataclass(slots=True)
class Script:
    """A feed that gives one entry a call."""

    gives: list[dict[str, list[int]]]
    refused: dict[int, list[Trial]] = field(default_factory=dict[int, list[Trial]])
    calls: int = 0
    stopped: bool = False

    @property
    def done(self) -> bool:
        return self.stopped or not self.gives

    def left(self, target: str) -> list[str]:
        return [f"case-{n}" for each in self.gives for n in each.get(target, [])]

    def take(self) -> tuple[Mapping[str, Sequence[CaseJob]], Sequence[Trial]]:
        self.calls += 1
        now = self.gives.pop(0) if not self.done else {}
        return {t: [job(n) for n in ns] for t, ns in now.items()}, self.refused.get(self.calls, [])

    def stop(self) -> None:
        self.stopped = True


def new_folder(out: Path, *devices: str, resource: str = "phone") -> RunFolder:
    records = [replace(device(d), resource=resource) for d in devices]
    planned = results(devices=records, run=run_info(RUN, finished=False))
    return RunFolder.create(out, Manifest(planned, {d: [] for d in devices}, "memory://blobs", "ondemand"))


@pytest.fixture
def farm() -> FakeFarm:
    return FakeFarm(workers={"phone": "worker-1", "other": "worker-2"})


def dispatch(
    farm: FakeFarm,
    folder: RunFolder,
    feed: Script,
    notes: Notes | None = None,
    host: str = "",
    absent: Mapping[str, str] | None = None,
) -> dict[tuple[str, str], str]:
    dispatcher = Dispatcher(farm, folder, host, limits=LIMITS, now=farm.now, sleep=farm.sleep)
    return dispatcher.run(folder.unfinished(), notes or Notes(), absent, feed)


def sizes(farm: FakeFarm) -> list[int]:
    return [len(batch.cases) for batch, _ in farm.sent]


def test_work_begins_before_all_of_it_is_prepared(farm: FakeFarm, tmp_path: Path) -> None:
    feed = Script([{"phone": [1]}, {}, {"phone": [2, 3]}, {"other": [1]}])
    left_when_begun: list[int] = []
    farm.at_poll[1] = lambda: left_when_begun.append(len(feed.gives))
    folder = new_folder(tmp_path, "phone", "other")
    assert dispatch(farm, folder, feed) == {}
    assert left_when_begun == [3]
    assert {t.key.rsplit("/", 1)[0] for t in folder.trials().values()} == {
        "phone/case-1", "phone/case-2", "phone/case-3", "other/case-1",
    }  # fmt: skip


def test_a_device_that_has_work_gets_whole_batches_only(farm: FakeFarm, tmp_path: Path) -> None:
    farm.verdicts = lambda j: Verdict.PASS if farm.polls > 20 else None
    feed = Script([{"phone": [n]} for n in range(1, 31)])
    farm.at_poll[21] = farm.restart  # what was not answered is sent again
    assert dispatch(farm, new_folder(tmp_path, "phone"), feed) == {}
    assert sizes(farm)[:2] == [1, 12]


def test_the_rest_goes_out_when_nothing_more_is_prepared(farm: FakeFarm, tmp_path: Path) -> None:
    feed = Script([{"phone": [1]}, {"phone": [2]}, {"phone": [3]}])
    assert dispatch(farm, new_folder(tmp_path, "phone"), feed) == {}
    assert sum(sizes(farm)) == 3


def test_a_processor_that_prepares_measures_nothing_meanwhile(farm: FakeFarm, tmp_path: Path) -> None:
    feed = Script([{"phone": [1]}, {"phone": [2]}, {"phone": [3]}])
    folder = new_folder(tmp_path, "phone", resource="cpu@here")
    assert dispatch(farm, folder, feed, host="here") == {}
    assert sizes(farm) == [3]
    farm.sent.clear()
    elsewhere = new_folder(tmp_path / "elsewhere", "phone", resource="cpu@there")
    assert dispatch(farm, elsewhere, Script([{"phone": [7]}, {"phone": [8]}]), host="here") == {}
    assert sizes(farm) == [1, 1]


def test_slow_preparation_is_no_silence_of_the_device(farm: FakeFarm, tmp_path: Path) -> None:
    feed = Script([*({} for _ in range(3000)), {"phone": [1]}])
    assert dispatch(farm, new_folder(tmp_path, "phone"), feed) == {}


def test_a_cancelled_run_prepares_nothing_more(farm: FakeFarm, tmp_path: Path) -> None:
    farm.at_poll[2] = lambda: farm.ended.update({RUN: "wrong branch"})
    feed, notes = Script([{"phone": [1]}, {}, {}, {}, {}, {"phone": [2, 3]}]), Notes()
    lost = dispatch(farm, new_folder(tmp_path, "phone"), feed, notes)
    assert feed.stopped
    assert lost == {("phone", "case-2"): "wrong branch", ("phone", "case-3"): "wrong branch"}
    assert sum(count for _, count, _ in notes.losses) == 2


def test_what_is_prepared_for_a_device_that_is_gone_is_lost_with_it(farm: FakeFarm, tmp_path: Path) -> None:
    feed = Script([{"phone": [1]}, {"phone": [2], "other": [2]}])
    lost = dispatch(farm, new_folder(tmp_path, "phone", "other"), feed, absent={"phone": "unplugged"})
    assert lost == {("phone", "case-1"): "unplugged", ("phone", "case-2"): "unplugged"}
    assert [(b.device_id, len(b.cases)) for b, _ in farm.sent] == [("other", 1)]


def test_cases_that_no_device_sees_are_told(farm: FakeFarm, tmp_path: Path) -> None:
    refused = trial_of(RUN, "phone", job(1), Verdict.COMPILE_FAILED)
    notes = Notes()
    feed = Script([{"phone": [2]}, {}], refused={1: [refused]})
    dispatch(farm, new_folder(tmp_path, "phone"), feed, notes)
    assert [t.verdict for t in notes.trials] == [Verdict.COMPILE_FAILED, Verdict.PASS]


def test_the_state_counts_what_is_not_prepared_yet(farm: FakeFarm, tmp_path: Path) -> None:
    feed = Script([{"phone": [1]}, {}, {}, {}, {}, {}, {}, {"phone": [2, 3]}])
    dispatch(farm, new_folder(tmp_path, "phone"), feed)
    assert {state.targets[0].total for state in farm.states} == {3}


def test_phones_that_will_do_a_case_themselves_do_not_stand_in(farm: FakeFarm, tmp_path: Path) -> None:
    """Though its job is not prepared yet."""
    planned = results(devices=[device("phone"), device("other")], run=run_info(RUN, finished=False))
    manifest = Manifest(
        planned,
        {"phone": [], "other": []},
        "memory://blobs",
        "ondemand",
        able={"other": ["case-1"]},
        unprepared={d: [Unprepared("case-1", 1, False, Sampling())] for d in ("phone", "other")},
    )
    folder = RunFolder.create(tmp_path, manifest)
    farm.verdicts = lambda j: Verdict.INFRA if j.attempt < 3 else Verdict.PASS
    assert dispatch(farm, folder, Script([{"phone": [1]}, {"other": [1]}])) == {}
    assert all(batch.device_id for batch, _ in farm.sent)

"""A Redis that goes away, and comes back with or without what was in it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.domain.errors import BrokerUnavailable
from orchestrator.domain.event import Registration
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.dispatch import DispatchLimits
from orchestrator.execution.lanes import BatchLimits
from tests.unit.execution.fake_farm import FakeFarm, Notes, passes, silent
from tests.unit.execution.test_dispatch import dispatch, farm, job, new_folder, notes

__all__ = ["farm", "notes"]
PATIENT = DispatchLimits(BatchLimits(cases=12), outage_s=900)


def away(farm: FakeFarm) -> None:
    farm.redis = ""


def back(farm: FakeFarm, name: str) -> None:
    farm.redis = name


def test_redis_that_lost_its_queues_gets_what_is_outstanding_again(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(20)]})
    farm.verdicts = silent

    def restart() -> None:
        farm.restart()
        farm.stream.clear()
        farm.verdicts = passes

    farm.at_poll = {4: restart}
    assert dispatch(farm, folder, notes) == {}
    assert len(folder.trials()) == 20


def test_an_outage_costs_a_run_nothing(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    """No worker can register meanwhile, and all have the usual time when it is back."""
    farm.verdicts = silent
    workers = dict(farm.workers)

    def gone() -> None:
        away(farm)
        farm.workers.clear()

    def again() -> None:
        back(farm, "redis-2")
        farm.verdicts = passes

    farm.at_poll = {2: gone, 1700: again, 1750: lambda: farm.workers.update(workers)}
    assert dispatch(farm, new_folder(tmp_path, {"phone": [job(1)]}), notes, limits=PATIENT) == {}
    assert farm.clock > 1000 + 800


def test_an_outage_beyond_the_limit_ends_the_command(farm: FakeFarm, notes: Notes, tmp_path: Path) -> None:
    farm.verdicts = silent
    farm.at_poll = {2: lambda: away(farm)}
    with pytest.raises(BrokerUnavailable):
        dispatch(farm, new_folder(tmp_path, {"phone": [job(1)]}), notes)
    assert farm.clock < 1000 + 15, "a private Redis never comes back"


def test_an_outage_amid_results_leaves_none_of_them_unsettled(
    farm: FakeFarm, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis answers with results of which the first is ``infra``, and is away a moment later."""
    there, answers = farm.registrations(), iter([True, False])

    def registrations(_farm: FakeFarm) -> Mapping[str, Registration]:
        if next(answers, True):
            return there
        raise BrokerUnavailable("broker redis://made-up: away")

    monkeypatch.setattr(FakeFarm, "registrations", registrations)
    farm.verdicts = lambda j: Verdict.INFRA if (j.case_id, j.attempt) == ("case-0", 1) else Verdict.PASS
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(3)]})
    assert dispatch(farm, folder, notes, limits=PATIENT) == {}
    assert [t.case_id for t in notes.trials] == ["case-1", "case-2", "case-0"]


def test_a_batch_that_was_lost_on_its_way_to_the_worker_is_sent_once_more(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    """Redis has given it away when the link breaks: it is in no queue, and nobody was restarted."""
    farm.verdicts = silent
    farm.at_poll = {2: lambda: setattr(farm, "verdicts", passes)}
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(3)]})
    assert dispatch(farm, folder, notes) == {}
    assert len(folder.trials()) == 3
    assert farm.attempts() == [(f"case-{n}", 1) for n in (0, 1, 2, 0, 1, 2)]


def test_a_worker_that_stays_silent_gets_no_more_than_one_copy(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    farm.verdicts = silent
    assert dispatch(farm, new_folder(tmp_path, {"phone": [job(1)]}), notes)
    assert len(farm.sent) == 2

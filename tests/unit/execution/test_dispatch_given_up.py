"""Devices that a run cannot have: given up at once, with what is known of them."""

from pathlib import Path

from orchestrator.domain.verdict import Verdict
from tests.unit.execution.fake_farm import FakeFarm, Notes, trial_of
from tests.unit.execution.test_dispatch import RUN, dispatch, farm, job, new_folder, notes

__all__ = ["farm", "notes"]


def test_a_device_that_its_worker_waited_for_in_vain_is_given_up(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    """Held, hot for half an hour: neither the other batches nor retries wait for it again."""
    folder = new_folder(tmp_path, {"phone": [job(n) for n in range(30)], "other": [job(99)]})
    farm.workers["other"] = "worker-2"
    farm.verdicts = lambda j: Verdict.PASS if j.case_id in ("case-0", "case-99") else None
    why = "phone is held by anna@desk since 12:00: new battery"
    back = trial_of(RUN, "phone", job(1), Verdict.INFRA)
    farm.at_poll = {3: lambda: (farm.tell(RUN, back), farm.waits_no_more.update(phone=why), None)[2]}
    lost = dispatch(farm, folder, notes)
    assert lost == {("phone", f"case-{n}"): why for n in range(1, 30)}
    assert farm.polls == 3
    assert notes.losses == [("phone", 29, why)]
    assert farm.attempts() == [(f"case-{n}", 1) for n in range(24)] + [("case-99", 1)]


def test_what_the_farm_knows_of_a_device_without_a_worker_is_in_the_reason(
    farm: FakeFarm, notes: Notes, tmp_path: Path
) -> None:
    farm.workers.clear()
    farm.known["phone"] = "recovering on shelf-1: reboot failed"
    lost = dispatch(farm, new_folder(tmp_path, {"phone": [job(1)]}), notes)
    assert lost == {("phone", "case-1"): "no worker for 60 s (recovering on shelf-1: reboot failed)"}

"""An adb server dies with all of its phones at work, one of which restarts: nobody is blamed."""

from collections import Counter
from pathlib import Path

from orchestrator.domain.verdict import Verdict
from orchestrator.execution.run_folder import RunFolder
from tests.chaos.check import check
from tests.chaos.farm import chaos_farm
from tests.chaos.matrix import write_matrix
from tests.chaos.play import play
from tests.chaos.story import Event
from workers.identity import phone_id

CASES, PHONES, CASE_MS = 20, 3, 100
EVENTS = [Event(4, "reboot", 0), Event(12, "adb", 0)]


def test_g2_06_one_phone_restarts_and_the_server_dies_under_the_others(tmp_path: Path) -> None:
    """G2-06: what was lost is the link's or the server's fault by its reason, and tried once more; no phone
    is restarted for it, and each is found under its new transport."""
    with chaos_farm(tmp_path, phones=PHONES, case_ms=CASE_MS, shelves=1) as farm:
        played = play(farm, ["--matrix", str(write_matrix(tmp_path, CASES))], EVENTS)
        found = check(farm, played.run_folder)
        boots = [phone.phone.boots for phone in farm.phones]
        ids = [phone_id(phone.phone.properties()) for phone in farm.phones]
    assert played.struck == EVENTS
    assert (played.given_up, found.accepted) == (0, CASES * PHONES)
    assert boots == [1, 0, 0], "its own restart, and no rung of the ladder"
    trials = list(RunFolder(played.run_folder).trials().values())
    assert {t.verdict for t in trials} == {Verdict.PASS, Verdict.INFRA}
    lost = [t for t in trials if t.verdict is Verdict.INFRA]
    assert {t.device_id for t in lost} == set(ids)
    addresses = (*(phone.serial for phone in farm.phones), str(farm.shelves[0].server))
    assert not [t.reason for t in lost if not any(where in t.reason for where in addresses)]
    again = Counter((t.device_id, t.case_id) for t in lost if t.device_id != ids[0])
    assert set(again.values()) == {1}, "rescheduled once"

"""What starts a baseline anew, and what does not."""

from orchestrator.analysis.speed.causes import EnvironmentKey
from orchestrator.analysis.speed.epochs import Mark, epochs, marks


def test_g4_03_only_another_phone_starts_a_new_history() -> None:
    """G4-03: reboot, new battery, another cable or name leave the phone's own identity as it is."""
    assert epochs(["A", "A", "A", "B", "B"], [False] * 5).tolist() == [0, 0, 0, 1, 1]
    assert epochs([], []).tolist() == []


def test_g4_03_an_os_update_is_a_mark_and_no_new_history() -> None:
    """G4-03: what an update does to speed must show, so it does not start anew."""
    old, new = EnvironmentKey("743", "S1"), EnvironmentKey("744", "S2")
    assert marks([old, old, new, new]) == (Mark(2, "driver 743 → 744"), Mark(2, "os build S1 → S2"))
    assert marks([old]) == ()


def test_an_accepted_shift_starts_a_new_baseline() -> None:
    assert epochs(["A"] * 4, [False, False, True, False]).tolist() == [0, 0, 1, 1]
    assert epochs(["A", "B"], [False, True]).tolist() == [0, 1]

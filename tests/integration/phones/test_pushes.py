"""Pushes that fail (field case G2-05): the reason is told, the digest is proven, nothing is left behind."""

import pytest

from orchestrator.domain.errors import NoSpace, TransferFailed
from tests.phones import RunningPhone, StartPhone

CALL_S = 60.0
PROFILES = pytest.mark.parametrize("profile", ["snapdragon-8-gen-3", "old-android"])


def names(phone: RunningPhone) -> list[str]:
    """Everything in the workdir, hidden files included, seen from the host."""
    folder = phone.phone.root.host_path(phone.device().workdir)
    return [entry.name for entry in folder.iterdir()]


@PROFILES
@pytest.mark.parametrize("size", [100, 5_000_000])
def test_g2_05_a_full_disk_is_told_as_no_space(start_phone: StartPhone, profile: str, size: int):
    phone = start_phone(profile, "disk_full:after=50")
    device = phone.device()
    with pytest.raises(NoSpace, match="No space left on device"):
        device.push(bytes(size), f"{device.workdir}/file", timeout_s=CALL_S)
    assert names(phone) == []
    phone.fault()
    device.push(bytes(size), f"{device.workdir}/file", timeout_s=CALL_S)
    assert names(phone) == ["file"]


@PROFILES
def test_g2_05_right_size_and_wrong_bytes(start_phone: StartPhone, profile: str):
    phone = start_phone(profile, "wrong_digest")
    device = phone.device()
    with pytest.raises(TransferFailed, match="other bytes"):
        device.push(bytes(100_000), f"{device.workdir}/file", timeout_s=CALL_S)
    assert names(phone) == []


@PROFILES
def test_a_failed_push_keeps_the_file_that_was_there(start_phone: StartPhone, profile: str):
    phone = start_phone(profile)
    device = phone.device()
    device.push(b"first", f"{device.workdir}/file", timeout_s=CALL_S)
    phone.fault("wrong_digest")
    with pytest.raises(TransferFailed):
        device.push(b"second", f"{device.workdir}/file", timeout_s=CALL_S)
    assert device.pull(f"{device.workdir}/file", timeout_s=CALL_S) == b"first"


def test_other_reasons_of_a_failed_push_are_told(start_phone: StartPhone):
    phone = start_phone()
    device = phone.device()
    device.push(b"x", f"{device.workdir}/file", timeout_s=CALL_S)
    with pytest.raises(TransferFailed, match="Not a directory"):
        device.push(b"x", f"{device.workdir}/file/below", timeout_s=CALL_S)

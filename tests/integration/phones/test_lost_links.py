"""Links that drop, stall and drip (field cases G2-01, G2-05): always infrastructure, never a result."""

import pytest

from orchestrator.domain.errors import DeadlineExceeded, DeviceLost, InfraError, TruncatedOutput
from tests.phones import StartPhone

CALL_S = 60.0
SHORT_S = 0.5
ROWS = "i=0; while [ $i -le 511 ]; do echo row $i ok; i=$((i+1)); done; exit 139"
PROFILES = pytest.mark.parametrize("profile", ["snapdragon-8-gen-3", "old-android"])


@PROFILES
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("drop:on=row,after_text=row 511 ok", id="a-after-the-last-row"),
        pytest.param("drop:on=row,after=700", id="in-the-middle"),
        pytest.param("drop:on=row,after=2", id="before-any-output"),
        pytest.param("reboot:on=row,after=700", id="reboot"),
    ],
)
def test_g2_01_output_without_its_end_is_never_a_result(start_phone: StartPhone, profile: str, fault: str):
    phone = start_phone(profile, fault)
    with pytest.raises(TruncatedOutput, match="link dropped"):
        phone.device().run(["sh", "-c", ROWS], timeout_s=CALL_S)
    phone.fault()
    phone.connect()
    whole = phone.device().run(["sh", "-c", ROWS], timeout_s=CALL_S)
    assert (whole.exit_code, whole.stdout.count(b"\n")) == (139, 512)


def test_g2_01_d_all_output_and_no_status(start_phone: StartPhone):
    phone = start_phone("snapdragon-8-gen-3", "drop:on=row,at=exit")
    with pytest.raises(TruncatedOutput, match="before the exit status"):
        phone.device().run(["sh", "-c", ROWS], timeout_s=CALL_S)


def test_g2_01_d_all_output_and_no_marker(start_phone: StartPhone):
    """Old phones: the line end before the marker has come, the marker has not."""
    phone = start_phone("old-android", "drop:on=row,after_text=row 511 ok\r\n")
    with pytest.raises(TruncatedOutput, match="before the exit status"):
        phone.device().run(["sh", "-c", ROWS], timeout_s=CALL_S)


def test_g2_01_b_a_cut_marker_is_not_exit_code_1(start_phone: StartPhone):
    """Old phones: ``NONCE:1`` of ``NONCE:139`` arrives, then nothing."""
    phone = start_phone("old-android", "drop:on=exit 139,after_text=:1")
    with pytest.raises(TruncatedOutput):
        phone.device().run(["sh", "-c", "exit 139"], timeout_s=CALL_S)


def test_g2_01_c_the_middle_of_a_shell_v2_packet(start_phone: StartPhone):
    """Five bytes of a packet's header and a part of its payload arrive."""
    phone = start_phone("snapdragon-8-gen-3", "drop:on=only,after_text=on")
    with pytest.raises(TruncatedOutput):
        phone.device().run(["echo", "only"], timeout_s=CALL_S)


@PROFILES
def test_g2_01_streams_too(start_phone: StartPhone, profile: str):
    phone = start_phone(profile, "drop:on=row,after_text=row 511 ok")
    lines: list[bytes] = []
    with pytest.raises(TruncatedOutput):
        phone.device().stream(["sh", "-c", ROWS], lines.append, timeout_s=CALL_S, idle_timeout_s=CALL_S)
    assert lines == [b"row %d ok\n" % n for n in range(len(lines))]


@PROFILES
@pytest.mark.parametrize("fault", ["stall:on=row,after=700", "drip:on=row,every_ms=20"])
def test_a_total_deadline_holds_against_stall_and_drip(start_phone: StartPhone, profile: str, fault: str):
    phone = start_phone(profile, fault)
    with pytest.raises(DeadlineExceeded, match="not done after"):
        phone.device().run(["sh", "-c", ROWS], timeout_s=SHORT_S)


@PROFILES
def test_cleaning_up_on_a_phone_that_stalls_altogether_ends_too(
    start_phone: StartPhone, profile: str, monkeypatch: pytest.MonkeyPatch
):
    """Each command stalls right after its process id is told: also the one that ends the first one."""
    monkeypatch.setattr("workers.transports.adb._CLEAN_UP_S", SHORT_S)
    phone = start_phone(profile, "stall:on=shell,after=60")
    with pytest.raises(DeadlineExceeded, match="sh: not done after"):
        phone.device().run(["sh", "-c", ROWS], timeout_s=SHORT_S)


@PROFILES
def test_a_drip_is_slow_and_right(start_phone: StartPhone, profile: str):
    phone = start_phone(profile, "drip:on=echo,every_ms=1,times=1")
    assert phone.device().run(["echo", "drop by drop"], timeout_s=CALL_S).stdout == b"drop by drop\n"
    assert phone.phone.faults.find({"drip"}, "echo") is None, "once for a whole service"


@PROFILES
@pytest.mark.parametrize("fault", ["stall:on=sync RECV,after=1000", "drip:on=sync RECV,every_ms=20"])
def test_g2_05_a_stalled_pull_ends_by_its_deadline(start_phone: StartPhone, profile: str, fault: str):
    phone = start_phone(profile)
    device = phone.device()
    device.push(bytes(100_000), f"{device.workdir}/file", timeout_s=CALL_S)
    phone.fault(fault)
    with pytest.raises(DeadlineExceeded, match="pull"):
        device.pull(f"{device.workdir}/file", timeout_s=SHORT_S)


@PROFILES
def test_a_pull_whose_link_drops_is_no_file(start_phone: StartPhone, profile: str):
    phone = start_phone(profile)
    device = phone.device()
    device.push(bytes(100_000), f"{device.workdir}/file", timeout_s=CALL_S)
    phone.fault("drop:on=sync RECV,after=50000")
    with pytest.raises(TruncatedOutput, match="pull"):
        device.pull(f"{device.workdir}/file", timeout_s=CALL_S)


@PROFILES
def test_a_push_that_stalls_ends_by_its_deadline(start_phone: StartPhone, profile: str):
    phone = start_phone(profile, "stall:on=sync SEND,after=65536")
    device = phone.device()
    with pytest.raises(DeadlineExceeded, match="push"):
        device.push(bytes(8_000_000), f"{device.workdir}/file", timeout_s=SHORT_S)


@PROFILES
def test_a_push_whose_link_drops_leaves_no_file_by_that_name(start_phone: StartPhone, profile: str):
    phone = start_phone(profile, "drop:on=sync SEND,after=65536")
    device = phone.device()
    with pytest.raises(InfraError, match="push"):
        device.push(bytes(1_000_000), f"{device.workdir}/file", timeout_s=CALL_S)
    phone.fault()
    phone.connect()
    assert "file" not in device.list_dir(device.workdir, timeout_s=CALL_S)


def test_g2_06_a_rebooted_phone_is_lost_and_comes_back_as_another_boot(start_phone: StartPhone):
    phone, other = start_phone(), start_phone("old-android")
    device = phone.device()
    boot = ["cat", "/proc/sys/kernel/random/boot_id"]
    before = device.run(boot, timeout_s=CALL_S).stdout
    phone.fault("reboot:on=victim,times=1")
    with pytest.raises(InfraError):
        device.run(["echo", "victim"], timeout_s=CALL_S)
    assert other.device().run(["echo", "fine"], timeout_s=CALL_S).stdout == b"fine\n"
    phone.connect()
    assert device.run(boot, timeout_s=CALL_S).stdout != before


def test_the_phones_own_reboot_command(start_phone: StartPhone):
    phone = start_phone()
    device = phone.device()
    boot = ["cat", "/proc/sys/kernel/random/boot_id"]
    before = device.run(boot, timeout_s=CALL_S).stdout
    device.run(["reboot"], timeout_s=CALL_S)
    phone.wait_for_boot(2)
    phone.connect()
    assert device.run(boot, timeout_s=CALL_S).stdout != before


def test_a_phone_that_is_gone_is_lost(start_phone: StartPhone):
    phone = start_phone()
    phone.server.disconnect_phone(phone.serial)
    with pytest.raises(DeviceLost, match=r"not found|offline"):
        phone.device().run(["true"], timeout_s=CALL_S)

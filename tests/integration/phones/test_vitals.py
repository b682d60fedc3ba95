"""What gates look at, read from a phone over a real adb server."""

import pytest

from orchestrator.domain.errors import InfraError
from orchestrator.domain.health import Vitals
from tests.phones import StartPhone
from workers.awake import awake
from workers.health import read_vitals
from workers.identity import phone_soc


def test_vitals_of_a_phone(start_phone: StartPhone) -> None:
    phone = start_phone("snapdragon-8-gen-3")
    found = read_vitals(phone.device(), 5.0, 20.0)
    assert (found.at, found.battery_percent, found.charging, found.battery_c) == (5.0, 87, True, 29.1)
    assert (found.thermal_status, found.wakefulness) == ("none", "awake")
    assert found.free_bytes is not None
    assert found.free_bytes > 1 << 20
    battery = phone.phone.root.state / "dumpsys" / "battery"
    battery.write_text("Current Battery Service state:\n  status: 3\n  level: 12\n  scale: 100\n")
    found = read_vitals(phone.device(), 6.0, 20.0)
    assert (found.battery_percent, found.charging, found.battery_c) == (12, False, None)


def test_a_phone_whose_services_are_broken_tells_nothing_and_breaks_nothing(start_phone: StartPhone) -> None:
    phone = start_phone("old-android")
    for service in (phone.phone.root.state / "dumpsys").iterdir():
        service.write_bytes(b"\xff\x00 level: 999999999999\n" * 1000)
    found = read_vitals(phone.device(), 0.0, 20.0)
    assert (found.battery_percent, found.battery_c, found.wakefulness) == (None, None, "")


def test_g1_18_a_sleeping_phone_is_awake_before_its_batch(start_phone: StartPhone) -> None:
    """G1-18: over a real adb server, and one whose screen stays off is named."""
    phone = start_phone("tensor-g2")
    device, state = phone.device(), phone.phone.root.state

    def ask() -> Vitals:
        return read_vitals(device, 0.0, 20.0)

    assert ask().wakefulness == "asleep"
    assert awake(device, ask(), ask, sleep=lambda _: None).wakefulness == "awake"
    assert (state / "calls.log").read_text() == "input keyevent KEYCODE_WAKEUP\nsvc power stayon true\n"
    power = state / "dumpsys" / "power"
    power.write_text(power.read_text().replace("=Awake", "=Asleep"))
    (state / "bin" / "input").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(InfraError, match=r"asleep, and does not wake up"):
        awake(device, ask(), ask, sleep=lambda _: None)


def test_g2_11_properties_that_are_empty_early_in_a_boot_are_asked_for_again(start_phone: StartPhone) -> None:
    """G2-11: nothing of an earlier answer is kept, by the device or by adb's client."""
    phone = start_phone("tensor-g2")
    device, root = phone.device(), phone.phone.root
    whole = dict(device.properties(timeout_s=20.0))
    root.write_properties({**whole, "ro.soc.model": "", "ro.soc.manufacturer": ""})
    early = device.properties(timeout_s=20.0)
    assert "ro.soc.model" not in early
    assert phone_soc(early).confidence == "likely", "the board's word"
    root.write_properties(whole)
    assert phone_soc(device.properties(timeout_s=20.0)).confidence == "certain"

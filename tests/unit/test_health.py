"""dumpsys → snapshot; hostile text is tolerated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import DeadlineExceeded
from tests.unit.workers.fake_device import FakeDevice
from workers.health import read_vitals, snapshot
from workers.transports.base import CommandResult
from workers.virtual.profile import load_profile, shipped_profiles


def from_profile(name: str) -> dict[str, str]:
    texts = load_profile(name).dumpsys
    return snapshot(*(texts.get(s, "").encode() for s in ("battery", "thermalservice", "power")))


def test_a_phone_on_usb():
    assert from_profile("snapdragon-8-gen-3") == {
        "battery_percent": "87",
        "battery_temp_mc": "29100",
        "battery_status": "charging",
        "powered_by": "usb",
        "thermal_status": "none",
        "cpu_temp_mc": "34100",
        "gpu_temp_mc": "33200",
        "skin_temp_mc": "30400",
        "wakefulness": "awake",
    }


def test_a_warm_phone_asleep():
    found = from_profile("tensor-g2")
    assert (found["thermal_status"], found["skin_temp_mc"], found["wakefulness"]) == (
        "light",
        "38600",
        "asleep",
    )


@pytest.mark.parametrize("name", sorted(shipped_profiles()))
def test_every_shipped_profile_tells_its_battery(name: str):
    assert 0 <= int(from_profile(name)["battery_percent"]) <= 100


def test_crlf_output_reads_the_same():
    text = load_profile("old-android").dumpsys["battery"].encode()
    assert snapshot(text.replace(b"\n", b"\r\n"), b"", b"") == snapshot(text, b"", b"")


def test_current_readings_beat_cached_ones_and_the_hottest_counts():
    text = b"""Thermal Status: 3
Cached temperatures:
	Temperature{mValue=99.0, mType=0, mName=old, mStatus=0}
Current temperatures from HAL:
	Temperature{mValue=41.5, mType=0, mName=a, mStatus=0}
	Temperature{mValue=44.25, mType=0, mName=b, mStatus=0}
Current cooling devices from HAL:
	Temperature{mValue=98.0, mType=0, mName=c, mStatus=0}
"""
    assert snapshot(b"", text, b"") == {"thermal_status": "severe", "cpu_temp_mc": "44250"}


@pytest.mark.parametrize(
    "battery",
    [
        b"level: 120\nscale: 100\n",
        b"level: -5\nscale: 100\n",
        b"level: 5\nscale: 0\n",
        b"level: 99999999999999999999\nscale: 100\n",
        b"temperature: 999999\nstatus: 77\n",
        b"level: <script>\nscale: 100\n",
        b"\xff\xfe\x00\x1b[31m",
    ],
)
def test_nonsense_is_left_out(battery: bytes):
    assert snapshot(battery, b"Thermal Status: 99\n", b"mWakefulness=\x1b[31m\n") == {}


@given(st.binary(max_size=300), st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes_are_tolerated(battery: bytes, thermal: bytes, power: bytes):
    for name, value in snapshot(battery, thermal, power).items():
        assert name.isidentifier()
        assert value.isascii()


@dataclass(slots=True)
class Phone(FakeDevice):
    """Answers a command alone, and all in one call unless a service hangs."""

    hangs: str = ""
    asked: list[str] = field(default_factory=list[str])

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        del timeout_s, env
        self.asked.append(argv[0])
        profile = load_profile("snapdragon-8-gen-3").dumpsys
        services = ["battery", "thermalservice", "power"]
        if argv[0] == "sh" and not self.hangs:
            told = b"".join(f"{profile[s]}\n{argv[4]}\n".encode() for s in services)
            return CommandResult(0, told + b"1000 4096\n")
        if self.hangs in argv or argv[0] == "sh":
            raise DeadlineExceeded(f"{argv[0]}: not done")
        return CommandResult(0, profile[argv[1]].encode() if argv[0] == "dumpsys" else b"1000 4096\n")


def test_vitals_take_one_call():
    phone = Phone()
    found = read_vitals(phone, 1.0, 5.0)
    assert (found.battery_percent, found.wakefulness, found.free_bytes) == (87, "awake", 4_096_000)
    assert phone.asked == ["sh"]


def test_a_service_that_hangs_costs_its_own_answer_only():
    phone = Phone(hangs="thermalservice")
    found = read_vitals(phone, 1.0, 5.0)
    assert (found.battery_percent, found.thermal_status, found.free_bytes) == (87, "", 4_096_000)
    assert phone.asked == ["sh", "dumpsys", "dumpsys", "dumpsys", "stat"]

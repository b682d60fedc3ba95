"""Battery, heat and screen of a phone, from ``dumpsys``: metadata of a run, never identity.

Output of ``dumpsys`` differs between vendors and is not to be trusted: what is not recognised is left out.
"""

import posixpath
import re
import uuid
from contextlib import suppress

from orchestrator.domain.errors import InfraError
from orchestrator.domain.health import Vitals
from workers.transports.base import Device

_READ_LIMIT = 64 * 1024
"""The lines that matter come first; a hostile or broken service may say megabytes."""

_SERVICES = ("battery", "thermalservice", "power")
_ASK_ALL = (
    f"for service in {' '.join(_SERVICES)}; do "
    'dumpsys "$service" 2>/dev/null; printf "\\n%s\\n" "$1"; done; stat -f -c "%a %S" "$2" 2>/dev/null'
)
"""Arguments: a mark, which stands alone on a line after each service; a folder."""
_CHARGING = {1: "unknown", 2: "charging", 3: "discharging", 4: "not charging", 5: "full"}
"""BatteryManager.BATTERY_STATUS_*"""
_THERMAL = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
"""PowerManager.THERMAL_STATUS_*"""
_SENSORS = {"0": "cpu", "1": "gpu", "2": "battery", "3": "skin"}
"""Temperature.TYPE_* of Android's thermal HAL."""
_TEMPERATURE = re.compile(
    r"Temperature\{mValue=(-?\d{1,4}(?:\.\d{1,6})?), mType=(\d{1,3}), mName=([^,}]{1,64}), mStatus=\d{1,2}\}"
)


def snapshot(battery: bytes, thermal: bytes, power: bytes) -> dict[str, str]:
    """What the three services tell, under stable names; an empty dict when they tell nothing.

    Temperatures are in milli-degrees Celsius.
    """
    return {**_battery(_text(battery)), **_thermal(_text(thermal)), **_power(_text(power))}


def read_health(device: Device, timeout_s: float) -> dict[str, str]:
    """Ask a phone; services that fail or are missing are left out."""
    return snapshot(*_answers(device, timeout_s)[:3])


def read_vitals(device: Device, at: float, timeout_s: float) -> Vitals:
    """What gates look at; a phone that does not tell something is not kept from work for it."""
    battery, thermal, power, room = _answers(device, timeout_s)
    told = snapshot(battery, thermal, power)
    heat, charge = told.get("battery_temp_mc"), told.get("battery_percent")
    status = told.get("battery_status")
    return Vitals(
        at,
        battery_percent=int(charge) if charge else None,
        charging=status in ("charging", "full") if status and status != "unknown" else None,
        battery_c=int(heat) / 1000 if heat else None,
        free_bytes=_free_bytes(room),
        thermal_status=told.get("thermal_status", ""),
        wakefulness=told.get("wakefulness", ""),
    )


def _answers(device: Device, timeout_s: float) -> list[bytes]:
    """Of the three services and of ``stat``, in one call: each costs a round trip before every batch.

    Where that does not work, one after another, each with its own deadline: a service that hangs costs its
    own answer only.
    """
    mark = uuid.uuid4().hex
    above = posixpath.dirname(device.workdir)
    with suppress(InfraError):
        said = device.run(["sh", "-c", _ASK_ALL, "sh", mark, above], timeout_s=timeout_s).stdout
        together = said.split(f"\n{mark}\n".encode("ascii"))
        if len(together) == len(_SERVICES) + 1:
            return together
    single = [*(["dumpsys", service] for service in _SERVICES), ["stat", "-f", "-c", "%a %S", above]]
    answers: list[bytes] = []
    for argv in single:
        answers.append(b"")
        with suppress(InfraError):
            answers[-1] = device.run(argv, timeout_s=timeout_s).stdout
    return answers


def _free_bytes(said: bytes) -> int | None:
    """Of the file system with our folder, which a new phone does not have yet; toybox and coreutils agree."""
    match = re.fullmatch(rb"(\d{1,18}) (\d{1,9})\s*", said)
    return int(match[1]) * int(match[2]) if match else None


def _battery(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    level, scale = _number(text, "level"), _number(text, "scale")
    if level is not None and scale and 0 <= level <= scale:
        found["battery_percent"] = str(round(100 * level / scale))
    tenths = _number(text, "temperature")
    if tenths is not None and -500 <= tenths <= 1500:
        found["battery_temp_mc"] = str(tenths * 100)
    status = _number(text, "status")
    if status in _CHARGING:
        found["battery_status"] = _CHARGING[status]
    sources = [name for name in ("AC", "USB", "Wireless", "Dock") if _says_true(text, f"{name} powered")]
    if "powered:" in text:
        found["powered_by"] = "+".join(sources).lower() or "battery"
    return found


def _thermal(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    status = _number(text, "Thermal Status")
    if status is not None and 0 <= status < len(_THERMAL):
        found["thermal_status"] = _THERMAL[status]
    for value, kind, _name in _TEMPERATURE.findall(_current(text)):
        if (sensor := _SENSORS.get(kind)) is not None:
            hottest = max(int(float(value) * 1000), int(found.get(f"{sensor}_temp_mc", "-1000000")))
            found[f"{sensor}_temp_mc"] = str(hottest)
    return found


def _current(text: str) -> str:
    """The section with readings of now, where there is one; else all of it."""
    _, marker, rest = text.partition("Current temperatures from HAL:")
    if not marker:
        return text
    return rest.split("\nCurrent cooling devices", 1)[0].split("\nTemperature static thresholds", 1)[0]


def _power(text: str) -> dict[str, str]:
    match = re.search(r"^[ \t]*mWakefulness=(Awake|Asleep|Dozing|Dreaming)[ \t]*$", text, re.MULTILINE)
    return {"wakefulness": match[1].lower()} if match else {}


def _number(text: str, name: str) -> int | None:
    match = re.search(rf"^[ \t]*{name}: (-?\d{{1,6}})[ \t]*$", text, re.MULTILINE)
    return int(match[1]) if match else None


def _says_true(text: str, name: str) -> bool:
    return re.search(rf"^[ \t]*{name}: true[ \t]*$", text, re.MULTILINE) is not None


def _text(output: bytes) -> str:
    return output[:_READ_LIMIT].decode("utf-8", "replace").replace("\r\n", "\n")

"""What a phone and its driver may say of themselves, and what workers and agents may pass on of it.

Ids become names of queues and keys, an adapter and features words of a job file; the rest is for people:
of bounded length, and without characters that do something to a terminal or a page.
"""

from dataclasses import replace
from typing import Annotated

from pydantic import Field, StringConstraints

from orchestrator.domain.agent import AgentReport
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.event import Registration
from orchestrator.domain.lease import Hold
from orchestrator.domain.limits import Count, DeviceId, Limits, Line, Word, check, printables
from orchestrator.domain.profile import Profile
from orchestrator.domain.wire import unpack

Fact = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.]{1,60}$")]
Adapter = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{0,80}$")]
Facts = Annotated[dict[Fact, bool], Field(max_length=200)]
Lines = Annotated[list[Line], Field(max_length=4096)]
Pid = Annotated[int, Field(ge=0, lt=1 << 31)]
SHORT = 200
"""Characters of a name, a serial, a time."""
Short = Annotated[str, StringConstraints(max_length=SHORT)]


class _Subgroup(Limits):
    advertised: Count
    measured: Count
    min: Count
    max: Count


class _Profile(Limits):
    api: Word
    vendor: Line
    renderer: Line
    version: Line
    glsl: Line
    library: Line
    limits: Annotated[dict[Fact, Count], Field(max_length=200)]
    adapter: Adapter
    device_type: Line
    driver: Annotated[dict[Fact, Line], Field(max_length=50)]
    extensions: Lines
    advertised: Facts
    features: Facts
    unproven: Annotated[dict[Fact, Line], Field(max_length=200)]
    subgroup: _Subgroup
    float_controls: Facts
    matrices: Lines
    timer_bits: Annotated[int, Field(ge=0, le=64)]
    timer_period_ns: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    imposed_limits: Lines


class _Soc(Limits):
    name: Short
    vendor: Short
    model: Short
    source: Line


class _Record(Limits):
    device_id: DeviceId
    serial: Short
    name: Short
    soc: _Soc
    profiles: Annotated[list[_Profile], Field(max_length=32)]
    resource: Line
    host: Line
    os_build: Line
    health: Annotated[dict[Short, Short], Field(max_length=100)]


class _Registration(Limits):
    record: _Record
    worker_id: Word
    started_at: Short
    pid: Pid


class _Phone(Limits):
    serial: Short
    device_id: DeviceId | Annotated[str, StringConstraints(max_length=0)]
    why: Line
    since: Short
    until: Short


class _Report(Limits):
    host: Line
    pid: Pid
    started_at: Short
    adb: Line
    phones: Annotated[list[_Phone], Field(max_length=10_000)]


class _Hold(Limits):
    device_id: DeviceId
    by: Line
    why: Line
    since: Short
    serial: Line
    host: Line


def presentable(record: DeviceRecord) -> DeviceRecord:
    """With the phone's own words made fit for people. A serial stays what adb takes it for."""
    clean = printables(record)
    return replace(
        clean,
        serial=record.serial,
        name=clean.name[:SHORT],
        soc=printables(record.soc, SHORT),
        health=printables(record.health, SHORT),
    )


def checked_profile(profile: Profile) -> Profile:
    """
    Raises:
        WireError: no driver is like that.
    """
    clean = printables(profile)
    check(_Profile, clean, "bad profile")
    return clean


def read_registration(text: object, where: str) -> Registration:
    """Raises WireError, as all of these do: unreadable, or about a device that cannot be."""
    found = unpack(Registration, text, where)
    check(_Registration, found, where)
    return found


def read_report(text: object, where: str) -> AgentReport:
    found = unpack(AgentReport, text, where)
    check(_Report, found, where)
    return found


def read_hold(text: object, where: str) -> Hold:
    found = unpack(Hold, text, where)
    check(_Hold, found, where)
    return found

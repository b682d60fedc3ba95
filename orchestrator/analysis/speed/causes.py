"""Why a series moved: its code, the phone's software, the one phone, or the night."""

from dataclasses import dataclass, fields
from enum import StrEnum

from orchestrator.analysis.speed.confirm import Answer


class Cause(StrEnum):
    CODE = "code"
    DRIVER = "driver"
    """The environment key changed: driver or OS build."""
    DEVICE = "device"
    """One phone shows it and others of its SoC do not."""
    ENVIRONMENT = "environment"
    """Same code, same software, other speed."""


@dataclass(frozen=True, slots=True)
class EnvironmentKey:
    driver: str
    os_build: str


@dataclass(frozen=True, slots=True)
class Evidence:
    code_changed: bool
    before: EnvironmentKey
    """In the baseline's last night."""
    after: EnvironmentKey
    phones: int
    """Of the SoC, that could tell."""
    showing: int
    turns: Answer | None = None
    """Of both codes measured in turns, where that was done."""
    compilers: tuple[str, str] | None = None
    """Before and after, where another one made SPIR-V of the shader: other code from the same text."""


@dataclass(frozen=True, slots=True)
class Attribution:
    cause: Cause
    why: str


def attribute(seen: Evidence) -> Attribution:
    pairs = {
        f.name: (getattr(seen.before, f.name), getattr(seen.after, f.name)) for f in fields(EnvironmentKey)
    }
    changed = [f"{n.replace('_', ' ')} {old} → {new}" for n, (old, new) in pairs.items() if old != new]
    software = "; ".join(changed)
    if seen.showing == 1 and seen.phones > 1:
        return Attribution(Cause.DEVICE, f"1 of {seen.phones} phones shows it")
    if seen.code_changed and seen.turns is Answer.DIFFERENT:
        return Attribution(Cause.CODE, "the codes differ when measured in turns on one phone")
    new_code = seen.code_changed and seen.turns is not Answer.SAME
    not_code = "measured in turns the codes do not differ; " if seen.code_changed and not new_code else ""
    if new_code or seen.compilers is not None:
        told = ["the code changed"] if new_code else []
        if seen.compilers is not None:
            told.append("the SPIR-V compiler changed: {} → {}".format(*seen.compilers))
        other = f"; so did the {software}" if changed else ""
        # Turns are of two codes: both go through tonight's compiler, and run on tonight's software.
        if new_code and (changed or seen.compilers):
            other += ": measure both codes in turns"
        return Attribution(Cause.CODE, not_code + " and ".join(told) + other)
    if changed:
        return Attribution(Cause.DRIVER, not_code + software)
    return Attribution(Cause.ENVIRONMENT, not_code + "neither code nor software changed")

"""What really happened in the example's month: the truth that its verdicts are held against."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, prod
from typing import Literal

from orchestrator.domain.case import Case

NIGHTS = 30
FIRST_NIGHT = "2026-11-01"
MISSED = (9, 10)
"""Nights (from 1) that never ran."""
SWAP_NIGHT = 15
"""From then on another phone has the place and the name of ``tensor-g3-2``."""
GONE_FROM = 28
"""From then on ``mt6989-3`` is not seen any more."""
DRIVER_NIGHT = 18
OLD_DRIVER, NEW_DRIVER = "0740.0", "0744.1"
Cause = Literal["code", "driver", "device", "environment"]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that made cases slower or faster from one night on."""

    name: str
    night: int
    cause: Cause
    factor: float
    """Of latency."""
    socs: tuple[str, ...]
    """Empty: all."""
    cases: Callable[[Case], bool]
    devices: tuple[str, ...] = ()
    """Empty: all of the SoCs'."""

    def holds(self, night: int, soc: str, device_id: str, case: Case) -> bool:
        there = (not self.socs or soc in self.socs) and (not self.devices or device_id in self.devices)
        return night >= self.night and there and self.cases(case)


def _kernel(name: str, **axes: object) -> Callable[[Case], bool]:
    return lambda c: c.kernel == name and all(c.axes.get(k) == v for k, v in axes.items())


CHANGES = (
    Change("new driver slows fp16_storage", DRIVER_NIGHT, "driver", 1.06, ("SM8650",),
           lambda c: c.axes.get("precision") == "fp16_storage"),
    Change("everything slower, no key changed", 20, "environment", 1.04, ("S5E9945",), lambda c: True),
    Change("flash 64x16 rewritten", 22, "code", 1.08, (), _kernel("attention_flash", tile="64x16")),
    Change("products faster", 25, "code", 0.90, (), _kernel("sgemm")),
    Change("one worn phone", 26, "device", 1.12, (), lambda c: True, ("sm6375-2",)),
    Change("blur slower, no key changed", 27, "environment", 1.07, ("MT6989",),
           lambda c: c.op == "blur_tonemap"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drift:
    """Something that gets slower a little every night, too little for any one of them."""

    name: str
    night: int
    """The last one without it."""
    rate: float
    """Log ratio a night."""
    socs: tuple[str, ...]
    cases: Callable[[Case], bool]

    def factor(self, night: int, soc: str, case: Case) -> float:
        there = soc in self.socs and self.cases(case)
        return exp(self.rate * max(0, night - self.night)) if there else 1.0


DRIFTS = (Drift("scale creeps", 2, 0.0012, ("MT6989",), _kernel("scale")),)


@dataclass(frozen=True, slots=True)
class WrongNumbers:
    """Something that changed what cases compute from one night on."""

    name: str
    night: int
    flag: Literal["hash_changed", "nmse_doubled", "limit_crossed", "nondeterministic"]
    socs: tuple[str, ...]
    cases: Callable[[Case], bool]

    def holds(self, night: int, soc: str, case: Case) -> bool:
        return night >= self.night and (not self.socs or soc in self.socs) and self.cases(case)


NUMBERS = (
    WrongNumbers("fused blur rounds once more", 24, "nmse_doubled", (),
                 _kernel("blur_tonemap_fused", precision="fp16_storage")),
    WrongNumbers("a race on one driver", 28, "nondeterministic", ("S5E9945",),
                 _kernel("attention_flash", tile="128x16", api="gles")),
    WrongNumbers("a wrong barrier", 29, "limit_crossed", ("Tensor-G3",),
                 _kernel("attention_flash_blocked", tile="128x64", rows=8)),
)  # fmt: skip


def code_version(case: Case, night: int) -> int:
    """Raised by each change whose cause is the code."""
    return len(_versions(case, night))


def code_factor(case: Case, version: int) -> float:
    """Of latency, that this version of a case's code has against its first one."""
    return prod(factor for _, factor in sorted(_versions(case, NIGHTS))[:version])


def _versions(case: Case, night: int) -> list[tuple[int, float]]:
    """(night, factor of latency) of each new code up to a night."""
    rewritten = [(c.night, c.factor) for c in CHANGES if c.cause == "code" and c.holds(night, "", "", case)]
    rounding = [(n.night, 1.0) for n in NUMBERS if n.flag == "nmse_doubled" and n.holds(night, "", case)]
    return rewritten + rounding


def told() -> str:
    """For people, as Markdown."""
    where = ", ".join
    lines = [
        "# What really happened",
        "",
        f"Nights {where(map(str, MISSED))} never ran. From night {SWAP_NIGHT} on another phone has the place "
        f"and name of tensor-g3-2. mt6989-3 is gone from night {GONE_FROM} on. SM8650 got driver "
        f"{NEW_DRIVER} in night {DRIVER_NIGHT}.",
        "",
        "| from night | what | cause | on | latency |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {c.night} | {c.name} | {c.cause} | {where(c.devices or c.socs) or 'all'} | {c.factor - 1:+.0%} |"
        for c in sorted(CHANGES, key=lambda c: c.night)
    ]
    lines += [
        f"| {d.night + 1} | {d.name} | environment | {where(d.socs)} | {d.rate:+.2%} a night |"
        for d in DRIFTS
    ]
    lines += [
        f"| {n.night} | {n.name} | {n.flag.replace('_', ' ')} | {where(n.socs) or 'all'} | |" for n in NUMBERS
    ]
    return "\n".join(lines) + "\n"

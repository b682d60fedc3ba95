"""Determinism: how many executions of a trial gave other bits, told per power state (G1-01, G1-02)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.kernel import Tolerance
from orchestrator.domain.trial import Difference, Numerics

State = Literal["back to back", "after a rest"]


@dataclass(frozen=True, slots=True)
class Rate:
    """Executions in one power state. States are never pooled: a rate may hold in one of them only."""

    state: State
    executions: int
    other: int
    """Gave other bits than the output that was compared with the reference."""
    distinct: int
    """Different outputs."""

    @property
    def share(self) -> float | None:
        return self.other / self.executions if self.executions else None


@dataclass(frozen=True, slots=True)
class Replays:
    """All executions of one output whose bits were hashed."""

    rates: tuple[Rate, ...]
    distinct: int
    compared_right: bool
    """The compared output is within its tolerance, so that each other one is a wrong run or a near one."""

    @property
    def executions(self) -> int:
        return sum(r.executions for r in self.rates)

    @property
    def other(self) -> int:
        return sum(r.other for r in self.rates)

    @property
    def sentence(self) -> str:
        """``2 distinct outputs in 100 executions, 23 of them unlike the compared one, which is right``."""
        state = "which is within its tolerance" if self.compared_right else "which is wrong itself"
        return (
            f"{self.distinct} distinct outputs in {self.executions} executions: {self.other} unlike the "
            f"compared one, {state}"
        )


@dataclass(frozen=True, slots=True)
class Box:
    """Smallest box around the elements that differ between executions."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, ...]:
        return tuple(high - low + 1 for low, high in zip(self.low, self.high, strict=True))


def replays(output: Numerics, tolerance: Tolerance | None) -> Replays:
    """Of one output. ``idle_hashes`` are a part of ``hashes``; the rest ran back to back.

    Without a tolerance only what the runner counted element by element can call the output wrong.
    """
    idle = output.idle_hashes
    busy = {h: n - idle.get(h, 0) for h, n in output.hashes.items() if n > idle.get(h, 0)}
    rates = [_rate("back to back", busy, output.hash)]
    if idle:
        rates.append(_rate("after a rest", idle, output.hash))
    right = output.failing == 0 and output.guard == "ok" and not output.unwritten
    right = right and not output.nonfinite_mismatch
    right = right and (tolerance is None or output.nmse <= tolerance.nmse)  # False for NaN
    return Replays(tuple(rates), len(output.hashes), right)


def box(differs: Difference | None) -> Box | None:
    """None when nothing differs or the output has no shape."""
    if differs is None or not differs.box:
        return None
    return Box(tuple(low for low, _ in differs.box), tuple(high for _, high in differs.box))


def executions(outputs: Iterable[Numerics]) -> int:
    """Executions of a trial that were hashed; 0 without an output."""
    return max((sum(o.hashes.values()) for o in outputs), default=0)


def range_words(counts: Sequence[int]) -> str:
    """``12`` or ``12 to 59``; empty without any."""
    known = [n for n in counts if n]
    if not known:
        return ""
    low, high = min(known), max(known)
    return str(low) if low == high else f"{low} to {high}"


def _rate(state: State, hashes: dict[str, int], compared: str) -> Rate:
    total = sum(hashes.values())
    return Rate(state, total, total - hashes.get(compared, 0), len(hashes))

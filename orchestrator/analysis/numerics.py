"""What the device's comparison says: coordinates, errors at an element, share of the tolerance."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.domain.kernel import Tolerance
from orchestrator.domain.trial import Element, Numerics


@dataclass(frozen=True, slots=True)
class ToleranceUse:
    """How much of its tolerance an output used; 1.0 is the limit, infinite with non-finite errors."""

    share: float
    exact: bool
    """False: a lower bound (both absolute and relative terms, no worst element reported)."""
    by: Literal["element", "nmse"]
    """Which of the two limits is used up more."""


@dataclass(frozen=True, slots=True)
class ElementError:
    """One element of an output against its reference."""

    index: int
    coordinates: tuple[int, ...] | None
    got: float
    ref: float
    error: float
    """|got − ref|; 0 for equal infinities or two NaN, infinite for any other non-finite pair."""
    allowed: float
    """atol + rtol·|ref|"""


def coordinates(index: int, shape: Sequence[int]) -> tuple[int, ...] | None:
    """C-order coordinates of a flat index; None when the shape is unknown or too small for it."""
    if not shape or index < 0 or index >= math.prod(shape):
        return None
    found: list[int] = []
    for extent in reversed(shape):
        index, at = divmod(index, extent)
        found.append(at)
    return tuple(reversed(found))


def element_error(element: Element, shape: Sequence[int], tolerance: Tolerance) -> ElementError:
    return ElementError(
        index=element.index,
        coordinates=coordinates(element.index, shape),
        got=element.got,
        ref=element.ref,
        error=_error(element.got, element.ref),
        allowed=tolerance.atol + tolerance.rtol * abs(element.ref),
    )


def tolerance_use(output: Numerics, tolerance: Tolerance) -> ToleranceUse:
    """The larger of the element-wise share and the NMSE share.

    Element-wise: at the worst element where the runner reported one; exact as well where the
    tolerance has one term only; otherwise ``max_abs ÷ (atol + rtol·max|ref|)``, a lower bound.
    """
    share, exact = _element_share(output, tolerance)
    if output.nonfinite_mismatch or any(math.isnan(v) for v in (share, output.max_abs, output.nmse)):
        return ToleranceUse(math.inf, True, "element")
    nmse = _ratio(output.nmse, tolerance.nmse)
    if output.failing and share <= 1 and nmse <= 1:
        # The runner rejected elements whose error has no size, such as NaN: never show that as small.
        return ToleranceUse(math.inf, True, "element")
    if nmse > share:
        return ToleranceUse(nmse, True, "nmse")
    return ToleranceUse(share, exact, "element")


def worst_use(outputs: Iterable[Numerics], tolerances: Mapping[str, Tolerance]) -> ToleranceUse | None:
    """Over all checked outputs; None without any."""
    uses = [tolerance_use(o, tolerances[o.buffer]) for o in outputs if o.buffer in tolerances]
    return max(uses, key=lambda use: use.share, default=None)


def worst_error(outputs: Iterable[Numerics]) -> float | None:
    """Largest absolute error over all outputs; NaN when any of them is NaN (max() would drop it)."""
    errors = [o.max_abs for o in outputs]
    if any(math.isnan(e) for e in errors):
        return math.nan
    return max(errors, default=None)


def _error(got: float, ref: float) -> float:
    if got == ref or (math.isnan(got) and math.isnan(ref)):
        return 0.0
    error = abs(got - ref)
    return math.inf if math.isnan(error) else error


def _element_share(output: Numerics, tolerance: Tolerance) -> tuple[float, bool]:
    if output.worst is not None:
        worst = element_error(output.worst, (), tolerance)
        return _ratio(worst.error, worst.allowed), True
    if tolerance.rtol == 0:
        return _ratio(output.max_abs, tolerance.atol), True
    if tolerance.atol == 0 and not math.isnan(output.max_rel):
        return _ratio(output.max_rel, tolerance.rtol), True
    return _ratio(output.max_abs, tolerance.atol + tolerance.rtol * output.ref_absmax), False


def _ratio(value: float, limit: float) -> float:
    """value ÷ limit with 0 ÷ 0 = 0: an exact result under a zero tolerance uses none of it."""
    if value == 0:
        return 0.0
    return math.inf if limit == 0 else value / limit

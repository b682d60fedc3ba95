"""Words that verdicts and reports share."""

from math import expm1


def plural(count: int, one: str, many: str = "") -> str:
    """``1 case``, ``2 cases``"""
    return f"{count} {one if count == 1 else many or one + 's'}"


def faster_or_slower(effect: float) -> str:
    """Of a log ratio of latency: ``8.0 % slower``."""
    return f"{abs(expm1(effect)) * 100:.1f} % {'slower' if effect > 0 else 'faster'}"

"""The latency–error front: variants that no other one beats in both."""

from collections.abc import Sequence
from math import inf, isnan


def front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Of (latency, error): whether no other point is as good in both and better in one. A NaN error is the
    worst. Points that are alike in both are all on the front."""
    known = [(t, inf if isnan(e) else e) for t, e in points]
    order = sorted(set(known))
    kept: set[tuple[float, float]] = set()
    best = inf
    for at, (t, e) in enumerate(order):
        if e < best or (at == 0 and e == inf):
            kept.add((t, e))
            best = e
    return [point in kept for point in known]

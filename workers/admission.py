"""Before a batch: is the device fit for work? A hot or empty phone is waited for, not measured."""

import time
from collections.abc import Callable, Sequence

from orchestrator.domain.errors import InfraError
from orchestrator.domain.health import Condition, Gates, Health, Vitals, step

POLL_S = 10.0

ONLINE = Health(Condition.ONLINE, "", 0.0)
"""It answered a moment ago: what is left to ask is whether a gate is shut."""


def admit(
    name: str,
    ask: Callable[[float], Vitals],
    *,
    timeout_s: float,
    on_wait: Callable[[str], None],
    gates: Gates | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Vitals:
    """Wait until every gate is open.

    Args:
        name: device id, for the error.
        ask: vitals of the device, at a time of ``clock``.
        on_wait: told why, and for how long as far as the cooling so far tells.

    Returns:
        The vitals that the batch starts with.

    Raises:
        InfraError: a gate is still shut after ``timeout_s``; names it with both numbers.
    """
    gates = gates or Gates()
    health, start = ONLINE, clock()
    cooling: list[tuple[float, float]] = []
    while True:
        now = clock()
        vitals = ask(now)
        health = step(health, vitals, gates)
        if health.usable:
            return vitals
        if now - start >= timeout_s:
            raise InfraError(f"{name}: {health.condition} for {now - start:.0f} s: {health.why}")
        if health.condition is Condition.HOT and vitals.battery_c is not None:
            cooling.append((now, vitals.battery_c))
        left = _left_s(cooling, gates.cool_c) if health.condition is Condition.HOT else None
        soon = f", about {left:.0f} s more" if left else ""
        on_wait(f"{health.condition}: {health.why}{soon}")
        sleep(min(POLL_S, max(1.0, left)) if left else POLL_S)


def _left_s(cooling: Sequence[tuple[float, float]], target_c: float) -> float | None:
    from workers.cooldown import seconds_until  # numpy, which workers of cool phones do without

    return seconds_until(cooling, target_c)

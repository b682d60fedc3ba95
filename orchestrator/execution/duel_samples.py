"""From the trials of a job in turns to an answer."""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import Literal

import numpy as np

from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.confirm import Interleaved, decision
from orchestrator.analysis.speed.night import Samples
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.trials import samples_of
from orchestrator.domain.confirmation import Duel, Wanted
from orchestrator.domain.trial import Timing, Trial

GPU_SHARE = 0.75
"""Of the samples whose GPU timer is trusted: below it the wall clock times them all. Two clocks in one duel
would make a difference out of nothing."""
Clock = Literal["gpu", "wall"]


def duel_of(wanted: Wanted, trials: Sequence[Trial | None], why: str = "") -> Duel:
    """
    Args:
        trials: in the order A B B A …, None where one never came; as many as one of the looks has.
        why: what kept some of them from being measured.
    """
    timings = [t.timing if t is not None else None for t in trials]
    clock = _clock(timings)
    own = [
        replace(t, timing=_by(t.timing, clock)) if t is not None and t.timing is not None else None
        for t in trials
    ]
    shape = (1, len(trials))
    latency, hz, temp = (np.full(shape, np.nan) for _ in range(3))
    throttled = np.zeros(shape, np.bool_)
    at = [n for n, t in enumerate(own) if t is not None]
    seen = samples_of([t for t in own if t is not None])
    latency[0, at], hz[0, at] = rows.median(seen.latency_ns), rows.median(seen.gpu_hz)
    temp[0, at] = rows.median(seen.temp_mc)
    throttled[0, at] = (seen.throttled | seen.hot()).any(axis=1)
    found = decision(Interleaved(latency, hz, temp, throttled), wanted.threshold or RULE.threshold)
    return Duel(
        wanted=wanted,
        answer=found.answer.value,
        effect=found.effect,
        low=found.low,
        high=found.high,
        p=found.p,
        pairs=found.pairs,
        valid=found.valid,
        latency_ns=[round(v) if isfinite(v) else 0 for v in latency[0].tolist()],
        gpu_hz=hz[0].tolist(),
        temp_mc=temp[0].tolist(),
        throttled=throttled[0].tolist(),
        why=why or ("" if found.valid else _nothing_counts(seen, len(trials))),
        clock=clock,
    )


def _nothing_counts(seen: Samples, samples: int) -> str:
    """Another look would show the same."""
    hot, throttled = (int(flags.any(axis=1).sum()) for flags in (seen.hot(), seen.throttled))
    words = [(samples - len(seen.latency_ns), "not timed"), (hot, "too warm"), (throttled, "throttled")]
    told = ", ".join(f"{n} {what}" for n, what in words if n)
    return f"no pair of {samples} samples counts: {told or 'neighbours were in two clock states'}"


def unanswered(wanted: Wanted, why: str) -> Duel:
    return Duel(wanted, "unknown", nan, nan, nan, 1.0, 0, 0, why=why)


def _clock(timings: Sequence[Timing | None]) -> Clock:
    timed = [t for t in timings if t is not None]
    trusted = sum(t.gpu_timer == "trusted" for t in timed)
    return "gpu" if timed and trusted >= GPU_SHARE * len(timed) else "wall"


def _by(timing: Timing, clock: Clock) -> Timing | None:
    """The same by one clock; None where that did not time it."""
    if clock == "gpu":
        return timing if timing.gpu_timer == "trusted" else None
    return replace(timing, gpu_timer="absent")

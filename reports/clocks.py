"""Words for trials whose clock moved, and for throttled ones (field case G4-05)."""

from collections.abc import Iterable

from orchestrator.analysis.canaries import CanaryFacts
from orchestrator.analysis.clocks import CLOCK_FLOOR, PACE_FLOOR, ClockFacts, ClockState, trial_clock
from orchestrator.analysis.outcome import JudgedTrial
from orchestrator.analysis.stats import TimingStats
from orchestrator.domain.verdict import Verdict
from reports.numbers import duration, ratio


def megahertz(hz: float) -> str:
    return f"{hz / 1e6:.0f} MHz"


def named_by_clock(facts: ClockFacts) -> bool:
    """The two states differ in the clock that the device showed, too."""
    hz = sorted(s.hz for s in facts.states if s.hz)
    return len(hz) == 2 and hz[1] > hz[0] * (1 + CLOCK_FLOOR)


def mark(facts: ClockFacts) -> str:
    """Two words for a narrow column; empty where the clock stood still."""
    if named_by_clock(facts) or facts.range_moved:
        return "clock moved"
    return "two modes" if facts.states else ""


def sentence(facts: ClockFacts) -> str:
    """``two clock states: 4 samples at 1155 MHz 21.2 ms, 16 at 1980 MHz 11.9 ms``."""
    if facts.states:
        by_clock = named_by_clock(facts)
        name = "two clock states" if by_clock else "two modes"
        first, *rest = (_state(s, by_clock, f"{s.samples}") for s in facts.states)
        count, _, words = first.partition(" ")
        return f"{name}: {', '.join([f'{count} samples {words}', *rest])}"
    if facts.range_moved:
        return f"clock moved from {megahertz(facts.low_hz)} to {megahertz(facts.high_hz)}, times in one mode"
    return ""


def median_words(stats: TimingStats, facts: ClockFacts) -> str:
    """The median, or both states where no one number stands for the samples."""
    if not facts.states:
        return duration(stats.median_ns)
    return " / ".join(f"{duration(s.mean_ns)} ×{s.samples}" for s in facts.states)


def device_notes(trials: Iterable[JudgedTrial], canaries: Iterable[CanaryFacts] = ()) -> tuple[str, ...]:
    """Of one device's correct and timed trials: those without one clock, the canary's range,
    and throttled samples."""
    facts = [
        trial_clock(t.trial)
        for t in trials
        if t.trial.timing is not None and t.trial.timing.samples_ns and t.trial.verdict is Verdict.PASS
    ]
    by_clock = sum(mark(f) == "clock moved" for f in facts)
    by_times = sum(mark(f) == "two modes" for f in facts)
    said = [f"the clock moved in {by_clock}"] if by_clock else []
    said += [f"times fell in two modes in {by_times}"] if by_times else []
    notes: list[str] = []
    if said:
        notes.append(
            f"{' and '.join(said)} of {len(facts)} timed trials: none is called fastest beside a steady one"
        )
    notes += [
        f"the {k.api} canary took {duration(k.low_ns)} to {duration(k.high_ns)}: its speed varied up "
        f"to {ratio(k.pace)}, and ratios of times may be that"
        for k in canaries
        if k.pace > PACE_FLOOR
    ]
    throttled = [f.throttled_samples for f in facts if f.throttled_samples]
    if throttled:
        notes.append(
            f"{sum(throttled)} samples of {len(throttled)} {'trial' if len(throttled) == 1 else 'trials'} "
            "were taken while the device was throttled"
        )
    return tuple(notes)


def _state(state: ClockState, by_clock: bool, count: str) -> str:
    at = f" at {megahertz(state.hz)}" if by_clock and state.hz else ""
    return f"{count}{at} {duration(state.mean_ns)}"

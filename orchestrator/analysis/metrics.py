"""Speed of a trial in terms that compare across variants: speed-up over naive, GFLOP/s, traffic."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.analysis.clocks import clock_moved, trial_clock
from orchestrator.analysis.outcome import JudgedTrial
from orchestrator.analysis.stats import Clock, TimingStats, timing_stats
from orchestrator.domain.case import AxisValue
from orchestrator.domain.kernel import Cost
from orchestrator.domain.verdict import Verdict

NAIVE_SUFFIX = "_naive"

BaselineKey = tuple[str, str, str, AxisValue | None, AxisValue | None, Clock]
"""device id, op, workload id, api, precision, clock."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The fastest correct naive variant of a workload on a device."""

    case_id: str
    label: str
    median_ns: float
    clock_moved: bool = False
    """While it was timed; so only where it moved in every candidate."""


def baselines(judged: Iterable[JudgedTrial]) -> Mapping[BaselineKey, Baseline]:
    """Per (device, op, workload, api, precision, clock): the fastest passing variant of the op's
    ``*_naive`` kernel.

    Equal api and precision: otherwise the ratio would credit the algorithm with what the driver or
    a narrower type did. The best tile: a badly tiled opponent flatters. Equal clock: a wall-clock
    time holds launch overhead that a GPU time does not. Wrong results set no baseline.
    """
    best: dict[BaselineKey, Baseline] = {}
    for item in judged:
        stats = timing_stats(item.trial.timing)
        case = item.info.case
        if stats is None or item.trial.verdict is not Verdict.PASS or not case.kernel.endswith(NAIVE_SUFFIX):
            continue
        if trial_clock(item.trial).states:
            continue  # no one number stands for it
        key = _key(item, stats)
        found = Baseline(case.case_id, case.label, stats.median_ns, clock_moved(item.trial))
        if key not in best or _rank(found) < _rank(best[key]):
            best[key] = found
    return best


def _rank(found: Baseline) -> tuple[bool, float]:
    return (found.clock_moved, found.median_ns)


def speedup(item: JudgedTrial, table: Mapping[BaselineKey, Baseline]) -> float | None:
    """Baseline's median ÷ this median; None for a wrong result or without an equal baseline."""
    stats = timing_stats(item.trial.timing)
    if stats is None or item.trial.verdict is not Verdict.PASS:
        return None
    baseline = table.get(_key(item, stats))
    return None if baseline is None else baseline.median_ns / stats.median_ns


def gflops(cost: Cost, stats: TimingStats) -> float | None:
    """Useful arithmetic ÷ median; flops per ns are GFLOP/s. None for an op without arithmetic."""
    return cost.flops / stats.median_ns if cost.flops else None


def traffic_ratio(cost: Cost) -> float | None:
    """Modelled traffic ÷ compulsory traffic: 1.0 reads inputs once and writes outputs once."""
    return cost.bytes_moved / cost.bytes_min if cost.bytes_min else None


def _key(item: JudgedTrial, stats: TimingStats) -> BaselineKey:
    case = item.info.case
    return (
        item.device.device_id,
        case.op,
        case.workload_id,
        case.axes.get("api"),
        case.axes.get("precision"),
        stats.clock,
    )

"""Precision hints that change nothing on a device: same bits, same time (field case G1-14)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.analysis.clocks import one_clock
from orchestrator.analysis.outcome import JudgedTrial
from orchestrator.analysis.stats import TimingStats, timing_stats
from orchestrator.domain.case import Case
from orchestrator.domain.digest import stable_id
from orchestrator.domain.verdict import Verdict

HINT_AXIS = "hint"
NOISE_FLOOR = 0.02
"""Medians closer than 2 % are never called different, however small the spreads."""

_Group = tuple[str, str, str, tuple[str, ...]]
"""device id, kernel, api, hints."""


@dataclass(frozen=True, slots=True)
class HintEffect:
    """What two or more values of ``hint`` did to one kernel through one API on one device."""

    device_id: str
    kernel: str
    api: str
    hints: tuple[str, ...]
    without_effect: tuple[tuple[str, ...], ...]
    """Groups of case ids that differ in the hint only and gave equal bits in equal time."""
    same_bits: int
    """Groups with equal bits, whatever their times."""
    compared: int
    """Groups that could be compared: same case but for the hint, all passed and timed by a steady clock."""

    @property
    def no_effect(self) -> bool:
        return len(self.without_effect) == self.compared

    @property
    def sentence(self) -> str:
        names = " and ".join(self.hints) if len(self.hints) == 2 else ", ".join(self.hints)
        where = f"{self.compared} comparison{'' if self.compared == 1 else 's'} of {self.kernel} ({self.api})"
        if self.no_effect:
            return (
                f"hint has no effect here: {names} gave the same bits in the same time within noise in all "
                f"{where}"
            )
        if self.same_bits == self.compared:
            moved = self.compared - len(self.without_effect)
            return f"hint changes no bits here: {names} differed in time beyond noise in {moved} of {where}"
        return f"hint changes bits here: {names} differed in {self.compared - self.same_bits} of {where}"


def hint_effects(judged: Iterable[JudgedTrial]) -> list[HintEffect]:
    """One entry per (device, kernel, api, set of hints) with at least one comparison, in order seen."""
    families: dict[tuple[str, str], list[JudgedTrial]] = defaultdict(list)
    for item in judged:
        if item.trial.verdict is Verdict.PASS and HINT_AXIS in item.info.case.axes and not item.probe:
            families[item.device.device_id, _family(item.info.case)].append(item)
    compared: dict[_Group, int] = defaultdict(int)
    bits: dict[_Group, int] = defaultdict(int)
    same: dict[_Group, list[tuple[str, ...]]] = defaultdict(list)
    for (device_id, _), items in families.items():
        stats = [s for s in (timing_stats(i.trial.timing) for i in items) if s is not None]
        if len(items) < 2 or len(stats) < len(items) or not one_clock(i.trial for i in items):
            continue
        items.sort(key=lambda i: str(i.info.case.axes[HINT_AXIS]))
        case = items[0].info.case
        hints = tuple(str(i.info.case.axes[HINT_AXIS]) for i in items)
        key = (device_id, case.kernel, str(case.axes.get("api", "")), hints)
        compared[key] += 1
        equal = _same_bits(items)
        bits[key] += equal
        if equal and within_noise(stats):
            same[key].append(tuple(i.info.case.case_id for i in items))
    return [
        HintEffect(*key, without_effect=tuple(same[key]), same_bits=bits[key], compared=n)
        for key, n in compared.items()
    ]


def within_noise(stats: Iterable[TimingStats]) -> bool:
    """True when all medians, by one clock, lie within the largest spread (at least 2 %) of the smallest."""
    known = list(stats)
    low = min(s.median_ns for s in known)
    high = max(s.median_ns for s in known)
    noise = max(NOISE_FLOOR, *(s.spread for s in known))
    return len({s.clock for s in known}) == 1 and high <= low * (1 + noise)


def _family(case: Case) -> str:
    """Identity of a case without its hint."""
    axes: Mapping[str, object] = {k: v for k, v in case.axes.items() if k != HINT_AXIS}
    return stable_id({"kernel": case.kernel, "workload": case.workload_id, "axes": axes})


def _same_bits(items: list[JudgedTrial]) -> bool:
    """Every replay of every item gave one and the same hash per output."""
    first = {o.buffer: o.hash for o in items[0].trial.outputs}
    return bool(first) and all(
        {o.buffer: o.hash for o in i.trial.outputs} == first
        and all(len(o.hashes) == 1 for o in i.trial.outputs)
        for i in items
    )

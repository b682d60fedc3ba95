"""The same point through GLES and Vulkan: on one GPU, or on two software drivers of one machine.

Two drivers of one processor are paired because nothing but the driver differs: same cores, same shader
source, trials serialised. Two phones of one SoC never are: they differ in more than the API.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.analysis.clocks import one_clock, steady
from orchestrator.analysis.hints import within_noise
from orchestrator.analysis.numerics import ToleranceUse, worst_use
from orchestrator.analysis.outcome import JudgedTrial
from orchestrator.analysis.stats import TimingStats, timing_stats, wall_stats
from orchestrator.domain.case import Case, axis_text
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.digest import stable_id
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict

GLES, VULKAN = "gles", "vulkan"
API_AXIS = "api"
_SAME_WORK = ("precision",)
"""Axes between which a fastest variant is never sought: another precision is another result."""

_NO_RESULT = frozenset({Verdict.INFRA, Verdict.UNSUPPORTED, Verdict.INVALID})

Faster = Literal["gles", "vulkan", "even", ""]


@dataclass(frozen=True, slots=True)
class Side:
    """One point through one API."""

    item: JudgedTrial
    stats: TimingStats | None
    """By the clock that both sides of the pair have; None for a wrong result."""
    compile_ns: int | None
    use: ToleranceUse | None
    """Share of the tolerance that its error took."""

    @property
    def correct(self) -> bool:
        return self.item.trial.verdict is Verdict.PASS


@dataclass(frozen=True, slots=True)
class Pair:
    """A case that differs in the API only."""

    gles: Side
    vulkan: Side

    @property
    def case(self) -> Case:
        return self.gles.item.info.case

    @property
    def verdict_differs(self) -> bool:
        return self.gles.item.trial.verdict is not self.vulkan.item.trial.verdict

    @property
    def correct(self) -> bool:
        return self.gles.correct and self.vulkan.correct

    @property
    def same_bits(self) -> bool | None:
        """Every output and execution gave the same bytes; None unless both are correct."""
        if not self.correct:
            return None
        left, right = (
            {o.buffer: sorted(o.hashes) for o in side.item.trial.outputs} for side in (self.gles, self.vulkan)
        )
        return left == right if left and right else None

    @property
    def ratio(self) -> float | None:
        """Median on Vulkan ÷ median on GLES, both correct and by one clock; below 1: Vulkan is faster."""
        old, new = self.gles.stats, self.vulkan.stats
        if not self.correct or old is None or new is None or old.clock != new.clock:
            return None
        return new.median_ns / old.median_ns

    @property
    def clock_moved(self) -> bool:
        """While either side was timed, or between them: the ratio holds a clock's change."""
        return not one_clock(s.item.trial for s in (self.gles, self.vulkan))

    @property
    def faster(self) -> Faster:
        """``even`` within the noise of both; empty without a ratio, and where the clock moved."""
        ratio, old, new = self.ratio, self.gles.stats, self.vulkan.stats
        if ratio is None or old is None or new is None or self.clock_moved:
            return ""
        if within_noise((old, new)):
            return "even"
        return VULKAN if ratio < 1 else GLES


@dataclass(frozen=True, slots=True)
class BestDiffers:
    """The fastest variant on one API is not the fastest on the other, beyond noise on at least one."""

    case: Case
    """On GLES; its workload and precision are those of both."""
    gles: str
    """The axes of the fastest variant that the other API chose otherwise."""
    gles_ns: float
    vulkan: str
    vulkan_ns: float


@dataclass(frozen=True, slots=True)
class PairTable:
    """All pairs of a device with itself, or of two software drivers of one machine."""

    gles: DeviceRecord
    vulkan: DeviceRecord
    pairs: tuple[Pair, ...]
    best_differs: tuple[BestDiffers, ...]
    choices: int
    """Kernels, workloads and precisions with at least two points that are correct and timed on both."""

    @property
    def one_device(self) -> bool:
        return self.gles.device_id == self.vulkan.device_id

    @property
    def names(self) -> str:
        """``GLES and Vulkan on NVIDIA H200`` or ``GLES on llvmpipe and Vulkan on lavapipe``."""
        if self.one_device:
            return f"GLES and Vulkan on {self.gles.name}"
        return f"GLES on {self.gles.soc.name} and Vulkan on {self.vulkan.soc.name}"

    @property
    def sentence(self) -> str:
        """``same bits on both APIs in 40 of 52 points; Vulkan faster in 45, GLES in 3, even in 4``."""
        same = sum(p.same_bits is True for p in self.pairs)
        correct = sum(p.correct for p in self.pairs)
        words = [f"same bits on both APIs in {same} of {correct} {'point' if correct == 1 else 'points'}"]
        by = [p.faster for p in self.pairs if p.faster]
        if by:
            words.append(
                f"Vulkan faster in {by.count(VULKAN)}, GLES in {by.count(GLES)}, even in {by.count('even')}"
            )
        moved = sum(p.ratio is not None and p.clock_moved for p in self.pairs)
        if moved:
            words.append(f"no steady clock in {moved}")
        other = sum(p.verdict_differs for p in self.pairs)
        if other:
            words.append(f"another verdict in {other}")
        wrong = len(self.pairs) - correct - other
        if wrong:
            words.append(f"wrong on both in {wrong}")
        if self.best_differs:
            words.append(
                f"the fastest variant differs by API in {len(self.best_differs)} of {self.choices} choices"
            )
        return "; ".join(words)


def pair_tables(judged: Iterable[JudgedTrial], devices: Sequence[DeviceRecord]) -> tuple[PairTable, ...]:
    """Every two sides that have at least one point in common, in order of the devices. Probes are none."""
    sides: dict[tuple[str, str], dict[str, JudgedTrial]] = defaultdict(dict)
    for item in judged:
        api = item.info.case.axes.get(API_AXIS)
        if not item.probe and api in (GLES, VULKAN) and item.trial.verdict not in _NO_RESULT:
            sides[item.device.device_id, str(api)][_point(item.info.case)] = item
    found: list[PairTable] = []
    for left, right in _partners(devices):
        old, new = sides[left.device_id, GLES], sides[right.device_id, VULKAN]
        pairs = tuple(_pair(old[key], new[key]) for key in old if key in new)
        if pairs:
            choices = _choices(pairs)
            found.append(PairTable(left, right, pairs, tuple(_best_differs(choices)), len(choices)))
    return tuple(found)


def software_driver(device: DeviceRecord) -> bool:
    """A driver of the machine's processor under its own name: no virtual phone."""
    return not device.virtual and bool(device.profiles) and all(p.software for p in device.profiles)


def _partners(devices: Sequence[DeviceRecord]) -> Iterator[tuple[DeviceRecord, DeviceRecord]]:
    for left in devices:
        for right in devices:
            same = left.device_id == right.device_id
            drivers = software_driver(left) and software_driver(right) and left.resource == right.resource
            if same or drivers:
                yield left, right


def _point(case: Case) -> str:
    """Identity of a case without its API."""
    axes = {name: value for name, value in case.axes.items() if name != API_AXIS}
    return stable_id({"kernel": case.kernel, "workload": case.workload_id, "axes": axes})


def _pair(old: JudgedTrial, new: JudgedTrial) -> Pair:
    """Times of both by one clock: the GPU's where both are trusted, else the wall clock, which both have."""
    trusted = all(i.trial.timing is not None and i.trial.timing.clock == "gpu" for i in (old, new))
    return Pair(_side(old, wall=not trusted), _side(new, wall=not trusted))


def _side(item: JudgedTrial, *, wall: bool) -> Side:
    trial = item.trial
    stats = wall_stats(trial.timing) if wall else timing_stats(trial.timing)
    return Side(
        item=item,
        stats=stats if trial.verdict is Verdict.PASS else None,
        compile_ns=sum(trial.timing.compile_ns) if trial.timing is not None else None,
        use=worst_use(trial.outputs, item.info.tolerance),
    )


_Timed = tuple[Pair, TimingStats, TimingStats]


def _choices(pairs: Iterable[Pair]) -> list[list[_Timed]]:
    """Points of one kernel, workload and precision, among which each API has a fastest variant."""
    groups: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.ratio is not None:
            same = (axis_text(pair.case.axes.get(name, "")) for name in _SAME_WORK)
            groups[pair.case.kernel, pair.case.workload_id, *same].append(pair)
    return [_timed(found) for found in groups.values() if len(found) > 1]


def _timed(pairs: Sequence[Pair]) -> list[_Timed]:
    """By the GPU's clock where all have it, else all by the wall clock."""
    gpu = all(p.gles.stats is not None and p.gles.stats.clock == "gpu" for p in pairs)
    found: list[_Timed] = []
    for pair in pairs:
        times = (s.item.trial.timing for s in (pair.gles, pair.vulkan))
        old, new = (timing_stats(t) if gpu else wall_stats(t) for t in times)
        if old is not None and new is not None:
            found.append((pair, old, new))
    return found


def _gles_trial(entry: _Timed) -> Trial:
    return entry[0].gles.item.trial


def _vulkan_trial(entry: _Timed) -> Trial:
    return entry[0].vulkan.item.trial


def _best_differs(choices: Iterable[list[_Timed]]) -> Iterator[BestDiffers]:
    for found in choices:
        on_gles = min(steady(found, _gles_trial), key=lambda entry: entry[1].median_ns)
        on_vulkan = min(steady(found, _vulkan_trial), key=lambda entry: entry[2].median_ns)
        even = within_noise((on_gles[1], on_vulkan[1])) and within_noise((on_gles[2], on_vulkan[2]))
        if on_gles is on_vulkan or even:
            continue
        left, right = on_gles[0].case.axes, on_vulkan[0].case.axes
        names = [n for n in left if n != API_AXIS and left[n] != right.get(n)]
        yield BestDiffers(
            case=on_gles[0].case,
            gles=" ".join(f"{n}={axis_text(left[n])}" for n in names),
            gles_ns=on_gles[1].median_ns,
            vulkan=" ".join(f"{n}={axis_text(right[n])}" for n in names),
            vulkan_ns=on_vulkan[2].median_ns,
        )

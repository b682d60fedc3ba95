"""A device's roofline as lines and marks on a log-log plane; positions in pixels, nothing drawn here."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.analysis.outcome import JudgedTrial
from orchestrator.analysis.roofline import ApiCeilings, Ceilings, FlopRate, Point, place
from orchestrator.analysis.stats import timing_stats
from orchestrator.domain.verdict import Verdict
from reports.labels import Labels
from reports.numbers import percent, rate

WIDTH, HEIGHT = 840, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 240, 14, 44
MAX_MARKS = 300
"""Marks of one chart; the fastest of each kernel, workload and precision come first."""
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "plus", "down", "star", "bar", "dash")
"""Kernels in order seen; an eleventh starts again."""
SAME_RATE = 0.05
"""Compute ceilings closer than this share a line: two lines a pixel apart cannot be told apart."""
LABEL_GAP = 14


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Roof:
    """One ceiling as a line from the left or the ridge to its end."""

    name: str
    kind: str
    """``dram``, ``cache`` or ``compute``: each has its own dashes."""
    x1: float
    y1: float
    x2: float
    y2: float
    label_x: float
    label_y: float
    """Compute: in the right margin, far enough from its neighbours. Memory: on the line."""
    angle: float
    """Memory: degrees of the line, for the text along it."""


@dataclass(frozen=True, slots=True)
class Mark:
    x: float
    y: float
    shape: str
    title: str


@dataclass(frozen=True, slots=True)
class RoofChart:
    """One API of one device. Without ceilings there are no roofs, ticks or marks."""

    api: str
    ceilings: ApiCeilings
    roofs: tuple[Roof, ...] = ()
    marks: tuple[Mark, ...] = ()
    x_ticks: tuple[Tick, ...] = ()
    y_ticks: tuple[Tick, ...] = ()
    kernels: tuple[tuple[str, str], ...] = ()
    """Kernel → shape."""
    placed: int = 0
    left_out: int = 0
    """Variants that share a mark with a faster one, or are beyond the number of marks."""

    @property
    def measured(self) -> bool:
        return bool(self.ceilings.bandwidths or self.ceilings.rates)


@dataclass(frozen=True, slots=True)
class _Placed:
    item: JudgedTrial
    point: Point
    median_ns: float


@dataclass(frozen=True, slots=True)
class _Plane:
    """Decades of both axes; values are FLOP/byte and FLOP/s."""

    x_low: int
    x_high: int
    y_low: int
    y_high: int

    def x(self, intensity: float) -> float:
        span = WIDTH - LEFT - RIGHT
        return LEFT + span * (math.log10(intensity) - self.x_low) / (self.x_high - self.x_low)

    def y(self, flops_per_s: float) -> float:
        span = HEIGHT - TOP - BOTTOM
        return HEIGHT - BOTTOM - span * (math.log10(flops_per_s) - self.y_low) / (self.y_high - self.y_low)


def places(found: Ceilings, trials: Iterable[JudgedTrial]) -> dict[str, Point]:
    """Case id → place, of every correct and timed variant."""
    return {p.item.trial.case_id: p.point for p in _placed(found, trials)}


def charts(found: Ceilings, trials: Sequence[JudgedTrial], labels: Labels) -> tuple[RoofChart, ...]:
    """One an API through which variants ran on the device."""
    apis = dict.fromkeys(str(t.info.case.axes.get("api", "")) for t in trials)
    every = _placed(found, trials)
    return tuple(_chart(found.of(a), [p for p in every if _api(p) == a], labels) for a in apis if a)


def _placed(found: Ceilings, trials: Iterable[JudgedTrial]) -> list[_Placed]:
    placed: list[_Placed] = []
    for item in trials:
        stats = timing_stats(item.trial.timing)
        if item.probe or stats is None or item.trial.verdict is not Verdict.PASS:
            continue
        point = place(found, item.info.cost, item.info.case, stats.median_ns)
        if point is not None:
            placed.append(_Placed(item, point, stats.median_ns))
    return placed


def _api(placed: _Placed) -> str:
    return str(placed.item.info.case.axes.get("api", ""))


def _chart(ceilings: ApiCeilings, placed: list[_Placed], labels: Labels) -> RoofChart:
    shown = [p for p in placed if p.point.flops_per_s > 0 and math.isfinite(p.point.intensity)]
    rates = [r.flops_per_s for r in ceilings.rates]
    dram = ceilings.dram
    if not shown or not (rates or dram):
        return RoofChart(ceilings.api, ceilings, placed=len(placed))
    nearest = min(p.point.intensity for p in shown)
    # Without a compute ceiling the diagonal ends above the leftmost variant.
    tops = rates or ([dram.bytes_per_s * nearest] if dram else [])
    ridges = [top / dram.bytes_per_s for top in tops] if dram else []
    # Room to the left of the lowest ridge, where the diagonals have their names.
    xs = [p.point.intensity for p in shown] + ridges + [r / 8 for r in ridges]
    ys = [p.point.flops_per_s for p in shown] + tops
    plane = _Plane(*_decades(xs), *_decades(ys))
    shapes = {k: SHAPES[i % len(SHAPES)] for i, k in enumerate(dict.fromkeys(_kernel(p) for p in shown))}
    marks = _marks(shown, plane, shapes, labels)
    return RoofChart(
        api=ceilings.api,
        ceilings=ceilings,
        roofs=(*_memory(ceilings, plane), *_compute(ceilings, plane)),
        marks=marks,
        x_ticks=tuple(Tick(plane.x(10.0**e), f"{10.0**e:g}") for e in range(plane.x_low, plane.x_high + 1)),
        y_ticks=tuple(
            Tick(plane.y(10.0**e), rate(10.0**e, "", digits=1)) for e in range(plane.y_low, plane.y_high + 1)
        ),
        kernels=tuple(shapes.items()),
        placed=len(placed),
        left_out=len(placed) - len(marks),
    )


def _memory(ceilings: ApiCeilings, plane: _Plane) -> list[Roof]:
    """Diagonals up to the highest compute ceiling, or across where none was measured."""
    rates = [r.flops_per_s for r in ceilings.rates] or [10.0**plane.y_high]
    top, lowest = max(rates), min(rates)
    found: list[Roof] = []
    for kind, bandwidth in (("cache", ceilings.cache), ("dram", ceilings.dram)):
        if bandwidth is None:
            continue
        left = max(10.0**plane.x_low, 10.0**plane.y_low / bandwidth.bytes_per_s)
        right = min(10.0**plane.x_high, top / bandwidth.bytes_per_s)
        if left >= right:
            continue
        x1, y1 = plane.x(left), plane.y(left * bandwidth.bytes_per_s)
        x2, y2 = plane.x(right), plane.y(right * bandwidth.bytes_per_s)
        name = f"{'DRAM' if kind == 'dram' else 'cache'} {rate(bandwidth.bytes_per_s, 'B/s')}"
        angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
        clear = math.sqrt(left * max(left, min(right, lowest / bandwidth.bytes_per_s)))
        at = plane.x(clear), plane.y(clear * bandwidth.bytes_per_s)
        found.append(Roof(name, kind, x1, y1, x2, y2, *at, angle))
    return found


def _compute(ceilings: ApiCeilings, plane: _Plane) -> list[Roof]:
    """Horizontals from the highest memory ceiling rightwards, labels kept apart."""
    bandwidths = [b.bytes_per_s for b in (ceilings.dram, ceilings.cache) if b is not None]
    groups: list[list[FlopRate]] = []
    for found in sorted(ceilings.rates, key=lambda r: (r.precision, -r.flops_per_s)):
        first = groups[-1][0] if groups else None
        near = first is not None and first.flops_per_s / found.flops_per_s <= 1 + SAME_RATE
        if first is not None and first.precision == found.precision and near:
            groups[-1].append(found)
        else:
            groups.append([found])
    roofs: list[Roof] = []
    last = -math.inf
    for group in sorted(groups, key=lambda group: -group[0].flops_per_s):
        flops, hints = group[0].flops_per_s, sorted(r.hint for r in group)
        left = max(10.0**plane.x_low, flops / max(bandwidths)) if bandwidths else 10.0**plane.x_low
        y = plane.y(flops)
        last = max(y, last + LABEL_GAP)
        name = f"{group[0].precision} {' = '.join(hints)}: {rate(flops, 'FLOP/s')}"
        x1 = min(plane.x(left), WIDTH - RIGHT)
        roofs.append(Roof(name, "compute", x1, y, WIDTH - RIGHT, y, WIDTH - RIGHT + 8, last, 0.0))
    return roofs


def _marks(
    shown: Sequence[_Placed], plane: _Plane, shapes: dict[str, str], labels: Labels
) -> tuple[Mark, ...]:
    """The fastest of each family first; one mark for what falls on the same two pixels."""
    fastest: dict[tuple[str, str, str], _Placed] = {}
    for p in sorted(shown, key=lambda p: p.median_ns):
        fastest.setdefault(_family(p), p)
    first = set(map(id, fastest.values()))
    ordered = sorted(shown, key=lambda p: (id(p) not in first, p.median_ns))
    taken: set[tuple[str, int, int]] = set()
    marks: list[Mark] = []
    for p in ordered:
        x, y, shape = plane.x(p.point.intensity), plane.y(p.point.flops_per_s), shapes[_kernel(p)]
        spot = (shape, round(x / 2), round(y / 2))
        if spot in taken or len(marks) == MAX_MARKS:
            continue
        taken.add(spot)
        title = (
            f"{labels.short(p.item.info.case)}: {rate(p.point.flops_per_s, 'FLOP/s')}, "
            f"{percent(p.point.share)} of {p.point.ceiling}"
        )
        marks.append(Mark(round(x, 1), round(y, 1), shape, title))
    return tuple(marks)


def _family(p: _Placed) -> tuple[str, str, str]:
    case = p.item.info.case
    return case.kernel, case.workload_id, str(case.axes.get("precision", ""))


def _kernel(p: _Placed) -> str:
    return p.item.info.case.kernel


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Whole decades around all values, with room beside them; at least two."""
    low = math.floor(math.log10(min(values) * 0.8))
    high = math.ceil(math.log10(max(values) * 1.25))
    return low, max(high, low + 2)

"""A device's own roofline: what its `copy` and `fma` probes reached, and where a variant lies under it.

Ceilings are measured on the same device, in the same run and through the same API as what is placed
under them (Williams, Waterman, Patterson: Roofline, CACM 2009). They are what a plain kernel reaches,
not what a data sheet says; the largest copy is taken as DRAM, whatever caches the device has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.analysis.clocks import CLOCK_FLOOR, PACE_FLOOR, clock_moved, fastest_hz
from orchestrator.analysis.stats import timing_stats
from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Cost
from orchestrator.domain.results import CaseInfo
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict

COPY, FMA = "copy", "fma"

ARITHMETIC: Mapping[str, str] = {"fp32": "fp32", "fp16_storage": "fp32", "fp16": "fp16", "fp16_all": "fp16"}
"""The arithmetic of a precision: what the `fma` probe calls it."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """What `copy` reached at one size."""

    nbytes: int
    """Of the source; the destination takes as much again."""
    bytes_per_s: float
    """Read plus write."""
    case_id: str = ""


@dataclass(frozen=True, slots=True)
class FlopRate:
    """What `fma` reached in one precision under one hint."""

    precision: str
    hint: str
    flops_per_s: float
    case_id: str = ""
    groups: int = 0
    """Workgroups: how much of the device was busy."""
    clock_hz: float = 0.0
    """Of the GPU at its fastest sample; 0 where the device shows none."""
    unsteady: bool = False
    """Its clock moved while it was timed, or its times were noisy."""
    canary_ns: tuple[int, ...] = ()
    """Latencies of the canary around it: equal ones show that two rates came at one speed of the device."""

    @property
    def name(self) -> str:
        return (
            f"{self.precision} compute" if self.hint == "highp" else f"{self.precision} {self.hint} compute"
        )


@dataclass(frozen=True, slots=True)
class ApiCeilings:
    """Everything measured through one API; empty tuples where a probe gave no result."""

    api: str
    bandwidths: tuple[Bandwidth, ...] = ()
    """By rising size."""
    rates: tuple[FlopRate, ...] = ()
    """The best of each precision and hint."""
    measured: tuple[FlopRate, ...] = ()
    """All of them."""

    @property
    def dram(self) -> Bandwidth | None:
        """At the largest size."""
        return self.bandwidths[-1] if self.bandwidths else None

    @property
    def cache(self) -> Bandwidth | None:
        """The fastest size below the largest; None when none of them beats the largest."""
        best = max(self.bandwidths, key=lambda b: b.bytes_per_s, default=None)
        return None if best is None or best is self.dram else best

    def rate(self, precision: str, hint: str) -> FlopRate | None:
        return next((r for r in self.rates if (r.precision, r.hint) == (precision, hint)), None)

    def relative(self, precision: str, hint: str) -> float | None:
        """Rate over that of fp32 highp with as many workgroups, the most that both ran with.

        None where the two ran at different clocks, or where one was unsteady and the clocks are not known:
        the ratio would be that of the clocks.
        """

        def by_groups(precision: str, hint: str) -> dict[int, FlopRate]:
            return {r.groups: r for r in self.measured if (r.precision, r.hint) == (precision, hint)}

        mine, base = by_groups(precision, hint), by_groups("fp32", "highp")
        common = max(mine.keys() & base.keys(), default=None)
        if common is None or not _one_clock(mine[common], base[common]):
            return None
        return mine[common].flops_per_s / base[common].flops_per_s

    def clocks_known(self, precision: str, hint: str) -> bool:
        """The device showed its clock for this rate."""
        return any(r.clock_hz for r in self.measured if (r.precision, r.hint) == (precision, hint))


def _one_clock(left: FlopRate, right: FlopRate) -> bool:
    if not (left.clock_hz and right.clock_hz):
        seen = left.canary_ns + right.canary_ns
        paced = not seen or max(seen) <= PACE_FLOOR * min(seen)
        return paced and not (left.unsteady or right.unsteady)
    low, high = sorted((left.clock_hz, right.clock_hz))
    return high <= low * (1 + CLOCK_FLOOR)


@dataclass(frozen=True, slots=True)
class Ceilings:
    device_id: str
    apis: tuple[ApiCeilings, ...] = ()

    def of(self, api: str) -> ApiCeilings:
        """Without any measurement where no probe ran through this API."""
        return next((a for a in self.apis if a.api == api), ApiCeilings(api))


@dataclass(frozen=True, slots=True)
class Point:
    """A variant under its roofline."""

    intensity: float
    """Arithmetic intensity, flop per byte of compulsory traffic; infinite without traffic."""
    flops_per_s: float
    bytes_per_s: float
    """Compulsory bytes, read plus write."""
    binds: Literal["memory", "compute"]
    """The lower ceiling at this intensity: what the variant could be limited by."""
    ceiling: str
    """Its name, e.g. ``DRAM bandwidth`` or ``fp32 compute``."""
    share: float
    """Of the binding ceiling; above 1 for data that stays in caches."""
    note: str = ""
    """What a reader must know: a ceiling that is missing or was replaced, a share above 1."""

    @property
    def sentence(self) -> str:
        said = f"{self.share * 100:.3g} % of {self.ceiling}"
        return f"{said}; {self.note}" if self.note else said


def ceilings(trials: Iterable[Trial], cases: Mapping[str, CaseInfo], device_id: str) -> Ceilings:
    """Of one device, from its passed `copy` and `fma` trials; a wrong result is no measurement.

    The fastest of a trial's samples counts: a ceiling is what was reached, and other work on the device only
    lowers that.
    """
    bandwidths: dict[str, dict[int, Bandwidth]] = {}
    rates: dict[str, list[FlopRate]] = {}
    for trial in trials:
        info = cases.get(trial.case_id)
        if info is None or trial.device_id != device_id or trial.verdict is not Verdict.PASS:
            continue
        stats = timing_stats(trial.timing)
        if stats is None or info.case.kernel not in (COPY, FMA):
            continue
        case, api, seconds = info.case, str(info.case.axes.get("api", "")), stats.min_ns / 1e9
        if case.kernel == COPY:
            nbytes = int(case.workload["bytes"])
            reached = Bandwidth(nbytes, info.cost.bytes_moved / seconds, trial.case_id)
            sizes = bandwidths.setdefault(api, {})
            if nbytes not in sizes or sizes[nbytes].bytes_per_s < reached.bytes_per_s:
                sizes[nbytes] = reached
        else:
            rates.setdefault(api, []).append(
                FlopRate(
                    str(case.axes["precision"]),
                    str(case.axes["hint"]),
                    info.cost.flops / seconds,
                    trial.case_id,
                    int(case.workload["groups"]),
                    fastest_hz(trial.timing, trial.sensors),
                    clock_moved(trial) or stats.noisy,
                    () if trial.canary is None else (trial.canary.before_ns, trial.canary.after_ns),
                )
            )
    return Ceilings(
        device_id,
        tuple(
            ApiCeilings(
                api,
                tuple(b for _, b in sorted(bandwidths.get(api, {}).items())),
                _best(rates.get(api, [])),
                tuple(rates.get(api, [])),
            )
            for api in sorted({*bandwidths, *rates})
        ),
    )


def _best(rates: Iterable[FlopRate]) -> tuple[FlopRate, ...]:
    best: dict[tuple[str, str], FlopRate] = {}
    for rate in sorted(rates, key=lambda r: r.flops_per_s):
        best[rate.precision, rate.hint] = rate
    return tuple(best[key] for key in sorted(best))


def place(found: Ceilings, cost: Cost, case: Case, median_ns: float) -> Point | None:
    """A variant under the ceilings of its API; None when neither of them was measured.

    With one of the two the point is placed under that one, and the note says what is missing.
    """
    api = found.of(str(case.axes.get("api", "")))
    dram = api.dram if cost.bytes_min > 0 else None
    compute, notes = _compute(api, case) if cost.flops > 0 else (None, [])
    seconds = median_ns / 1e9
    if seconds <= 0 or (dram is None and compute is None):
        return None
    if dram is None and cost.bytes_min > 0:
        notes.append("no copy probe: the memory ceiling is unknown")
    memory_s = cost.bytes_min / dram.bytes_per_s if dram else 0.0
    compute_s = cost.flops / compute.flops_per_s if compute else 0.0
    if dram is not None and (compute is None or memory_s >= compute_s):
        binds, ceiling, share = "memory", "DRAM bandwidth", memory_s / seconds
        if share > 1:
            notes.append(_above(api, cost))
    elif compute is not None:
        binds, ceiling, share = "compute", compute.name, compute_s / seconds
        if share > 1:
            notes.append("above what the fma probe reached: the probe is not this device's peak")
    else:
        return None
    return Point(
        intensity=cost.flops / cost.bytes_min if cost.bytes_min else float("inf"),
        flops_per_s=cost.flops / seconds,
        bytes_per_s=cost.bytes_min / seconds,
        binds=binds,
        ceiling=ceiling,
        share=share,
        note="; ".join(notes),
    )


def _compute(api: ApiCeilings, case: Case) -> tuple[FlopRate | None, list[str]]:
    """The rate of the case's arithmetic; the highp one where its hint was not measured."""
    precision = ARITHMETIC.get(str(case.axes.get("precision", "")), "fp32")
    hint = str(case.axes.get("hint", "highp"))
    exact = api.rate(precision, hint)
    if exact is not None:
        return exact, []
    highp = api.rate(precision, "highp")
    if highp is not None:
        return highp, [f"no fma probe for {precision} {hint}: placed under highp"]
    return None, [f"no fma probe for {precision}: the compute ceiling is unknown"]


def _above(api: ApiCeilings, cost: Cost) -> str:
    said = f"above DRAM bandwidth: {cost.bytes_min} B of compulsory traffic can stay in caches"
    cache = api.cache
    if cache is None:
        return said
    return f"{said} (copy of {cache.nbytes} B: {cache.bytes_per_s / 1e9:.3g} GB/s)"

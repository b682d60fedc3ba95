"""From the raw bits of `precision_probe` to what a device really delivers, and to a sentence about it.

Everything is concluded here from bits: a shader that may assume that no NaN exists cannot look for one
(field case G1-21). docs/precision.md says what each group of rows shows.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.roofline import Ceilings, ceilings
from orchestrator.domain.case import Case
from orchestrator.domain.precision import Asked, Precision, Rounding
from orchestrator.domain.profile import SOFTWARE_RENDERERS
from orchestrator.domain.results import CaseInfo
from orchestrator.domain.trial import Trial
from orchestrator.ops.probes_precision import HALVES, MANTISSAS, Row, evaluate, rows

PROBE = "precision_probe"
RAW = "raw"

MAX_FP32 = float(np.finfo(np.float32).max)
MAX_FP16 = 65504.0
MEDIUMP_BITS, MEDIUMP_LARGEST = 10, 16384.0
"""What ESSL 3.10 (4.5.1) guarantees of mediump: 2^-10 relative, magnitudes below 2^14."""
NO_GAIN = 1.25
"""A rate below this multiple of highp's is no gain worth a hint: a busy machine makes as much by chance."""

IMPLAUSIBLE = 0.5
"""A rate below this share of highp's is more often a clock that fell between two probes than hardware."""
UNKNOWN_CLOCK = "that rate may be a clock's, which this device does not show"

_UNWRITTEN = 0x7FC0_DEAD
"""What the runner puts into an output buffer before the shader runs."""
_TINY = {"fp32": 2.0**-149, "fp16": 2.0**-24, "other": 2.0**-24}

_Found = Sequence[tuple[Row, float]]


def measure(
    case: Case, raw: NDArray[np.uint32], *, device_id: str = "", relative_speed: float | None = None
) -> Precision:
    """What one probe's ``raw`` buffer says.

    Raises:
        ValueError: the buffer is not a whole result of this probe.
    """
    asked = _asked(case)
    found = list(zip(rows(asked), decode(asked, raw), strict=True))
    bits = min(_leading_exact(_of(found, "mantissa_mul")), _leading_exact(_of(found, "mantissa_add")))
    largest = max((v for _, v in _of(found, "largest") if math.isfinite(v)), default=0.0)
    delivered = _delivered(bits, largest)
    exponents = {"fp32": "32", "fp16": "16"}.get(delivered, "32" if largest > 1e38 else "16")
    subnormals = _subnormals(_of(found, f"subnormal{exponents}"))
    arithmetic = asked not in ("storage16", "pack_half")  # those compute in fp32
    contraction = _contraction(_of(found, f"fused{bits}")) if arithmetic else "unknown"
    narrow = asked in HALVES or (asked == "mediump" and delivered == "fp16")
    return Precision(
        device_id=device_id,
        api=str(case.axes["api"]),
        asked=asked,
        mantissa_bits=bits,
        largest=largest,
        subnormals=subnormals,
        rounding=_rounding(_of(found, f"rounding{bits}"), bits) if bits in MANTISSAS else "unknown",
        nan="kept" if all(math.isnan(v) for _, v in _of(found, "nan")) else "lost",
        inf="kept" if all(v == evaluate(row) for row, v in _of(found, "inf")) else "lost",
        exp_underflow=min((row.a for row, v in _of(found, "exp") if v > 0), default=math.inf),
        delivered=delivered,
        relative_speed=relative_speed,
        demoted=_demoted(asked, bits, largest, delivered, contraction),
        conversion=_conversion(_of(found, "conversion")) if narrow else "unknown",
        contraction=contraction,
        max_nan=_max_nan(_of(found, "max_nan")),
        remarks=[*_wrong(found), *_strange_exp(_of(found, "exp"), _TINY[delivered])],
    )


def sentence(p: Precision) -> str:
    """What a kernel's author must know, in one line.

    ``mediump runs as fp32 here: no gain to expect``
    """
    if p.demoted:
        return f"{_demotion(p)}{_and(p.remarks)}"
    if p.asked == "mediump" and p.delivered == "fp32":
        if p.relative_speed is not None and p.relative_speed >= NO_GAIN:
            said = f"mediump runs as fp32 here, yet at {_times(p.relative_speed)} the rate of highp"
        else:
            said = "mediump runs as fp32 here: no gain to expect"
        return f"{said}{_and(p.remarks)}"
    name = f"mediump runs as {p.delivered} here" if p.asked == "mediump" else p.asked
    facts = [f"{p.mantissa_bits} bits", f"largest {_number(p.largest)}"]
    if p.subnormals != "unknown":
        facts.append(f"subnormals {p.subnormals}")
    if p.rounding in ("toward-zero", "other"):
        facts.append(f"sums round {_rounding_words(p.rounding)}")
    if p.conversion in ("toward-zero", "other") and p.conversion != p.rounding:
        facts.append(f"conversions round {_rounding_words(p.conversion)}")
    if p.contraction == "fused" and p.asked == "highp":
        facts.append("x * y + z is fused")
    if p.relative_speed is not None and p.asked != "highp":
        facts.append(f"{_times(p.relative_speed)} the rate of {'highp' if p.asked == 'mediump' else 'fp32'}")
    return f"{name}: {', '.join(facts)}{_and(p.remarks)}"


def precisions(
    trials: Iterable[Trial], cases: Mapping[str, CaseInfo], tensor: Callable[[str], bytes]
) -> list[Precision]:
    """Of every device and API whose probe brought its raw bits back, whatever its verdict: a mismatch of
    the probe is how a demoted precision shows. ``tensor`` gives a blob's bytes.

    A trial without the buffer, or with a part of it (the driver died first), has none; its verdict says why.
    """
    all_trials = list(trials)
    speeds = {d: ceilings(all_trials, cases, d) for d in dict.fromkeys(t.device_id for t in all_trials)}
    found: list[Precision] = []
    for trial in all_trials:
        info = cases.get(trial.case_id)
        if info is None or info.case.kernel != PROBE or RAW not in trial.tensors:
            continue
        raw = np.frombuffer(tensor(trial.tensors[RAW]), "<u4")
        if not whole(_asked(info.case), raw):
            continue
        speed = _relative_speed(speeds[trial.device_id], info.case)
        made = measure(info.case, raw, device_id=trial.device_id, relative_speed=speed)
        hardware = not any(name in trial.driver.casefold() for name in SOFTWARE_RENDERERS)
        unknown = hardware and not _clocks_known(speeds[trial.device_id], info.case)
        if unknown and speed is not None and speed < IMPLAUSIBLE:
            made = replace(made, remarks=[*made.remarks, UNKNOWN_CLOCK])
        found.append(made)
    order = get_args(Asked)
    return sorted(found, key=lambda p: (p.device_id, p.api, order.index(p.asked)))


def whole(asked: str, raw: NDArray[np.uint32]) -> bool:
    """Every row was written."""
    return raw.size == len(rows(asked)) and not bool((raw == _UNWRITTEN).any())


def decode(asked: str, raw: NDArray[np.uint32]) -> list[float]:
    """The results as numbers.

    Raises:
        ValueError: rows are missing.
    """
    if not whole(asked, raw):
        raise ValueError(
            f"raw of {PROBE} asked={asked}: {raw.size} words, {int((raw == _UNWRITTEN).sum())} unwritten; "
            f"the probe has {len(rows(asked))} rows. Run it again with this version of tilefarm."
        )
    words = np.ascontiguousarray(raw, "<u4")
    if asked in HALVES:
        return [float(v) for v in words.view("<f2")[::2]]
    return [float(v) for v in words.view("<f4")]


def _asked(case: Case) -> Asked:
    asked = str(case.axes["asked"])
    if asked not in get_args(Asked):
        raise ValueError(f"{case.label}: asked {asked} is none of {', '.join(get_args(Asked))}")
    return cast("Asked", asked)


def _of(found: _Found, group: str) -> _Found:
    return [(row, value) for row, value in found if row.group == group]


def _leading_exact(found: _Found) -> int:
    """Of rows with ever smaller last bits: how many come back exactly before the first that does not."""
    for count, (row, value) in enumerate(found):
        if value != evaluate(row):
            return count
    return len(found)


def _delivered(bits: int, largest: float) -> Literal["fp32", "fp16", "other"]:
    if bits >= 23 and largest == MAX_FP32:
        return "fp32"
    return "fp16" if bits == 10 and largest == MAX_FP16 else "other"


def _subnormals(found: _Found) -> Literal["kept", "flushed", "unknown"]:
    if all(value == evaluate(row) for row, value in found):
        return "kept"
    return "flushed" if all(value in (0, evaluate(row)) for row, value in found) else "unknown"


def _quantised(value: float, bits: int, *, nearest: bool) -> float:
    """``value`` with so many explicit mantissa bits; normal numbers without a limit of range."""
    fraction, exponent = math.frexp(value)
    scaled = math.ldexp(fraction, bits + 1)
    whole_part = round(scaled) if nearest else math.trunc(scaled)  # round() takes ties to even
    return math.ldexp(whole_part, exponent - bits - 1)


def _rounding(found: _Found, bits: int) -> Rounding:
    if all(v == _quantised(evaluate(row), bits, nearest=True) for row, v in found):
        return "nearest-even"
    if all(v == _quantised(evaluate(row), bits, nearest=False) for row, v in found):
        return "toward-zero"
    return "other"


def _conversion(found: _Found) -> Rounding:
    def agrees(*, nearest: bool) -> bool:
        for row, value in found:
            want = _quantised(row.a, 10, nearest=nearest)
            if value != (math.copysign(math.inf, want) if abs(want) > MAX_FP16 else want):
                return False
        return True

    if agrees(nearest=True):
        return "nearest-even"
    return "toward-zero" if agrees(nearest=False) else "other"


def _contraction(found: _Found) -> Literal["fused", "separate", "unknown"]:
    if len(found) == 0:
        return "unknown"
    values = {value for _, value in found}
    if values == {0.0}:
        return "separate"
    return "fused" if values == {evaluate(found[0][0])} else "unknown"


def _max_nan(found: _Found) -> Literal["nan", "number", "mixed"]:
    lost = {math.isnan(value) for _, value in found}
    return "mixed" if len(lost) == 2 else "nan" if True in lost else "number"


def _demoted(asked: Asked, bits: int, largest: float, delivered: str, contraction: str) -> bool:
    match asked:
        case "highp":
            return delivered != "fp32"
        case "precise":
            return delivered != "fp32" or contraction == "fused"
        case "mediump":
            return bits < MEDIUMP_BITS or largest < MEDIUMP_LARGEST
        case "fp16" | "storage16" | "pack_half":
            return bits < 10 or largest < MAX_FP16


def _wrong(found: _Found) -> list[str]:
    """Rows about NaN and infinity that came out as something else."""
    nan = [f"{row.text} gives {_number(v)}" for row, v in _of(found, "nan") if not math.isnan(v)]
    inf = [f"{row.text} gives {_number(v)}" for row, v in _of(found, "inf") if v != evaluate(row)]
    return [*nan, *inf]


def _strange_exp(found: _Found, tiny: float) -> list[str]:
    """exp of negative numbers must fall to 0 and stay there: NaN, signs and jumps are the fast-math pitfall
    that poisons an online softmax. Half of the value is left for errors, which is plenty."""
    return [
        f"{row.text} gives {_number(value)}"
        for row, value in found
        if not 0 <= value <= 1.5 * evaluate(row) + tiny or (value == 0 and evaluate(row) > 2 * _LEAST_EXP)
    ]


_LEAST_EXP = 2.0**-14
"""Smallest normal fp16: every precision owes exp above it."""


def _relative_speed(found: Ceilings, case: Case) -> float | None:
    asked = str(case.axes["asked"])
    return found.of(str(case.axes["api"])).relative(*_rate_of(asked))


def _clocks_known(found: Ceilings, case: Case) -> bool:
    return found.of(str(case.axes["api"])).clocks_known(*_rate_of(str(case.axes["asked"])))


def _rate_of(asked: str) -> tuple[str, str]:
    """Precision and hint of the `fma` probe."""
    return {"fp16": ("fp16", "highp")}.get(asked, ("fp32", asked))


def _demotion(p: Precision) -> str:
    if p.asked == "precise" and p.delivered == "fp32":
        return "asked precise, got x * y + z fused: NoContraction is ignored by the driver"
    got = f"{p.delivered} ({p.mantissa_bits} bits, largest {_number(p.largest)})"
    return f"asked {p.asked}, got {got}: results are wrong by design of the driver"


def _and(remarks: Sequence[str]) -> str:
    if not remarks:
        return ""
    more = f" and {len(remarks) - 3} more" if len(remarks) > 3 else ""
    return f"; beware: {', '.join(remarks[:3])}{more}"


def _times(speed: float) -> str:
    return f"{speed:.2g} times" if speed < 1 else f"{speed:.1f} times"


def _number(value: float) -> str:
    if math.isfinite(value) and value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return "NaN" if math.isnan(value) else f"{value:.4g}"


def _rounding_words(rounding: Rounding) -> str:
    return "toward zero" if rounding == "toward-zero" else "neither to nearest even nor toward zero"

"""A case on a SoC as one row of the report's table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import get_args

import numpy as np

from orchestrator.analysis.speed.night import Reason
from orchestrator.analysis.speed.rows import Floats
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.analysis.words import plural
from orchestrator.domain.finding import NumericsWord, SeriesRow, SpeedWord
from orchestrator.verdicts import other_clock
from orchestrator.verdicts.confirming import sentence
from orchestrator.verdicts.numerics import Flagged
from orchestrator.verdicts.speed import Judged

NUMERICS: tuple[NumericsWord, ...] = get_args(NumericsWord)
SHOWN = 30
"""Nights of a row's sparkline."""
WORDS: Mapping[Speed, SpeedWord] = {
    Speed.REGRESSED: "regressed",
    Speed.IMPROVED: "improved",
    Speed.SAME: "same",
    Speed.INCONCLUSIVE: "inconclusive",
    Speed.NEW: "new",
    Speed.MISSING: "missing",
}
_REASONS = {
    Reason.FEW_MEASURED: "fewer than 10 samples",
    Reason.FEW_GOOD: "too few samples below the temperature ceiling and not throttled",
    Reason.NO_DOMINANT_STATE: "no clock state holds most samples",
    Reason.FEW_IN_STATE: "too few samples in one clock state",
    Reason.TWO_MODES: "two modes, none of which prevails",
    Reason.RAMP: "the times rise or fall through the trial",
}


def series_row(judged: Judged, test: int, flagged: Sequence[Flagged]) -> SeriesRow:
    soc, case_id = judged.tests[test]
    series = judged.series_of(test)
    word = WORDS[SPEEDS[int(judged.verdicts.tests[test])]]
    table = judged.nights.table
    tonight = [float(table.log_ns[s, -1]) for s in series if isfinite(table.log_ns[s, -1])]
    devices = {table.series[s][0] for s in series}
    marks = {f.flag for f in flagged if f.case_id == case_id and f.device_id in devices}
    return SeriesRow(
        soc=soc,
        case_id=case_id,
        verdict=word,
        why=_why(judged, word, test, series),
        effect=float(judged.night.pooled.delta[test]),
        detectable=float(judged.night.detectable[test]),
        latency_ns=float(np.exp(min(tonight))) if tonight else nan,
        phones=int(judged.night.pooled.phones[test]),
        history=_history(judged, series),
        flags=[word for word in NUMERICS if word in marks],
    )


def _why(judged: Judged, word: SpeedWord, test: int, series: Sequence[int]) -> str:
    table = judged.nights.table
    if word == "new":
        if said := other_clock.of_case(judged, series):
            return said
        nights = max((int(judged.night.deltas.nights[s]) for s in series), default=0)
        return f"{nights} accepted nights of {RULE.min_nights}"
    if word == "missing":
        return _missing(judged, series)
    if word == "inconclusive":
        if judged.second.plan.tests[test] and (said := sentence(judged, series)):
            return f"{np.expm1(float(judged.night.pooled.delta[test])):+.1%} at first; {said}"
        reasons = [Reason(int(table.no_number[s, -1])) for s in series if table.no_number[s, -1]]
        return _REASONS.get(reasons[0], "") if reasons else "one phone alone says so, or none could tell"
    return ""


def _missing(judged: Judged, series: Sequence[int]) -> str:
    """``not measured tonight: crashed on 2 phones, infra on 1``"""
    table = judged.nights.table
    verdicts = Counter(verdict for s in series if (verdict := table.verdict_text(s, -1)))
    said = ", ".join(f"{verdict} on {plural(n, 'phone')}" for verdict, n in verdicts.most_common())
    return f"not measured tonight: {said}" if said else "not measured tonight"


def _history(judged: Judged, series: Sequence[int]) -> list[float]:
    """Mean over phones of the log ratio to each one's baseline, for the last nights."""
    ratios: list[Floats] = []
    for s in series:
        nights = judged.baseline(s)
        own = judged.values[s]
        known: Floats = own[nights] if nights else own[np.isfinite(own)]
        ratios.append(own - (known.mean() if known.size else nan))
    if not ratios:
        return []
    stacked = np.stack(ratios)[:, -SHOWN:]
    known = np.isfinite(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    means = np.where(count > 0, total / np.maximum(count, 1), nan)
    return [round(float(v), 5) for v in means]

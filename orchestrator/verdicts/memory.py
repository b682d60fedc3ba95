"""What a night leaves for later ones: which series count for baselines, and the frozen sentinels."""

from collections.abc import Mapping, Sequence

import numpy as np

from orchestrator.analysis.speed.rows import Bools, Floats, indices
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.shift import SentinelCandidate, choose_sentinels
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.domain.confirmation import Answered
from orchestrator.domain.finding import EVERYTHING, Finding
from orchestrator.domain.results import RunResults
from orchestrator.domain.wire import to_json
from orchestrator.history.history import SECOND, History
from orchestrator.verdicts.speed import Judged

_MOVED = (SPEEDS.index(Speed.REGRESSED), SPEEDS.index(Speed.IMPROVED))
_INCONCLUSIVE = SPEEDS.index(Speed.INCONCLUSIVE)
_STILL = (SPEEDS.index(Speed.SAME), SPEEDS.index(Speed.NEW))


def keep(
    history: History,
    results: RunResults,
    judged: Judged,
    found: Sequence[Finding],
    answers: Mapping[int, Answered],
) -> None:
    """A later night's baseline holds nights that were the same or new; an accepted shift starts another
    baseline (``Decided.restarts``).

    Args:
        found: tonight's findings, of which those of phones and SoCs as a whole are kept under ``EVERYTHING``.
        answers: series → what is known of its second look.
    """
    table = judged.nights.table
    of_test = judged.verdicts.tests[judged.matrix.test]
    said = np.where(np.isin(of_test, _MOVED), of_test, judged.verdicts.series)
    counts = np.isin(said, _STILL) & np.isfinite(table.log_ns[:, -1])
    counts &= ~_still_there(judged) & ~_left_open(judged)
    rows: list[dict[str, object]] = [
        {
            "device_id": table.series[s][0],
            "case_id": table.series[s][1],
            "speed": int(said[s]),
            "accepted": bool(counts[s]),
            **({SECOND: to_json(answers[s])} if s in answers else {}),
        }
        for s in np.flatnonzero(table.code[:, -1] >= 0).tolist()
    ]
    whole = [f for f in found if f.case_id == EVERYTHING]
    for device_id in judged.devices:
        own = next((f for f in whole if device_id in {p.device_id for p in f.phones}), None)
        speed = Speed.SAME if own is None else Speed.REGRESSED if own.effect > 0 else Speed.IMPROVED
        rows.append(
            {
                "device_id": device_id,
                "case_id": EVERYTHING,
                "speed": SPEEDS.index(speed),
                "accepted": own is None,
            }
        )
    history.store_verdicts(results.run.run_id, rows)


def _still_there(judged: Judged) -> Bools:
    """(series,) Nobody said tonight that it moved, but it was said since its last accepted night, and it is
    nearer to that level than to its baseline: a night that the test missed must not become the baseline."""
    said = judged.nights.said[:, :-1]
    past, tonight = judged.values[:, :-1], judged.values[:, -1]
    number = indices(len(judged.nights.table.runs) - 1)
    last = np.where(judged.nights.accepted[:, :-1], number, -1).max(axis=1, initial=-1)
    told: Bools = np.isin(said, _MOVED) & (number > last[:, None]) & np.isfinite(past)
    moved, base = _mean(past, told), _mean(past, judged.night.baseline)
    return np.abs(tonight - moved) < np.abs(tonight - base)  # False without either


def _left_open(judged: Judged) -> Bools:
    """(series,) It moved along with its SoC, which was found and not confirmed: night after night of that
    would become the baseline. Where the codes in turns are alike the night counts: what else moved it is
    found again, and the new code is no news then."""
    verdicts, night, of = judged.verdicts, judged.night, judged.matrix.test
    tests = night.screened.found & (verdicts.tests == _INCONCLUSIVE) & ~verdicts.not_the_code
    return tests[of] & (np.sign(night.deltas.delta) == np.sign(night.pooled.delta)[of])


def _mean(values: Floats, over: Bools) -> Floats:
    """Of each row; NaN where ``over`` has none."""
    count = np.count_nonzero(over, axis=1)
    return np.where(count > 0, np.where(over, values, 0.0).sum(axis=1) / np.maximum(count, 1), np.nan)


def freeze(history: History, judged: Judged, results: RunResults) -> None:
    """Choose sentinels for devices that have none in this suite and enough nights. Those of another suite, or
    that left this one, watch nothing here."""
    watched = {judged.nights.table.series[s][0] for s in np.flatnonzero(judged.nights.sentinel).tolist()}
    for device, name in enumerate(judged.devices):
        if name in watched:
            continue
        candidates: list[SentinelCandidate] = []
        for s in np.flatnonzero(judged.matrix.device == device).tolist():
            nights = judged.baseline(s)
            codes = judged.nights.table.code[s, nights]
            info = results.cases.get(judged.nights.table.series[s][1])
            if info is None or len(nights) < RULE.min_nights or (codes != codes[:1]).any():
                continue
            own = judged.values[s, nights]
            candidates.append(
                SentinelCandidate(
                    judged.nights.table.series[s][1],
                    info.case.kernel,
                    len(nights),
                    float(np.exp(np.median(own))),
                    float(np.var(own, ddof=1)),
                )
            )
        if chosen := choose_sentinels(candidates):
            history.freeze(name, chosen, results.run.run_id)

"""What a night leaves for later ones: which series count for baselines, and the frozen sentinels."""

from math import isfinite

import numpy as np

from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.shift import SentinelCandidate, choose_sentinels
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.domain.results import RunResults
from orchestrator.history.history import History
from orchestrator.verdicts.speed import Judged


def keep(history: History, results: RunResults, judged: Judged) -> None:
    """A later night's baseline holds nights that were the same or new; an accepted shift starts another
    baseline (``Decided.restarts``)."""
    table = judged.nights.table
    rows: list[dict[str, object]] = []
    for s, (device_id, case_id) in enumerate(table.series):
        if table.code[s, -1] < 0:
            continue
        test = SPEEDS[int(judged.verdicts.tests[judged.matrix.test[s]])]
        own = SPEEDS[int(judged.verdicts.series[s])]
        moved = test if test in (Speed.REGRESSED, Speed.IMPROVED) else own
        counts = moved in (Speed.SAME, Speed.NEW) and bool(isfinite(table.log_ns[s, -1]))
        rows.append(
            {"device_id": device_id, "case_id": case_id, "speed": SPEEDS.index(moved), "accepted": counts}
        )
    history.store_verdicts(results.run.run_id, rows)


def freeze(history: History, judged: Judged, results: RunResults) -> None:
    """Choose sentinels for devices that have none and enough nights."""
    there = history.sentinels()
    for device, name in enumerate(judged.devices):
        if name in there:
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

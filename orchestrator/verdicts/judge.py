"""The whole way of one run: history in, ``Findings`` out, and what the night says of its series kept."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite, nan
from typing import get_args

import numpy as np

from orchestrator.analysis.speed.discovery import q_values
from orchestrator.analysis.speed.night import Reason
from orchestrator.analysis.speed.rows import Floats
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.shift import SentinelCandidate, choose_sentinels
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.domain.finding import (
    DeviceNight,
    Finding,
    Findings,
    Group,
    NumericsWord,
    SeriesRow,
    SpeedWord,
    Triage,
)
from orchestrator.domain.results import RunResults
from orchestrator.history.history import History
from orchestrator.verdicts.findings import grouped, numerics_findings, speed_findings, triaged
from orchestrator.verdicts.nights import Nights, Restarts, load
from orchestrator.verdicts.numerics import Flagged, flags
from orchestrator.verdicts.speed import Judged, judge

NUMERICS: tuple[NumericsWord, ...] = get_args(NumericsWord)
SHOWN = 30
"""Nights of a row's sparkline."""
_WORDS: Mapping[Speed, SpeedWord] = {
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


def _never(_device: str, _case: str, _run: str) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Decided:
    """What people decided (``triage``)."""

    triage: Mapping[str, Triage] = field(default_factory=dict[str, Triage])
    """Finding id → decision."""
    restarts: Restarts = _never


def judge_run(history: History, results: RunResults, decided: Decided | None = None) -> Findings:
    """What changed in a run that is in the history.

    Raises:
        InfraError: the history cannot be read.
    """
    decided = decided or Decided()
    nights = load(history, results.run.suite, results.run.run_id, decided.restarts)
    soc_of = {d.device_id: d.soc.name for d in results.devices}
    soc_of |= _known_socs(history, nights, soc_of)
    judged = judge(nights, soc_of, {})
    flagged = flags(nights, results, sorted(set(history.pinned().values()), reverse=True))
    found = speed_findings(judged) + numerics_findings(flagged, soc_of, judged)
    found = triaged(found, decided.triage)
    groups = grouped(judged, found, results.cases)
    _keep(history, results, judged)
    _freeze(history, judged, results)
    return _document(results, judged, found, [*_everything(judged), *groups], flagged)


def _known_socs(history: History, nights: Nights, known: Mapping[str, str]) -> dict[str, str]:
    missing = {device for device, _ in nights.table.series} - known.keys()
    return history.socs(missing) if missing else {}


def _document(
    results: RunResults,
    judged: Judged,
    found: Sequence[Finding],
    groups: Sequence[Group],
    flagged: Sequence[Flagged],
) -> Findings:
    rows = [_row(judged, n, flagged) for n in range(len(judged.tests))]
    counts = {word: sum(r.verdict == word for r in rows) for word in _WORDS.values()}
    counts["numerics"] = sum(f.kind == "numerics" for f in found)
    counts["phones"] = sum(bool(f.device_id) for f in found)
    counts["acknowledged"] = sum(
        f.triage is not None and f.triage.state in ("acknowledged", "noise") for f in found
    )
    return Findings(
        run_id=results.run.run_id,
        suite=results.run.suite,
        nights=judged.nights.table.runs,
        sentence=_sentence(counts, judged),
        counts=counts,
        not_measured=_not_measured(results, judged),
        groups=list(groups),
        findings=list(found),
        series=rows,
        devices=[_device(judged, n) for n in range(len(judged.devices))],
        method={name: float(value) for name, value in asdict(RULE).items()},
    )


def _sentence(counts: Mapping[str, int], judged: Judged) -> str:
    nights = len(judged.nights.table.runs) - 1
    if counts["same"] + counts["regressed"] + counts["improved"] == 0:
        need = RULE.min_nights
        return f"No verdict on speed yet: {nights} nights before this one, {need} accepted ones are needed"
    words = [
        f"{counts[word]} {word}"
        for word in ("regressed", "improved", "inconclusive", "missing")
        if counts[word]
    ]
    if counts["numerics"]:
        words.insert(2, f"{counts['numerics']} changes of numerics")
    return (
        ", ".join(words) or "Nothing changed"
    ) + f"; {counts['same']} of {len(judged.tests)} cases the same"


def _not_measured(results: RunResults, judged: Judged) -> list[str]:
    said = [f"night {m.night}: {m.why}" for m in results.run.missed_nights]
    said += [f"{m.device_id}: {m.why}" for m in results.missing if not m.case_id]
    cases = sum(bool(m.case_id) for m in results.missing)
    if cases:
        said.append(f"{cases} trials were planned and never came back")
    return said


def _row(judged: Judged, test: int, flagged: Sequence[Flagged]) -> SeriesRow:
    soc, case_id = judged.tests[test]
    series = judged.series_of(test)
    word = _WORDS[SPEEDS[int(judged.verdicts.tests[test])]]
    table = judged.nights.table
    tonight = [float(table.log_ns[s, -1]) for s in series if isfinite(table.log_ns[s, -1])]
    devices = {table.series[s][0] for s in series}
    marks = {f.flag for f in flagged if f.case_id == case_id and f.device_id in devices}
    return SeriesRow(
        soc=soc,
        case_id=case_id,
        verdict=word,
        why=_why(judged, word, series),
        effect=float(judged.night.pooled.delta[test]),
        detectable=float(judged.night.detectable[test]),
        latency_ns=float(np.exp(min(tonight))) if tonight else nan,
        phones=int(judged.night.pooled.phones[test]),
        history=_history(judged, series),
        flags=[word for word in NUMERICS if word in marks],
    )


def _why(judged: Judged, word: SpeedWord, series: Sequence[int]) -> str:
    table = judged.nights.table
    if word == "new":
        nights = max((int(judged.night.deltas.nights[s]) for s in series), default=0)
        return f"{nights} accepted nights of {RULE.min_nights}"
    if word == "missing":
        return "not measured tonight"
    if word == "inconclusive":
        reasons = [Reason(int(table.no_number[s, -1])) for s in series if table.no_number[s, -1]]
        return _REASONS.get(reasons[0], "") if reasons else "one phone alone says so, or none could tell"
    return ""


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


def _device(judged: Judged, device: int) -> DeviceNight:
    nights = judged.nights
    name = judged.devices[device]
    own = np.flatnonzero(judged.matrix.device == device).tolist()
    total = nights.table.log_ns.shape[1]
    columns = np.flatnonzero(np.append(judged.night.baseline.any(axis=0), np.True_))
    shift, frozen = np.full(total, nan), np.full(total, nan)
    shift[columns] = judged.night.shifts.all[device]
    frozen[columns] = judged.night.shifts.sentinels[device]
    environments = [
        next(filter(None, (nights.table.driver_text(s, n) for s in own)), "") for n in range(total)
    ]
    of_soc = int(judged.matrix.soc[device])
    soc = judged.socs[of_soc]
    everything = judged.night.everything
    delta = float(everything.deltas.delta[device])
    alone = [s for s in own if SPEEDS[int(judged.verdicts.series[s])] in (Speed.REGRESSED, Speed.IMPROVED)]
    items: list[str] = []
    if not any(nights.measured[s] for s in own):
        items.append("not measured tonight")
    if alone:
        items.append(f"{len(alone)} cases moved on this phone alone")
    word: SpeedWord = "same"
    own_q = float(q_values(everything.deltas.p)[device])
    unusual = own_q <= RULE.q and abs(delta) > RULE.threshold
    if isfinite(delta) and (everything.screened.found[of_soc] or unusual):
        word = "regressed" if delta > 0 else "improved"
        items.append(f"all its cases together {np.expm1(delta):+.1%}")
    return DeviceNight(
        device_id=name,
        soc=soc,
        shift=[round(float(v), 5) for v in shift[-SHOWN:]],
        sentinels=[round(float(v), 5) for v in frozen[-SHOWN:]],
        verdict=word,
        environment=environments[-SHOWN:],
        items=items,
    )


def _everything(judged: Judged) -> list[Group]:
    """SoCs all of whose cases moved together: taken off each series, it would be seen nowhere else."""
    everything = judged.night.everything
    found: list[Group] = []
    for n, soc in enumerate(judged.socs):
        delta = float(everything.pooled.delta[n]) if n < len(everything.pooled.delta) else nan
        if not isfinite(delta) or not everything.screened.found[n]:
            continue
        how = "slower" if delta > 0 else "faster"
        found.append(
            Group(
                group_id=f"all-{soc}-{how}",
                sentence=f"all variants together on {soc}: {abs(np.expm1(delta)):.1%} {how}",
                cause="environment",
                what="regressed" if delta > 0 else "improved",
                soc=soc,
            )
        )
    return found


def _keep(history: History, results: RunResults, judged: Judged) -> None:
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


def _freeze(history: History, judged: Judged, results: RunResults) -> None:
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

"""A second look in the same night: what is asked of which phone, and what the answers make of the first.

Asked are findings and suspects within the night's budget (``analysis.speed.plan``). Where the code changed
the two codes are measured in turns; else the case is measured once more. A question that was not answered,
because the phone went or a shader is gone, changes nothing: its finding stands, and says that nobody
confirmed it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan

import numpy as np

from orchestrator.analysis.clocks import CLOCK_FLOOR
from orchestrator.analysis.speed.again import again
from orchestrator.analysis.speed.night import summarise
from orchestrator.analysis.speed.plan import Plan, plan
from orchestrator.analysis.speed.rows import Bools, Floats, last_known
from orchestrator.analysis.speed.trials import samples_of
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed, Turns, verdicts
from orchestrator.domain.confirmation import Answered, Confirmation, Duel, Wanted
from orchestrator.domain.finding import Confirmed, Finding, InTurns
from orchestrator.domain.trial import Trial
from orchestrator.verdicts.speed import Judged, Second

NO_ANSWER = "no answer came"
_ANSWERS = {"different": 1, "unknown": 0, "same": -1}


@dataclass(frozen=True, slots=True)
class Questions:
    """What a night asks for."""

    wanted: list[Wanted]
    """The least likely by chance first."""
    unpaid: int
    """Findings and suspects beyond the budget."""
    samples: int
    """Timed in the whole night: the budget is a share of them."""


def questions(judged: Judged) -> Questions:
    """Of the first look at a night."""
    samples = int(judged.nights.table.measured[:, -1].sum())
    chosen = plan(judged.matrix, judged.night, samples, told_before(judged))
    p = judged.night.deltas.p
    order = sorted(np.flatnonzero(chosen.series).tolist(), key=lambda s: (not p[s] <= 1, p[s], s))
    return Questions([_question(judged, chosen, s) for s in order], chosen.unpaid, samples)


def told_before(judged: Judged) -> Bools:
    """(series,) The last night that judged it said that it moved, the way that it moved tonight."""
    said = judged.nights.said[:, :-1]
    if not said.shape[1]:
        return np.zeros(len(said), np.bool_)
    way = np.where(judged.night.deltas.delta > 0, SPEEDS.index(Speed.REGRESSED), SPEEDS.index(Speed.IMPROVED))
    return last_known(said, said >= 0) == way


def _question(judged: Judged, chosen: Plan, series: int) -> Wanted:
    device_id, case_id = judged.nights.table.series[series]
    test = int(judged.matrix.test[series])
    old, new = judged.code(series, judged.before(series)), judged.code(series, -1)
    asked = Wanted(
        device_id=device_id,
        case_id=case_id,
        how="again",
        whose="soc" if chosen.tests[test] else "phone",
        p=float(judged.night.deltas.p[series]),
        threshold=float(judged.matrix.threshold[test]),
    )
    if not (judged.matrix.code_changed[test] and old and new and old != new):
        return asked
    return replace(
        asked, how="turns", code_before=old, code_after=new, baseline_run=_last_with(judged, series, old)
    )


def _last_with(judged: Judged, series: int, code: str) -> str:
    table = judged.nights.table
    nights = len(table.runs) - 1
    return next((table.runs[n] for n in reversed(range(nights)) if judged.code(series, n) == code), "")


def confirmed(judged: Judged, confirmation: Confirmation) -> Judged:
    """The same night with its second look.

    Questions about series that are not in this night, or whose code is another one by now, are left out.
    """
    second = _second(judged, confirmation)
    said = verdicts(
        judged.matrix, judged.night, judged.nights.measured, second.plan, second.turns, second.again
    )
    return replace(judged, verdicts=said, second=second)


def _second(judged: Judged, confirmation: Confirmation) -> Second:
    number = {series: n for n, series in enumerate(judged.nights.table.series)}
    wanted = {
        number[w.device_id, w.case_id]: w
        for w in confirmation.wanted
        if (w.device_id, w.case_id) in number and _still(judged, number[w.device_id, w.case_id], w)
    }
    duels = {
        n: duel
        for duel in confirmation.duels
        if (n := number.get((duel.wanted.device_id, duel.wanted.case_id), -1)) in wanted
    }
    turns = Turns.none(len(number))
    why_not = dict.fromkeys(wanted, confirmation.why or NO_ANSWER)
    for n, duel in duels.items():
        if not duel.pairs:
            why_not[n] = duel.why or NO_ANSWER
            continue
        del why_not[n]
        turns.asked[n], turns.answer[n], turns.effect[n] = True, _ANSWERS[duel.answer], duel.effect
    log_ns = _times(judged, confirmation.again, wanted, number, why_not)
    answered = turns.asked | np.isfinite(log_ns)
    tests = _whole(judged, wanted, turns, answered)
    items = np.array([n in wanted and wanted[n].whose == "phone" for n in range(len(number))], np.bool_)
    series = answered & (items | tests[judged.matrix.test])
    once_more = np.where(series & ~turns.asked, log_ns, np.nan)
    second = None
    if np.isfinite(once_more).any():
        second = again(judged.matrix, judged.night, judged.nights.past, once_more)
    return Second(Plan(tests, series, confirmation.unpaid), turns, second, wanted, duels, why_not)


def _still(judged: Judged, series: int, asked: Wanted) -> bool:
    return asked.how == "again" or judged.code(series, -1) == asked.code_after


def _times(
    judged: Judged,
    trials: Sequence[Trial],
    wanted: Mapping[int, Wanted],
    number: Mapping[tuple[str, str], int],
    why_not: dict[int, str],
) -> Floats:
    """(series,) of what was measured once more; NaN where it says nothing: then ``why_not`` says why.

    Another clock than the first time's is another machine (``baseline.baseline_nights``).
    """
    found = np.full(len(number), np.nan)
    asked = [t for t in trials if number.get((t.device_id, t.case_id), -1) in wanted]
    for trial in asked:
        why_not[number[trial.device_id, trial.case_id]] = trial.reason or "it was not timed"
    kept = [t for t in asked if t.timing is not None and t.timing.samples_ns]
    if not kept:
        return found
    table = judged.nights.table
    rows = [number[t.device_id, t.case_id] for t in kept]
    seen = summarise(samples_of(kept), table.clock_hz[rows, -1])
    for at, row in enumerate(rows):
        first_hz, hz = float(table.clock_hz[row, -1]), float(seen.clock_hz[at])
        if not isfinite(seen.log_ns[at]):
            why_not[row] = "the second measurement gave no number"
        elif seen.basis[at] != table.basis[row, -1] or abs(hz / first_hz - 1) > CLOCK_FLOOR:
            why_not[row] = "the second measurement ran at another clock"
        else:
            found[row] = seen.log_ns[at]
            why_not.pop(row, None)
    return found


def _whole(judged: Judged, wanted: Mapping[int, Wanted], turns: Turns, answered: Bools) -> Bools:
    """(tests,) asked for a SoC and answered: by one phone where codes took turns, else by all that were."""
    tests = np.zeros(judged.matrix.tests, np.bool_)
    for test in {int(judged.matrix.test[n]) for n, w in wanted.items() if w.whose == "soc"}:
        own = [n for n in judged.series_of(test) if n in wanted and wanted[n].whose == "soc"]
        tests[test] = any(turns.asked[n] for n in own) or all(answered[n] for n in own)
    return tests


def confirmed_word(judged: Judged, test: int, series: int | None) -> Confirmed:
    """Of a finding on a SoC, or on the phone of ``series``."""
    second = judged.second
    own = judged.series_of(test) if series is None else [series]
    asked = [s for s in own if s in second.wanted]
    if bool(judged.verdicts.confirmed[test] if series is None else judged.verdicts.confirmed_series[series]):
        return "yes"
    if not asked:
        return "not asked"
    if not (second.plan.tests[test] if series is None else second.plan.series[series]):
        return "unknown"
    in_turns = [s for s in asked if second.turns.asked[s]]
    # Both codes alike, or not found a second time; all else is open.
    return "no" if all(second.turns.answer[s] == -1 for s in in_turns) else "unknown"


def duels_of(judged: Judged, series: Sequence[int]) -> list[InTurns]:
    duels = [judged.second.duels[s] for s in series if s in judged.second.duels]
    return [_in_turns(duel) for duel in duels if duel.wanted.how == "turns"]


def _in_turns(duel: Duel) -> InTurns:
    return InTurns(
        device_id=duel.wanted.device_id,
        answer=duel.answer,
        effect=duel.effect,
        low=duel.low,
        high=duel.high,
        p=duel.p,
        pairs=duel.pairs,
        valid=duel.valid,
        why=duel.why,
    )


def answered(judged: Judged, series: int, finding: Finding) -> Answered:
    """What tonight's second look said of a series that it asked for a finding."""
    second = judged.second
    duel = second.duels.get(series)
    again = nan if second.again is None else float(second.again.deltas.delta[series])
    return Answered(
        run_id=judged.nights.table.runs[-1],
        confirmed=finding.confirmed,
        whose="phone" if finding.device_id else "soc",
        turns=_in_turns(duel) if duel is not None and duel.wanted.how == "turns" else None,
        again=again,
        why=second.why_not.get(series, ""),
    )


def sentence(judged: Judged, series: Sequence[int]) -> str:
    """What measuring again said of a finding; empty where nobody asked."""
    second = judged.second
    asked = [s for s in series if s in second.wanted]
    told: list[str] = []
    for s in asked:
        if s in second.why_not:
            told.append(f"not confirmed on {second.wanted[s].device_id}: {second.why_not[s]}")
        elif second.turns.asked[s]:
            duel = second.duels[s]
            told.append(f"in turns {duel.answer}: {np.expm1(duel.effect):+.1%} in {duel.valid} pairs")
        elif second.again is not None:
            told.append(f"measured again: {np.expm1(second.again.deltas.delta[s]):+.1%}")
    return "; ".join(dict.fromkeys(told))

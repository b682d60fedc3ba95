"""Findings and their second look: tonight's answer, else an earlier night's, else why there is none.

A finding is asked about once. The answer is kept with what the night said of the series that were asked, and
each later night that says the same hands it on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import expm1, isfinite

import numpy as np

from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.domain.confirmation import Answered
from orchestrator.domain.finding import EVERYTHING, Finding, NotAsked
from orchestrator.domain.wire import from_json
from orchestrator.history.history import History
from orchestrator.history.second_looks import second_looks
from orchestrator.verdicts.confirming import answered, told_before
from orchestrator.verdicts.findings import Told
from orchestrator.verdicts.speed import Judged
from orchestrator.verdicts.words import day

Answers = dict[int, Answered]
"""Of series."""
_WORDS = {"regressed": SPEEDS.index(Speed.REGRESSED), "improved": SPEEDS.index(Speed.IMPROVED)}


def with_second_looks(
    history: History, judged: Judged, told: Sequence[Told]
) -> tuple[list[Told], Mapping[int, Answered]]:
    """Findings with their answers, or why they have none; and the answers that a later night is to know.

    Raises:
        InfraError: an earlier night's verdicts cannot be read.
    """
    tests = {test: number for number, test in enumerate(judged.tests)}
    series = {key: number for number, key in enumerate(judged.nights.table.series)}
    own = [_series_of(judged, item, tests, series) for item in told]
    said = [_said(judged, t, numbers) for t, numbers in zip(told, own, strict=True)]
    earlier = _earlier(history, judged, [n for nights in said for n in nights.items()])
    known = told_before(judged)
    found: list[Told] = []
    answers: Answers = {}
    for item, numbers, nights in zip(told, own, said, strict=True):
        finding, new = item.finding, Answers()
        if finding.confirmed != "not asked":
            new = {s: answered(judged, s, finding) for s in numbers if s in judged.second.wanted}
        elif new := _holding(judged, item, nights, earlier):
            finding = _handed_on(judged, finding, list(new.values()))
        else:
            why = _not_asked(judged, item, known=bool(nights) and bool(known[numbers].any()))
            since = judged.nights.table.runs[min(map(min, nights.values()))] if why == "known" else ""
            finding = replace(finding, not_asked=why, known_since=since)
        answers |= new
        found.append(replace(item, finding=finding))
    return found, answers


def _series_of(
    judged: Judged, told: Told, tests: Mapping[tuple[str, str], int], series: Mapping[tuple[str, str], int]
) -> list[int]:
    """That a second look at it may ask; none where there is no such thing."""
    finding = told.finding
    if finding.kind != "speed" or finding.case_id == EVERYTHING or told.drift:
        return []
    if finding.device_id:
        return [series[finding.device_id, finding.case_id]]
    return judged.series_of(tests[finding.soc, finding.case_id])


def _said(judged: Judged, told: Told, series: Sequence[int]) -> dict[int, list[int]]:
    """Series → earlier nights since its baseline that said the same; those without any are left out."""
    if not series:
        return {}
    nights, word = judged.nights, _WORDS[told.finding.what]
    found: dict[int, list[int]] = {}
    for s in series:
        begin = max((n for n in judged.baseline(s)), default=-1) + 1
        same = (nights.said[s, :-1] == word) & (nights.epoch[s, :-1] == nights.epoch[s, -1])
        if own := [n for n in np.flatnonzero(same).tolist() if n >= begin]:
            found[s] = own
    return found


def _earlier(
    history: History, judged: Judged, said: Sequence[tuple[int, Sequence[int]]]
) -> dict[int, tuple[int, Answered]]:
    """Series → the last night that said it, and the answer that this one knew."""
    table = judged.nights.table
    wanted = {s: nights[-1] for s, nights in said}
    runs = {table.runs[n] for n in wanted.values()}
    if not runs:
        return {}
    files = {r.run_id: history.verdict_path(r) for r in history.runs() if r.run_id in runs and r.verdicts}
    kept = second_looks(files)
    found: dict[int, tuple[int, Answered]] = {}
    for s, night in wanted.items():
        if (text := kept.get((table.runs[night], *table.series[s]))) is not None:
            found[s] = night, from_json(Answered, text, f"verdicts of {table.runs[night]}")
    return found


def _holding(
    judged: Judged, told: Told, nights: Mapping[int, object], earlier: Mapping[int, tuple[int, Answered]]
) -> Answers:
    """The newest answers, as far as they are of the level that it has tonight."""
    whose = "phone" if told.finding.device_id else "soc"
    known = {s: earlier[s] for s in nights if s in earlier and earlier[s][1].whose == whose}
    fits = {s: answer for s, (night, answer) in known.items() if _still(judged, told, s, night)}
    newest = max((a.run_id for a in fits.values()), default="")
    return {s: a for s, a in fits.items() if a.run_id == newest}


def _still(judged: Judged, told: Told, series: int, night: int) -> bool:
    """Nothing that it may come from is newer than the answer. A level without a key has no sure beginning."""
    if night >= told.origin.night:
        return True
    same_code = judged.code(series, night) == judged.code(series, -1)
    return same_code and judged.environment(series, night) == judged.environment(series, -1)


def _handed_on(judged: Judged, finding: Finding, answers: Sequence[Answered]) -> Finding:
    first = answers[0]
    words = f"{'confirmed' if first.confirmed == 'yes' else 'not confirmed'} on {_day(judged, first.run_id)}"
    turns = [a.turns for a in answers if a.turns is not None]
    again = [a.again for a in answers if isfinite(a.again)]
    if effects := [t.effect for t in turns if isfinite(t.effect)]:
        words += f", in turns: {_figures(effects)}"
    elif again:
        words += f", measured again: {_figures(again)}"
    why = "; ".join(dict.fromkeys(a.why for a in answers if a.why))
    return replace(
        finding,
        confirmed=first.confirmed,
        confirmed_in=first.run_id,
        duels=turns,
        detail=f"{finding.detail}; {words}" + (f" ({why})" if why else ""),
    )


def _figures(effects: Sequence[float]) -> str:
    return " and ".join(dict.fromkeys(f"{expm1(e) * 100:+.1f} %" for e in effects))


def _day(judged: Judged, run_id: str) -> str:
    runs = judged.nights.table.runs
    return day(judged, runs.index(run_id)) if run_id in runs else run_id


def _not_asked(judged: Judged, told: Told, *, known: bool) -> NotAsked:
    if told.finding.kind == "numerics":
        return "numerics"
    if told.finding.case_id == EVERYTHING:
        return "whole"
    if told.drift:
        return "drift"
    if known:
        return "known"
    return "budget" if judged.second.plan.unpaid else ""

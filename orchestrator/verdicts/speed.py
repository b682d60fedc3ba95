"""Tonight's speed, by the rule of docs/statistics.md: tests are cases on SoCs, series are their phones."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from orchestrator.analysis.speed import rows
from orchestrator.analysis.speed.again import Again
from orchestrator.analysis.speed.analyse import Matrix, NightAnalysis, analyse
from orchestrator.analysis.speed.baseline import (
    Elsewhere,
    at_any_clock,
    baseline_nights,
    elsewhere,
    left_clock,
)
from orchestrator.analysis.speed.causes import EnvironmentKey
from orchestrator.analysis.speed.confirm import Answer
from orchestrator.analysis.speed.plan import Plan
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.verdicts import Turns, Verdicts, verdicts
from orchestrator.analysis.speed.whole import Whole, judge_whole, phone_shifts
from orchestrator.domain.confirmation import Duel, Wanted
from orchestrator.verdicts.nights import MOVED, Nights

UNKNOWN_SOC = "unknown"
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Second:
    """What measuring again said (``confirming``)."""

    plan: Plan
    """What has an answer."""
    turns: Turns
    again: Again | None = None
    wanted: Mapping[int, Wanted] = field(default_factory=dict[int, Wanted])
    """Series → what it was asked, answered or not."""
    duels: Mapping[int, Duel] = field(default_factory=dict[int, Duel])
    """Series → its duel, also one that came to nothing."""
    why_not: Mapping[int, str] = field(default_factory=dict[int, str])
    """Series → why it gave no answer."""

    @classmethod
    def none(cls, tests: int, series: int) -> "Second":
        return cls(Plan(np.zeros(tests, np.bool_), np.zeros(series, np.bool_), 0), Turns.none(series))


@dataclass(frozen=True, slots=True)
class Judged:
    """One night of a suite."""

    nights: Nights
    matrix: Matrix
    devices: list[str]
    """By index of ``matrix``."""
    socs: list[str]
    tests: list[tuple[str, str]]
    """SoC and case, by index of ``matrix.test``."""
    night: NightAnalysis
    verdicts: Verdicts
    values: Floats
    """(series, nights) log times with the common shift of each device-night taken off."""
    second: Second
    members: list[list[int]]
    """[test] its series"""
    shift: Floats
    """(devices, nights) log ratio of all variants together to the phone's usual night; NaN: not known."""
    whole: Whole
    """What is to be said of that."""
    elsewhere: Elsewhere
    """Series whose clock, or whose want of one, leaves them without a baseline."""
    left_clock: Bools
    """(devices,) that as wholes are compared with nights at another clock (``baseline.left_clock``)."""

    def series_of(self, test: int) -> list[int]:
        return self.members[test]

    def steadiest(self, device: int) -> int:
        """The series that stands for a phone's software: the one with its present code in most nights."""
        own = np.flatnonzero(self.matrix.device == device)
        code = self.nights.table.code[own]
        newest = rows.last_known(code, code >= 0)
        count = ((code == newest[:, None]) & (code >= 0)).sum(axis=1)
        return int(own[count.argmax()])

    def baseline(self, series: int) -> list[int]:
        """Nights that it was compared with."""
        return np.flatnonzero(self.night.baseline[series]).tolist()

    def before(self, series: int) -> int:
        """Its baseline's last night; without one the last night with a trial; −1: none."""
        nights = self.baseline(series)
        if nights:
            return nights[-1]
        trials = np.flatnonzero(self.nights.table.code[series, :-1] >= 0)
        return int(trials[-1]) if len(trials) else -1

    def environment(self, series: int, night: int) -> EnvironmentKey:
        return EnvironmentKey(
            self.nights.table.driver_text(series, night), self.nights.os_build[series][night]
        )

    def code(self, series: int, night: int) -> str:
        return self.nights.table.code_text(series, night)

    def able(self, test: int) -> int:
        """Phones of a test's SoC that could tell."""
        return sum(bool(np.isfinite(self.night.deltas.delta[s])) for s in self.series_of(test))

    def in_turns(self, test: int, showing: Sequence[int]) -> Answer | None:
        """What both codes of a test measured in turns say; None where they were not, or it is open."""
        turns = self.second.turns
        asked = [s for s in self.series_of(test) if turns.asked[s]]
        way = np.sign(self.night.deltas.delta[showing[0]])
        if any(turns.answer[s] == 1 and np.sign(turns.effect[s]) == way for s in asked if s in showing):
            return Answer.DIFFERENT
        return Answer.SAME if asked and all(turns.answer[s] == -1 for s in asked) else None


def judge(nights: Nights, soc_of: Mapping[str, str], thresholds: Mapping[str, float]) -> Judged:
    """The first look; ``confirming.confirmed`` adds the second.

    Args:
        soc_of: device → SoC.
        thresholds: case → smallest relative change that matters, where it is not the rule's.
    """
    table = nights.table
    devices, device = _numbered([d for d, _ in table.series])
    socs, soc = _numbered([soc_of.get(d, UNKNOWN_SOC) for d in devices])
    tests, test = _numbered([(socs[soc[n]], case) for n, (_, case) in zip(device, table.series, strict=True)])
    changed = _code_changed(nights, test, len(tests))
    matrix = Matrix(
        device=device,
        test=test,
        soc=soc,
        code_changed=changed,
        threshold=np.array([np.log1p(thresholds.get(case, np.expm1(RULE.threshold))) for _, case in tests]),
        sentinel=nights.sentinel & ~changed[test] & ~_moved_before(nights),
    )
    night = analyse(matrix, nights.past, nights.tonight)
    second = Second.none(len(tests), len(test))
    said = verdicts(matrix, night, nights.measured, second.plan, second.turns)
    still = _still(nights, devices)
    gone = left_clock(nights.past, nights.tonight, device, soc, still[:, :-1])
    left = gone[:, -1]
    whole = phone_shifts(table.log_ns, _comparable(nights, left[device]), device, len(devices))
    members: list[list[int]] = [list[int]() for _ in tests]
    for series, of in enumerate(int(t) for t in test):
        members[of].append(series)
    return Judged(
        nights,
        matrix,
        devices,
        socs,
        tests,
        night,
        said,
        table.log_ns - _taken_off(night, whole, left)[device],
        second,
        members,
        whole,
        judge_whole(whole, still & ~gone, soc, len(socs)),
        elsewhere(nights.past, nights.tonight),
        left,
    )


def _taken_off(night: NightAnalysis, whole: Floats, left: Bools) -> Floats:
    """(devices, nights) Common shifts of the analysis; of nights that no baseline uses, the phone's own, on
    the same footing: each is relative to other nights. The analysis knows those at one clock only, so where
    the phone left that one, all are its own."""
    used = np.append(night.baseline.any(axis=0), np.True_)
    taken = night.shifts.taken_off
    footing = np.nan_to_num(rows.median(night.shifts.all - whole[:, used]))
    shift = np.nan_to_num(whole + footing[:, None])
    shift[:, used] = taken
    return np.where(left[:, None], np.nan_to_num(whole), shift)


def _comparable(nights: Nights, left: Bools) -> Bools:
    """(series, nights) that compare with a phone's usual night: its code, its clock, no change of its own.

    Args:
        left: (series,) of phones that left their clock: they compare at any.
    """
    code = nights.table.code
    newest = rows.last_known(code, code >= 0)
    fits = np.zeros(code.shape, np.bool_)
    fits[:, :-1] = baseline_nights(nights.past, nights.tonight, replace(RULE, window=len(nights.table.runs)))
    if left.any():
        fits[left, :-1] = at_any_clock(nights.past, nights.tonight)[left]
    fits[:, -1] = np.isfinite(nights.table.log_ns[:, -1])
    return fits & (code == newest[:, None])


def _still(nights: Nights, devices: Sequence[str]) -> Bools:
    """(devices, nights) in which the phone as a whole was not said to have moved."""
    found = np.zeros((len(devices), len(nights.table.runs)), np.bool_)
    for row, device in enumerate(devices):
        found[row] = nights.whole_accepted(device)
    return found


def _code_changed(nights: Nights, test: Ints, tests: int) -> Bools:
    """(tests,) Any phone that has a number ran other code for it than in its last night that counts."""
    code = nights.table.code
    if code.shape[1] < 2:
        return np.zeros(tests, np.bool_)
    counted = (code[:, :-1] >= 0) & nights.accepted[:, :-1]
    before = rows.last_known(code[:, :-1], counted)
    other = counted.any(axis=1) & np.isfinite(nights.table.log_ns[:, -1]) & (before != code[:, -1])
    return np.bincount(test[other], minlength=tests) > 0


def _moved_before(nights: Nights) -> Bools:
    """(series,) Told to have moved the last time: no sentinel. A driver that slowed most of a phone's frozen
    cases would make all others look faster."""
    said = nights.said[:, :-1]
    if not said.shape[1]:
        return np.zeros(len(said), np.bool_)
    return np.isin(rows.last_known(said, said >= 0), MOVED)


def _numbered(names: list[T]) -> tuple[list[T], Ints]:
    """Distinct names in order of appearance, and the index of each."""
    index: dict[T, int] = {}
    numbers = [index.setdefault(name, len(index)) for name in names]
    return list(index), np.array(numbers, np.int64)

"""Tonight's speed, by the rule of docs/statistics.md: tests are cases on SoCs, series are their phones."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from orchestrator.analysis.speed.again import Again
from orchestrator.analysis.speed.analyse import Matrix, NightAnalysis, analyse
from orchestrator.analysis.speed.causes import Attribution, EnvironmentKey, Evidence, attribute
from orchestrator.analysis.speed.confirm import Answer
from orchestrator.analysis.speed.plan import Plan
from orchestrator.analysis.speed.rows import Bools, Floats, Ints
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.verdicts import Turns, Verdicts, verdicts
from orchestrator.domain.confirmation import Duel, Wanted
from orchestrator.verdicts.nights import Nights

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

    def series_of(self, test: int) -> list[int]:
        return np.flatnonzero(self.matrix.test == test).tolist()

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

    def cause(self, test: int, showing: list[int]) -> Attribution:
        """Why the phones of ``showing`` (series of a test) moved."""
        lead = showing[0]
        before = self.before(lead)
        able = [s for s in self.series_of(test) if np.isfinite(self.night.deltas.delta[s])]
        return attribute(
            Evidence(
                code_changed=bool(self.matrix.code_changed[test]),
                before=self.environment(lead, before),
                after=self.environment(lead, -1),
                phones=len(able),
                showing=len(showing),
                turns=self._in_turns(test, showing),
            )
        )

    def _in_turns(self, test: int, showing: list[int]) -> Answer | None:
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
        sentinel=nights.sentinel & ~changed[test] if len(test) else nights.sentinel,
    )
    night = analyse(matrix, nights.past, nights.tonight)
    second = Second.none(len(tests), len(test))
    said = verdicts(matrix, night, nights.measured, second.plan, second.turns)
    used = night.baseline.any(axis=0)
    shift = np.zeros((len(devices), table.log_ns.shape[1]))
    taken = night.shifts.taken_off
    shift[:, :-1][:, used] = taken[:, :-1]
    shift[:, -1] = taken[:, -1]
    return Judged(nights, matrix, devices, socs, tests, night, said, table.log_ns - shift[device], second)


def _code_changed(nights: Nights, test: Ints, tests: int) -> Bools:
    """(tests,) Any phone runs other code tonight than in its last night that counts."""
    code, changed = nights.table.code, np.zeros(tests, np.bool_)
    for series, of in enumerate(test):
        counted = np.flatnonzero((code[series, :-1] >= 0) & nights.accepted[series, :-1])
        if len(counted) and code[series, -1] >= 0:
            changed[of] |= bool(code[series, counted[-1]] != code[series, -1])
    return changed


def _numbered(names: list[T]) -> tuple[list[T], Ints]:
    """Distinct names in order of appearance, and the index of each."""
    index: dict[T, int] = {}
    numbers = [index.setdefault(name, len(index)) for name in names]
    return list(index), np.array(numbers, np.int64)

"""The simulation's answers as text, and which goals of ../shared/statistics.md they meet."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.simulation.goals import Found, InTurns, Proportion, Quiet, Scenario
from orchestrator.analysis.speed.rows import Floats

BUDGET = 0.02
"""Share of a night's samples that confirmation may take."""


@dataclass(frozen=True, slots=True)
class Goal:
    what: str
    limit: float
    least: bool
    """The share shall be at least ``limit``; else at most."""

    def answer(self, found: Proportion) -> str:
        """By the whole interval, so that few runs prove nothing."""
        low, high = found.interval
        side = 1.0 if self.least else -1.0
        worst, best = (low, high) if self.least else (high, low)
        if side * (worst - self.limit) >= 0:
            return "met"
        if side * (found.share - self.limit) >= 0:
            return "met, and its interval reaches over"
        how = "missed" if side * (best - self.limit) < 0 else "missed, within its interval"
        return f"{how}, by {abs(found.share - self.limit) * 100:.2g} points"


FIVE = Goal("5 % on a SoC", 0.95, True)
THREE = Goal("3 % on a SoC", 0.80, True)
ONE = Goal("5 % on one phone", 0.75, True)
FALSE = Goal("false discoveries", 0.05, False)
TESTS = Goal("false positives a test", 0.0005, False)
ALARMS = Goal("nights with an alarm", 0.01, False)


def of_changes(results: Sequence[tuple[Scenario, Found]]) -> list[str]:
    heads = " ".join(f"{head:24}" for head in ("5 % on a SoC", "3 % on a SoC", "5 % on one phone"))
    lines = ["found and confirmed in the same night", ""]
    lines.append(f"{'scenario':26} {heads} {'false':>14} {'cost':>6}")
    for scenario, said in results:
        shares = " ".join(f"{share(p):24}" for p in (said.five, said.three, said.one_phone))
        false = f"{said.false.hits:>5} of {said.false.of:<6}"
        lines.append(f"{scenario.name:26} {shares} {false} {said.cost:6.2%}")
    return lines


def of_quiet_nights(results: Sequence[tuple[Scenario, Quiet]], farm: str) -> list[str]:
    lines = [f"nights without change, {farm}", ""]
    lines.append(
        f"{'scenario':26} {'tests':>9} {'found':>6} {'p < 0.0005':30} {'nights with an alarm':32} {'cost':>6}"
    )
    for scenario, said in results:
        alarms = f"{said.alarms.hits} of {said.alarms.of} {share(said.alarms, 2)}"
        lines.append(
            f"{scenario.name:26} {said.screened.of:>9} {said.screened.hits:>6} {share(said.below, 4):30} "
            f"{alarms:32} {said.cost:6.2%}"
        )
    return lines


def in_turns_table(name: str, results: Sequence[InTurns]) -> list[str]:
    lines = [f"two codes in turns, {name}", ""]
    lines.append(f"{'effect':>7} {'different':28} {'same':24} {'samples':>8}")
    for said in results:
        different, same = share(said.different, 3), share(said.same)
        lines.append(f"{said.effect:7.0%} {different:28} {same:24} {said.samples:8.0f}")
    return lines


def goals(found: Sequence[tuple[Scenario, Found]], still: Sequence[tuple[Scenario, Quiet]]) -> list[str]:
    """One line a goal and scenario; scenarios that the goals do not name are below."""
    lines = [f"{'goal':34} {'scenario':26} {'found':>9} {'95 % interval':24} answer", ""]
    for asked in (True, False):
        for goal, results in _shares(found, still):
            for scenario, seen in results:
                if scenario.asked is not asked or not seen.of:
                    continue
                digits = 2 if goal.limit >= 0.01 else 4
                low, high = (f"{v:.{digits}%}" for v in seen.interval)
                name = f"{goal.what} {'>=' if goal.least else '<='} {goal.limit:.4g}"
                lines.append(
                    f"{name:34} {scenario.name:26} {f'{seen.share:.{digits}%}':>9} "
                    f"{f'{low} to {high}':24} {goal.answer(seen)}"
                )
        lines += ["", "scenarios that the goals do not name", ""] if asked else []
    cost = max([f.cost for _, f in found] + [q.cost for _, q in still], default=0.0)
    answer = "met" if cost <= BUDGET else "missed"
    return [*lines, "", f"confirmation: at most {cost:.2%} of a night's samples, of {BUDGET:.0%}: {answer}"]


def _shares(
    found: Sequence[tuple[Scenario, Found]], still: Sequence[tuple[Scenario, Quiet]]
) -> list[tuple[Goal, list[tuple[Scenario, Proportion]]]]:
    return [
        (FIVE, [(s, f.five) for s, f in found]),
        (THREE, [(s, f.three) for s, f in found]),
        (ONE, [(s, f.one_phone) for s, f in found]),
        (FALSE, [(s, f.false) for s, f in found]),
        (TESTS, [(s, q.screened) for s, q in still]),
        (ALARMS, [(s, q.alarms) for s, q in still]),
    ]


def of_smallest(results: Sequence[tuple[Scenario, Floats]]) -> list[str]:
    lines = ["smallest effect that a night would have found with 80 % probability, by its own noise", ""]
    lines.append(f"{'scenario':26} {'10 % of cases':>14} {'half of them':>14} {'90 % of cases':>14}")
    for scenario, seen in results:
        known = np.expm1(seen[np.isfinite(seen)])
        cells = " ".join(f"{np.quantile(known, q):14.2%}" for q in (0.1, 0.5, 0.9))
        lines.append(f"{scenario.name:26} {cells}")
    return lines


def share(found: Proportion, digits: int = 1) -> str:
    if found.of == 0:
        return "-"
    low, high = found.interval
    return f"{found.share:.{digits}%} ({low:.{digits}%} to {high:.{digits}%})"

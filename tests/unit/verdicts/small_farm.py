"""A small farm, night by night: what a person decides is tested on its history."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp

import numpy as np

from orchestrator.domain.expectation import Expectation
from orchestrator.domain.finding import Finding, Findings
from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.history.history import History
from orchestrator.verdicts.decided import Decided
from orchestrator.verdicts.judge import judge_run
from tests.results_fixture import case, device, elements, info, numerics, passing, results, run_info, timing

SOC = "SM8650"
PHONES = ("one", "two", "three")
CASES = [case(seq=64 * n, tile=tile) for n in (1, 2, 3, 4, 5) for tile in ("16x16", "32x16")]
SLOW = CASES[0].case_id
"""The case that this farm's stories are about."""
Slower = Callable[[int, str, str], float]
"""(night, phone, case) → log ratio to what it always took."""


def run_id(night: int) -> str:
    return f"202612{night:02d}T010000Z-nightly-aaaa"


def never(_night: int, _phone: str, _case: str) -> float:
    return 0.0


@dataclass
class SmallFarm:
    history: History
    slower: Slower = never
    nmse: Mapping[int, float] = field(default_factory=dict[int, float])
    """Night → factor on the error of ``SLOW`` from then on."""
    flaky: frozenset[int] = frozenset()
    """Nights in which ``SLOW`` computes two different outputs."""
    expectations: Sequence[Expectation] = ()

    def results(self, night: int) -> RunResults:
        random = np.random.default_rng(night)
        trials: list[Trial] = []
        for phone in PHONES:
            for number, point in enumerate(CASES):
                log = 0.004 * random.standard_normal() + self.slower(night, phone, point.case_id)
                ns = round(1_000_000 * (1 + number) * exp(log))
                made = passing(point, phone, timing(ns, spread=0.002, n=20), run_id=run_id(night))
                trials.append(self._numbers(made, night))
        return results(
            run=run_info(run_id(night), suite="nightly"),
            devices=[device(phone, soc=SOC) for phone in PHONES],
            infos=[info(c) for c in CASES],
            trials=trials,
            expectations=self.expectations,
        )

    def _numbers(self, trial: Trial, night: int) -> Trial:
        if trial.case_id != SLOW:
            return trial
        factor = [f for since, f in sorted(self.nmse.items()) if since <= night][-1:] or [1.0]
        made = numerics(elements(CASES[0]), max_abs=4e-7 * factor[0] ** 0.5, bits=f"{factor}")
        if night not in self.flaky:
            return replace(trial, outputs=[made])
        torn = replace(made, hashes={made.hash: 10, "f" * 64: 2})
        return replace(trial, outputs=[torn], verdict=Verdict.NONDETERMINISTIC)

    def night(self, night: int, decided: Decided | None = None) -> Findings:
        """Stored and judged, as a run that ends."""
        found = self.results(night)
        self.history.store(found)
        return judge_run(self.history, found, decided)

    def nights(self, first: int, last: int, decided: Decided | None = None) -> Findings:
        """The last one's findings."""
        return [self.night(night, decided) for night in range(first, last + 1)][-1]


def of_case(findings: Findings, case_id: str = SLOW) -> list[Finding]:
    return [f for f in findings.findings if f.case_id == case_id]


def verdict(findings: Findings, case_id: str = SLOW) -> str:
    return next(row.verdict for row in findings.series if row.case_id == case_id)

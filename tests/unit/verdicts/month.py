"""The example's month, judged night by night as `tilefarm example` does, without reports."""

from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.cli.options import load_inputs
from orchestrator.domain.case import Case
from orchestrator.domain.finding import Finding, Findings, Group
from orchestrator.example import matrix_file
from orchestrator.example.month import Month, number_of
from orchestrator.example.second_look import SecondLook
from orchestrator.example.truth import CHANGES, DRIFTS, NUMBERS, Change
from orchestrator.history.history import History
from orchestrator.history.usual import usual_clocks
from orchestrator.verdicts.confirming import questions
from orchestrator.verdicts.judge import first_look, judge_run


@dataclass(frozen=True, slots=True)
class Night:
    number: int
    """From 1."""
    findings: Findings
    cases: dict[str, Case]

    def group(self, words: str) -> Group:
        """The only one whose sentence begins so."""
        (found,) = [g for g in self.findings.groups if g.sentence.startswith(words)]
        return found

    @property
    def false(self) -> list[Finding]:
        """Of speed, that nothing which happened explains."""
        return [f for f in self.findings.findings if f.kind == "speed" and not self._true(f)]

    def _true(self, finding: Finding) -> bool:
        case = self.cases.get(finding.case_id)
        for phone in finding.phones:
            factor = 1.0
            for change in CHANGES:
                there = not change.socs or finding.soc in change.socs
                there &= not change.devices or phone.device_id in change.devices
                if change.name in WHOLE:
                    holds = case is None and there and self.number >= change.night
                else:
                    holds = case is not None and change.holds(self.number, finding.soc, phone.device_id, case)
                factor *= change.factor if holds else 1.0
            if case is not None:
                factor *= prod(d.factor(self.number, finding.soc, case) for d in DRIFTS)
            if (factor - 1) * finding.effect > 0:
                return True
        return False

    def told(self, group: Group) -> set[tuple[str, str]]:
        """(SoC, case) of a group's findings."""
        return {(f.soc, f.case_id) for f in self.findings.findings if f.finding_id in group.findings}

    def showing(self, change: Change) -> set[tuple[str, str]]:
        """(SoC, case) that a change moved."""
        return {
            (row.soc, row.case_id)
            for row in self.findings.series
            if change.holds(self.number, row.soc, "", self.cases[row.case_id])
        }

    @property
    def wrong_numbers(self) -> set[tuple[str, str, str]]:
        """(SoC, case, flag) of what is really wrong by now."""
        return {
            (row.soc, row.case_id, wrong.flag)
            for row in self.findings.series
            for wrong in NUMBERS
            if wrong.holds(self.number, row.soc, self.cases[row.case_id])
        }


WHOLE = ("everything slower, no key changed", "one worn phone")
"""Changes of all cases: the phones' common shift."""


@cache
def judged_month(seed: int) -> dict[int, Night]:
    """Number → night."""
    with TemporaryDirectory(prefix="tilefarm-month-") as folder:
        history = History(f"sqlite:///{folder}/tilefarm.db", Path(folder) / "history")
        inputs = load_inputs(matrix_file(), None)
        month = Month(inputs.matrix, inputs.kernels, seed)
        found: dict[int, Night] = {}
        for results in month.nights():
            history.store(results, usual_clocks(history, results))
            first = first_look(history, results)
            asked = questions(first)
            look = SecondLook(month, results)(asked.wanted, asked.samples, asked.unpaid)
            findings = judge_run(history, results, None, look, first)
            number = number_of(results.run.run_id)
            found[number] = Night(number, findings, {i: c.case for i, c in results.cases.items()})
        history.close()
    return found

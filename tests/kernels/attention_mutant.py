"""What a broken attention kernel is: its edits, the case that shows it, and the rows that it must break."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from orchestrator.domain.case import AxisValue, Case
from orchestrator.planning.kernel_folder import LoadedKernel
from tests.kernels.broken import Edit, load_broken, seed_of
from tests.kernels.harness import Bench, Outcome, make_case

Rows = Callable[[int, int], bool]
"""(head, row) → whether that output row cannot survive on the mutant's case."""


def everywhere(head: int, row: int) -> bool:
    del head, row
    return True


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    fault: str
    edits: tuple[Edit, ...]
    workload: dict[str, AxisValue]
    inputs: str = "normal"
    breaks: Rows = everywhere
    axes: dict[str, AxisValue] = field(default_factory=dict[str, AxisValue])
    unwritten: bool = False
    """Some elements keep the prefilled pattern."""
    race: bool = False
    """Which rows do break depends on the order. On llvmpipe, which runs groups of 4 or 8 invocations one
    after another from barrier to barrier, it is some of those in ``breaks``."""

    @property
    def kernel(self) -> str:
        own = [file for file, _, _ in self.edits if not file.startswith("_")]
        return own[0].split("/")[0] if own else "attention_flash"

    def load(self, folder: Path) -> LoadedKernel:
        return load_broken(folder / self.name, self.kernel, self.edits)


def assert_killed(mutant: Mutant, outcome: Outcome) -> None:
    """A mismatch in all rows that it must break and in no others (a race: in some of them), compared on the
    host, apart from the runner."""
    assert outcome.verdict == "mismatch", (
        f"{mutant.fault}: {outcome.verdict} {outcome.reason} {outcome.end.log}"
    )
    assert (outcome.numerics.unwritten > 0) == mutant.unwritten, mutant.fault
    wrong = ~(np.abs(outcome.values - outcome.reference) <= outcome.allowed)
    found = {(int(head), int(row)) for head, row, _ in np.argwhere(wrong)}
    heads, rows, _ = wrong.shape
    expected = {(h, r) for h in range(heads) for r in range(rows) if mutant.breaks(h, r)}
    assert found, mutant.fault
    assert found <= expected, f"{mutant.fault}: broke {sorted(found - expected)}, too"
    if not mutant.race:
        assert found == expected, f"{mutant.fault}: left {sorted(expected - found)} alone"


def assert_all_killed(
    bench: Bench,
    true: LoadedKernel,
    mutants: Sequence[tuple[Mutant, LoadedKernel]],
    axes: Mapping[str, AxisValue],
) -> None:
    """Mutants of one kernel, which passes the same cases itself, in one job: each case first with the true
    kernel, so that mutants find all programs compiled but their own. Races have other data (``seed_of``)."""
    by_case: dict[str, list[tuple[LoadedKernel, Case, Mutant | None]]] = {}
    for mutant, broken in mutants:
        case = make_case(true.kernel, mutant.workload, inputs=mutant.inputs, axes={**axes, **mutant.axes})
        raced = replace(case, seed=seed_of(mutant))
        by_case.setdefault(case.label, [(true, case, None)]).append((broken, raced, mutant))
    runs = [run for found in by_case.values() for run in found]
    outcomes = bench.run([(kernel, case) for kernel, case, _ in runs])
    for (_, case, mutant), outcome in zip(runs, outcomes, strict=True):
        if mutant is None:
            assert outcome.verdict == "pass", f"{case.label}: {outcome.verdict} {outcome.reason}"
        else:
            assert_killed(mutant, outcome)

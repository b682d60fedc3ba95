"""Kernels broken on purpose by text replacements, and their runs on the three drivers."""

import shutil
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

from orchestrator.domain.case import Case
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from tests.kernels.drivers import driver
from tests.kernels.harness import KERNELS, Bench, Outcome

Edit = tuple[str, str, str]
"""(file below ``kernels/``, old, new); the old text occurs exactly once, so that a mutant whose template has
changed under it fails loudly."""
Outcomes = Callable[[str], Mapping[str, Outcome]]
"""Driver → mutant's name → what became of it."""


class Broken(Protocol):
    """What the runs need of a mutant."""

    @property
    def name(self) -> str: ...
    @property
    def kernel(self) -> str: ...
    def load(self, folder: Path) -> LoadedKernel: ...


class Racing(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def race(self) -> bool: ...


def seed_of(mutant: Racing) -> int:
    """Of its case. A race reads what lay in shared memory: where a case with the same data ran before on the
    same processor, that may be the right values. So each race has data of its own."""
    return 2 + zlib.crc32(mutant.name.encode()) % 1000 if mutant.race else 1


M = TypeVar("M", bound=Broken)
CaseOf = Callable[[M, LoadedKernel, str], Case]
"""The case of a mutant, for a kernel and an API."""


def load_broken(home: Path, kernel: str, edits: Sequence[Edit]) -> LoadedKernel:
    """The kernel with the edits made, in a copy of its folder and of what kernels share."""
    for part in ("_shared", kernel):
        shutil.copytree(KERNELS / part, home / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in edits:
        text = (home / file).read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{home.name}: {file} holds {text.count(old)} times: {old!r}")
        (home / file).write_text(text.replace(old, new), encoding="utf-8")
    return load_kernel(home / kernel)


def mutant_outcomes(folder: Path, of: Mapping[str, Sequence[M]], case_of: CaseOf[M]) -> Outcomes:
    """All mutants of a driver are one job, run when the first is asked for; each is loaded once."""
    loaded: dict[str, LoadedKernel] = {}

    def load(mutant: M) -> LoadedKernel:
        if mutant.name not in loaded:
            loaded[mutant.name] = mutant.load(folder)
        return loaded[mutant.name]

    @cache
    def run(name: str) -> Mapping[str, Outcome]:
        cases = [(load(m), case_of(m, load(m), driver(name).api)) for m in of[name]]
        bench = Bench(folder / f"bench-{name}", name, repeats=0)
        return {m.name: o for m, o in zip(of[name], bench.run(cases), strict=True)}

    return run


def assert_true_kernels_pass(bench: Bench, mutants: Sequence[M], case_of: CaseOf[M]) -> None:
    """The cases that kill the mutants, on the kernels as they are; each once, however many it kills."""
    true = {k: load_kernel(KERNELS / k) for k in {m.kernel for m in mutants}}
    cases: dict[str, tuple[LoadedKernel, Case]] = {}
    for mutant in mutants:
        loaded = true[mutant.kernel]
        case = case_of(mutant, loaded, bench.driver.api)
        cases.setdefault(case.case_id, (loaded, case))
    bench.passing(list(cases.values()))

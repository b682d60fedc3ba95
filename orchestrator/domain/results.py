"""A whole run as results.json keeps it (format 1; docs/wire-formats.md)."""

from dataclasses import dataclass, field
from typing import Literal

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.gate import FailOn
from orchestrator.domain.kernel import Cost, Tolerance
from orchestrator.domain.precision import Precision
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict

RESULTS_FORMAT = 1


@dataclass(frozen=True, slots=True)
class MissedNight:
    """A night that was due and brought no results."""

    night: str
    """UTC date and suite: ``2026-12-01-nightly``."""
    why: str


@dataclass(frozen=True, slots=True)
class RunInfo:
    run_id: str
    suite: str
    started_at: str
    """UTC, ISO 8601, as all times here."""
    tilefarm: str
    """Version."""
    host: str
    command: str
    """Copyable command line that started the run."""
    commit: str = ""
    """Git commit of the matrix's folder, ``+dirty`` with uncommitted changes; empty outside git."""
    finished_at: str = ""
    """Empty while the run is not complete."""
    matrix: str = ""
    """Path of the matrix as given, when it was not ``matrix.yaml``."""
    kernels: list[str] = field(default_factory=list[str])
    """Further kernel folders as given (``--kernels``)."""
    selection: str = ""
    """``-k`` and ``--case`` as one expression; empty: the whole suite."""
    overrides: list[str] = field(default_factory=list[str])
    """``--set`` as given."""
    wanted: list[str] = field(default_factory=list[str])
    """``--device`` as given; empty: every device."""
    max_slowdown: float | None = None
    """``--max-slowdown`` as given."""
    fail_on: FailOn = "wrong"
    """``--fail-on``: what makes the exit code 1."""
    probes: bool = True
    """False: ``--no-probes``."""
    confirm: bool = True
    """False: ``--no-confirm``."""
    phones_per_soc: int | None = None
    """Of each SoC so many phones were to run a case; None: all devices run all cases."""
    compiler: str = ""
    """What made SPIR-V of the shaders, with its options; empty when no case needed it."""
    night: str = ""
    """UTC date and suite of the night that it is the run of: ``2026-12-01-nightly``; empty: of none."""
    missed_nights: list[MissedNight] = field(default_factory=list[MissedNight])
    """Nights of the suite that brought no results, since the last one that did."""

    degraded: list[str] = field(default_factory=list[str])
    """Which worker took nothing from its queues meanwhile and was replaced: device, when, why. What was
    measured counts all the same."""

    @property
    def whole_suite(self) -> bool:
        """False when a person chose a part of its cases: nothing is missing that was not asked for. Of named
        devices (``wanted``) it may be whole; whether it makes a night then, the history says."""
        return not (self.selection or self.overrides)


@dataclass(frozen=True, slots=True)
class CaseInfo:
    """What was planned for a case, the same on every device."""

    case: Case
    code_hash: str
    """Of the rendered shader(s) and the numeric contract."""
    cost: Cost
    tolerance: dict[str, Tolerance]
    workgroup: tuple[int, int, int]
    shared_bytes: int
    """Largest of its passes."""
    dispatches: int
    role: Literal["op", "probe", "canary"] = "op"
    output_shape: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Shape of each checked output, to name the worst element's coordinates."""
    repeats: int = 0
    """Timed executions that were planned; 0 where the case was never dispatched."""
    replays: int = 0
    """Verified executions back to back: how sure the absence of another hash makes (decision 0013)."""
    idle_replays: int = 0
    """Verified executions, each after a rest."""
    min_effect: float = 0.0
    """Smallest relative change of its latency that matters; 0: the rule's (docs/statistics.md)."""


@dataclass(frozen=True, slots=True)
class Pruned:
    """A point that was dropped before dispatch, and why."""

    device_id: str
    case_id: str
    verdict: Literal[Verdict.UNSUPPORTED, Verdict.INVALID]
    reasons: list[str]
    """Machine-readable, both numbers: ``shared_bytes 36864 > 16384``."""


@dataclass(frozen=True, slots=True)
class Excluded:
    """Points that an exclude of matrix.yaml removed."""

    when: str
    count: int
    reason: str
    owner: str
    expires: str


@dataclass(frozen=True, slots=True)
class Missing:
    """A trial that was planned and never came back, or a device that was asked for and never seen."""

    device_id: str
    case_id: str
    why: str


@dataclass(frozen=True, slots=True)
class RunResults:
    run: RunInfo
    devices: list[DeviceRecord]
    cases: dict[str, CaseInfo]
    trials: list[Trial]
    """The last attempt of each (device, case)."""
    pruned: list[Pruned] = field(default_factory=list[Pruned])
    excluded: list[Excluded] = field(default_factory=list[Excluded])
    missing: list[Missing] = field(default_factory=list[Missing])
    precision: list[Precision] = field(default_factory=list[Precision])
    """What each device really delivers, from ``precision_probe``."""
    expectations: list[Expectation] = field(default_factory=list[Expectation])
    previous_run: str = ""
    """Run id that ``changes`` were computed against, or empty."""
    format: int = RESULTS_FORMAT

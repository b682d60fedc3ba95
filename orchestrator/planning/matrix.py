"""What matrix.yaml says, checked: suites of blocks, probes, excludes, expectations. Format: docs/matrix.md.

Reading it is ``matrix_reader.load_matrix``; turning a suite into cases is ``expand``.
"""

from dataclasses import dataclass, field
from datetime import date

from orchestrator.domain.case import AxisValue
from orchestrator.domain.errors import UsageError
from orchestrator.domain.expectation import Expectation
from orchestrator.planning.suggest import did_you_mean, shown

MATRIX_VERSION = 1

Space = dict[str, tuple[AxisValue, ...]]
"""Names in the kernel's order → distinct values in the order of the file; means their product."""


@dataclass(frozen=True, slots=True)
class Exclude:
    """Removes the points that ``when`` selects."""

    when: str
    reason: str
    owner: str
    expires: date
    line: int
    where: str

    def expired(self, today: date) -> bool:
        return today > self.expires


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a case is run and watched; never part of its identity (decision 0013)."""

    repeats: int = 10
    """Timed dispatch sequences."""
    warmup: int = 1
    replays: int = 1
    """Verified sequences, each on fresh buffers."""
    idle_replays: int = 0
    """Further verified sequences, each after a rest of ``idle_ms``."""
    idle_ms: int = 0
    deadline_s: int = 30
    """A case that takes longer, rests aside, is hung."""
    warmup_ms: int = 0
    """Untimed sequences go on until so long after the first one; 0 on software drivers (decision 0017)."""
    min_effect: float = 0.0
    """Smallest relative change of its latency that matters; 0: the rule's (docs/statistics.md)."""

    @property
    def sequences(self) -> int:
        """Executions of a case beside the first and the runner's own timing series."""
        return self.warmup + self.repeats + self.replays + self.idle_replays

    @property
    def rest_ms(self) -> int:
        return self.idle_replays * self.idle_ms


@dataclass(frozen=True, slots=True)
class Block:
    """Points of one kernel: union of the workloads' products, times axes, inputs and seeds.

    Every parameter and axis of the kernel is present: defaults are filled in.
    """

    where: str
    line: int
    kernel: str
    op: str
    workloads: tuple[Space, ...]
    axes: Space
    inputs: tuple[str, ...]
    seeds: tuple[int, ...] = (1,)
    excludes: tuple[Exclude, ...] = ()
    """In force: expired ones are left out."""
    name: str = ""
    linked: frozenset[str] = frozenset()
    """Parameters among whose values a word means the value of the parameter so named (kv_seq: seq)."""
    sampling: Sampling | None = None
    """None: the suite's."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A named list of blocks and how each of its cases is run."""

    name: str
    blocks: tuple[Block, ...]
    description: str = ""
    sampling: Sampling = Sampling()
    """Of blocks that say nothing else."""
    budget_s: float | None = None
    """Planned device time a device that the suite should stay within; None: no budget."""
    min_phones_per_soc: int | None = None
    """Of each SoC so many phones run a case, and a run with fewer says so; None: all phones run all cases."""

    def sampling_of(self, block: Block) -> Sampling:
        return self.sampling if block.sampling is None else block.sampling


@dataclass(frozen=True, slots=True)
class Matrix:
    file: str
    suites: dict[str, Suite]
    excludes: tuple[Exclude, ...] = ()
    """In force: expired ones are left out and stand in ``warnings``."""
    expectations: tuple[Expectation, ...] = ()
    """In force, as ``excludes``."""
    warnings: tuple[str, ...] = field(default=())
    probes: Suite | None = None
    """What runs once a run on every device, beside any suite."""

    def suite(self, name: str) -> Suite:
        """The suite of that name.

        Raises:
            UsageError: there is none.
        """
        if name not in self.suites:
            hint = did_you_mean(name, self.suites)
            raise UsageError(f"{self.file}: suites: there is no suite {shown(name)}.{hint}")
        return self.suites[name]

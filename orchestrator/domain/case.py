"""A point of the matrix: variant × workload × input distribution.

``case_id`` hashes identity only. Driver, OS build, host and people's names of phones are metadata
and never part of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.domain.digest import stable_id

AxisValue = bool | int | str
Axes = Mapping[str, AxisValue]

IDENTITY_VERSION = 1


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel variant on one workload with one input distribution."""

    kernel: str
    op: str
    workload: dict[str, AxisValue]
    """The op's shape, e.g. seq, head_dim, heads, kv_heads, causal."""
    axes: dict[str, AxisValue]
    """The variant, e.g. api, precision, tile, layout, vector, hint."""
    inputs: str = "normal"
    """Name of the input distribution."""
    seed: int = 1

    @property
    def case_id(self) -> str:
        return stable_id(
            {
                "v": IDENTITY_VERSION,
                "kernel": self.kernel,
                "op": self.op,
                "workload": self.workload,
                "axes": self.axes,
                "inputs": self.inputs,
                "seed": self.seed,
            }
        )

    @property
    def workload_id(self) -> str:
        """Cases of one op with equal workload ids compute the same thing from the same inputs."""
        return stable_id({"op": self.op, "workload": self.workload, "inputs": self.inputs, "seed": self.seed})

    @property
    def label(self) -> str:
        """For people: ``attention_flash[precision=fp32 tile=16x16 …] seq=512 … inputs=normal``."""
        return f"{self.kernel}[{_words(self.axes)}] {_words(self.workload)} inputs={self.inputs}"

    @property
    def workload_label(self) -> str:
        return f"{self.op} {_words(self.workload)} inputs={self.inputs}"


def axis_text(value: AxisValue) -> str:
    """An axis value as people write it: booleans as in YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _words(values: Axes) -> str:
    return " ".join(f"{name}={axis_text(value)}" for name, value in values.items())

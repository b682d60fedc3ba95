"""A probe and a canary for tests of planning, beside the toys that stand for ordinary kernels."""

from datetime import date
from pathlib import Path
from textwrap import dedent

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Axis, Buffer, Kernel, Pass
from orchestrator.planning.matrix import Matrix
from orchestrator.planning.matrix_reader import load_matrix
from tests.unit.planning.toy import KERNELS as ORDINARY
from tests.unit.planning.toy import PROBE, TODAY, number


class _Gauge(type(PROBE)):
    """A probe of some bytes, through both APIs."""

    name = "gauge"
    op = "gauge"
    role = "probe"
    params = (Axis("bytes", None, default=1024),)
    axes = (Axis("api", ("gles", "vulkan"), default="gles"), Axis("vector", (1, 2), default=1))

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        count = number(case, "bytes") // 4
        return (Buffer("a", "in", "f32", count), Buffer("b", "out", "f32", count))


class _Bird(type(PROBE)):
    """A canary whose work group can be made too large."""

    name = "bird"
    op = "bird"
    role = "canary"
    latency_factor: object = 4.0
    group = 64
    axes = (Axis("api", ("gles", "vulkan"), default="gles"), Axis("vector", (1, 2), default=1))

    def passes(self, case: Case) -> tuple[Pass, ...]:
        del case
        return (Pass("bird.comp.j2", (self.group, 1, 1), (1, 1, 1), 0, ("a", "b")),)


GAUGE = _Gauge()


def bird(*, latency_factor: object = 4.0, group: int = 64) -> Kernel:
    made = _Bird()
    made.latency_factor, made.group = latency_factor, group
    return made


def kernels(canary: Kernel | None = None) -> dict[str, Kernel]:
    return ORDINARY | {"gauge": GAUGE, "bird": canary or bird()}


def load(folder: Path, text: str, today: date = TODAY) -> Matrix:
    path = folder / "matrix.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return load_matrix(path, kernels(), today)

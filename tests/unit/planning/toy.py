"""Two small kernels and builders of devices for tests of planning."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from textwrap import dedent
from typing import Literal

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.device import DeviceRecord, Soc
from orchestrator.domain.kernel import Array, Axis, Buffer, Cost, Kernel, Pass, Reference, Tolerance
from orchestrator.domain.profile import Profile
from orchestrator.planning.matrix import Matrix
from orchestrator.planning.matrix_reader import load_matrix

TODAY = date(2026, 12, 1)


class _Toy(Kernel):
    """Buffers of seq × head_dim; shared memory is one tile row of floats or halves."""

    name = "attention_toy"
    op = "attention"
    params = (
        Axis("seq", None),
        Axis("kv_seq", None, default="seq"),
        Axis("head_dim", None, default=64),
        Axis("heads", None, default=1),
        Axis("kv_heads", None, default="heads"),
        Axis("causal", (False, True), default=False),
    )
    axes = (
        Axis("api", ("gles", "vulkan"), default="gles"),
        Axis("precision", ("fp32", "fp16_storage"), default="fp32"),
        Axis("tile", ("8x8", "16x16", "32x16", "128x16")),
        Axis("vector", (1, 4), default=4),
    )
    distributions = ("normal", "n1_logit_151", "n6_one_key")

    def invalid(self, case: Case) -> str | None:
        heads, kv_heads = number(case, "heads"), number(case, "kv_heads")
        return f"kv_heads {kv_heads} does not divide heads {heads}" if heads % kv_heads else None

    def features(self, case: Case) -> frozenset[str]:
        return frozenset({"pack_half"} if case.axes["precision"] == "fp16_storage" else ())

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        count = number(case, "seq") * number(case, "head_dim")
        return (Buffer("q", "in", "f32", count), Buffer("o", "out", "f32", count))

    def passes(self, case: Case) -> tuple[Pass, ...]:
        rows, columns = (int(n) for n in str(case.axes["tile"]).split("x"))
        element = 2 if case.axes["precision"] == "fp16_storage" else 4
        shared = (rows + 2 * columns) * number(case, "head_dim") * element
        groups = -(-number(case, "seq") // rows)
        grid = (groups, number(case, "heads"), 1)
        return (Pass("toy.comp.j2", (rows, 1, 1), grid, shared, ("q", "o")),)

    def data_key(self, case: Case) -> str:
        return case.workload_id

    def inputs(self, case: Case) -> Mapping[str, Array]:
        return {"q": np.zeros(number(case, "seq") * number(case, "head_dim"), np.float32)}

    def reference(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Reference]:
        del case
        return {"o": inputs["q"].astype(np.float64)}

    def tolerance(self, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        del case, inputs
        return {"o": Tolerance(0.0, 0.0, 0.0)}

    def cost(self, case: Case) -> Cost:
        pairs = number(case, "seq") * number(case, "kv_seq")
        return Cost(4 * pairs * number(case, "head_dim"), 1024, 4096)


class _Probe(_Toy):
    """No parameters, another op, other values of an axis that both kernels have."""

    name = "copy_probe"
    op = "copy"
    params = ()
    axes = (Axis("api", ("gles",), default="gles"), Axis("vector", (1, 2), default=1))
    distributions = ("normal",)

    def invalid(self, case: Case) -> str | None:
        del case
        return None

    def features(self, case: Case) -> frozenset[str]:
        del case
        return frozenset()

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        del case
        return (Buffer("a", "in", "f32", 1024), Buffer("b", "out", "f32", 1024))

    def passes(self, case: Case) -> tuple[Pass, ...]:
        del case
        return (Pass("copy.comp.j2", (64, 1, 1), (16, 1, 1), 0, ("a", "b")),)

    def cost(self, case: Case) -> Cost:
        del case
        return Cost(0, 8192, 8192)


class Shaped(_Toy):
    """Passes, buffers and features as given."""

    def __init__(
        self, passes: tuple[Pass, ...], buffers: tuple[Buffer, ...], features: frozenset[str] = frozenset()
    ) -> None:
        self._passes, self._buffers, self._features = passes, buffers, features

    def passes(self, case: Case) -> tuple[Pass, ...]:
        del case
        return self._passes

    def buffers(self, case: Case) -> tuple[Buffer, ...]:
        del case
        return self._buffers

    def features(self, case: Case) -> frozenset[str]:
        del case
        return self._features


TOY = _Toy()
PROBE = _Probe()
KERNELS: dict[str, Kernel] = {TOY.name: TOY, PROBE.name: PROBE}


def number(case: Case, name: str) -> int:
    value = case.workload[name]
    assert isinstance(value, int)
    return value


def write(folder: Path, text: str) -> Path:
    path = folder / "matrix.yaml"
    path.write_text(dedent(text), encoding="utf-8")
    return path


def load(folder: Path, text: str, today: date = TODAY) -> Matrix:
    return load_matrix(write(folder, text), KERNELS, today)


PHONE_LIMITS = {
    "shared_bytes": 16_384,
    "invocations": 128,
    "group_x": 128,
    "group_y": 128,
    "group_z": 64,
    "count_x": 65_535,
    "count_y": 65_535,
    "count_z": 65_535,
    "storage_bytes": 1 << 27,
    "storage_bindings": 4,
}


def profile(
    *, limits: Mapping[str, int] | None = None, features: Mapping[str, bool] | None = None, api: str = "gles"
) -> Profile:
    return Profile(
        api=api,
        vendor="Mesa",
        renderer="llvmpipe (LLVM 15.0.6, 256 bits)",
        version="OpenGL ES 3.2 Mesa 22.3.6",
        limits=dict(PHONE_LIMITS if limits is None else limits),
        features=dict({"pack_half": True} if features is None else features),
    )


def device(
    device_id: str = "local-1",
    *profiles: Profile,
    soc: str = "llvmpipe",
    transport: Literal["local", "adb"] = "local",
    resource: str = "cpu@host",
) -> DeviceRecord:
    return DeviceRecord(
        device_id=device_id,
        transport=transport,
        serial=device_id,
        name=device_id,
        soc=Soc(soc, "Mesa", soc, "renderer", "certain"),
        profiles=list(profiles) or [profile()],
        resource=resource,
        host="host",
    )

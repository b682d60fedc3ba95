"""A kernel.py that contradicts itself is refused on the host, by name, before any device sees it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Buffer, Tolerance
from orchestrator.execution.prepare import Prepared, Preparer
from orchestrator.execution.shaders import Shaders
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning.matrix import Sampling
from orchestrator.storage.blobs import BlobStore
from tests.unit.execution.toy_kernel import Doubling, load, point

Change = Callable[[Any], Any]


def raises(_value: Any) -> Any:
    raise ZeroDivisionError("of the kernel's own")


@pytest.fixture
def prepare(tmp_path: Path) -> Callable[..., Any]:
    def run(precision: str = "fp32", **changed: Change) -> Any:
        kernel = Doubling()
        kernel.changed = changed
        store = BlobStore((tmp_path / "blobs").as_uri())
        loaded, case = load(tmp_path / "kernels", kernel), point(precision=precision)
        with Shaders(store, SpirvCompiler(tmp_path / "spirv")) as shaders:
            preparer = Preparer(store, shaders)
            return preparer.prepare(loaded, case, preparer.render(loaded, case), Sampling())

    return run


def test_the_toy_itself_is_sound(prepare: Callable[..., Any]) -> None:
    assert isinstance(prepare(), Prepared)
    assert isinstance(prepare("fp16_storage"), Prepared)


CONTRADICTIONS: list[tuple[str, Change, str]] = [
    ("inputs", lambda _: {}, "inputs gives []; the in and inout buffers are ['x']"),
    ("inputs", lambda v: v | {"y": v["x"]}, "inputs gives ['x', 'y']"),
    ("inputs", lambda v: {"x": v["x"][:-1]}, "x has 4 elements, its buffer 5"),
    ("reference", lambda _: {}, "reference gives []; out and inout buffers are ['o']"),
    ("reference", lambda v: {"x": v["o"]}, "reference gives ['x']"),
    ("reference", lambda v: {"o": np.append(v["o"], 1.0)}, "o has 6 elements, its buffer 5"),
    ("reference", lambda v: {"o": v["o"].astype(np.float32)}, "o is float32, not float64"),
    ("tolerance", lambda _: {}, "reference gives ['o'] and tolerance []"),
    ("tolerance", lambda v: v | {"x": v["o"]}, "tolerance ['o', 'x']"),
    ("tolerance", lambda v: {"o": Tolerance(float("nan"), 0.0, 0.0)}, "three finite numbers"),
    ("tolerance", lambda v: {"o": Tolerance(0.0, float("inf"), 0.0)}, "three finite numbers"),
    ("tolerance", lambda v: {"o": Tolerance(0.0, 0.0, -1.0)}, "three finite numbers"),
    ("passes", lambda _: (), "passes is empty"),
    ("passes", lambda v: (replace(v[0], buffers=("x", "oo")),), "double.comp.j2 binds ['oo']"),
    ("buffers", lambda v: (*v, v[0]), "names one twice"),
    ("buffers", lambda v: (*v, Buffer("s", "scratch", "f32", 5)), "no pass binds ['s']"),
    ("kept", lambda _: ("x",), "kept gives ['x']; out and inout buffers without a reference are []"),
    ("kept", lambda _: ("o",), "kept gives ['o']"),
    ("buffers", lambda v: (v[0], Buffer("o", "scratch", "f32", 5)), "out and inout buffers are []"),
]


@pytest.mark.parametrize(("method", "change", "says"), CONTRADICTIONS)
def test_parts_that_contradict_each_other(
    prepare: Callable[..., Any], method: str, change: Change, says: str
) -> None:
    with pytest.raises(KernelFolderError) as caught:
        prepare(**{method: change})
    assert says in str(caught.value)
    assert "doubling" in str(caught.value)
    assert "n=5" in str(caught.value)


def gives(values: np.ndarray[Any, np.dtype[Any]]) -> Change:
    def inputs(_value: Any) -> Any:
        return {"x": values}

    return inputs


def test_inputs_that_are_not_rounded_are_refused(prepare: Callable[..., Any]) -> None:
    """The reference would be of 0.1, the device would see the half next to it."""
    exact = np.full(5, 0.1)
    with pytest.raises(KernelFolderError, match="inputs: x is not rounded to f16"):
        prepare("fp16_storage", inputs=gives(exact))
    rounded = exact.astype(np.float16).astype(np.float64)
    assert isinstance(prepare("fp16_storage", inputs=gives(rounded)), Prepared)


def test_inputs_too_large_for_the_storage_type_are_refused(prepare: Callable[..., Any]) -> None:
    with pytest.raises(KernelFolderError, match="not rounded to f16"):
        prepare("fp16_storage", inputs=gives(np.full(5, 70_000.0)))


METHODS = ["inputs", "reference", "tolerance", "passes", "buffers", "cost", "data_key"]


@pytest.mark.parametrize("method", METHODS)
def test_a_kernels_own_failure_names_method_and_case(prepare: Callable[..., Any], method: str) -> None:
    with pytest.raises(KernelFolderError) as caught:
        prepare(**{method: raises})
    assert "ZeroDivisionError: of the kernel's own" in str(caught.value)
    assert "doubling" in str(caught.value)

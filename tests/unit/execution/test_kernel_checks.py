"""A kernel.py that contradicts itself is refused on the host, by name, before any device sees it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Buffer, Tolerance
from orchestrator.execution.kernel_checks import check_sample
from orchestrator.execution.prepare import Prepared, Preparer, data_key
from orchestrator.execution.shaders import Shaders
from orchestrator.execution.shared_memory import declared_shared_bytes
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning.matrix import Sampling
from orchestrator.storage.blobs import BlobStore
from tests.unit.execution.toy_kernel import TEMPLATE, Doubling, load, point

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
            data_key(kernel, case)
            rendered = preparer.render(loaded, case)
            return preparer.prepare(loaded, case, rendered, Sampling(), preparer.data(kernel, case))

    return run


def test_the_toy_itself_is_sound(prepare: Callable[..., Any]) -> None:
    assert isinstance(prepare(), Prepared)
    assert isinstance(prepare("fp16_storage"), Prepared)


CASE = " (case doubling[api=gles precision=fp32 tile=8] n=5 inputs=normal)"
NAN, INFINITE, NEGATIVE = (Tolerance(bound, 0.0, 0.0) for bound in (float("nan"), float("inf"), -1.0))
CONTRADICTIONS: list[tuple[str, Change, str]] = [
    ("inputs", lambda _: {}, "inputs gives []; the in and inout buffers are ['x']"),
    ("inputs", lambda v: v | {"y": v["x"]}, "inputs gives ['x', 'y']; the in and inout buffers are ['x']"),
    ("inputs", lambda v: {"x": v["x"][:-1]}, "inputs: x has 4 elements, its buffer 5; give as many"),
    ("inputs", lambda v: {"x": list(v["x"])}, "inputs: x is a list; give a numpy array"),
    ("inputs", lambda v: {"x": v["x"].astype(str)}, "inputs: x holds <U32; give real numbers"),
    ("inputs", lambda v: {"x": v["x"] + 0j}, "inputs: x holds complex64; give real numbers"),
    ("reference", lambda _: {}, "reference gives []; out and inout buffers are ['o']"),
    ("reference", lambda v: {"x": v["o"]}, "reference gives ['x']; out and inout buffers are ['o']"),
    ("reference", lambda v: {"o": 1.0}, "reference: o is a float; give a numpy array"),
    (
        "reference",
        lambda v: {"o": np.append(v["o"], 1.0)},
        "reference: o has 6 elements, its buffer 5; give as many",
    ),
    (
        "reference",
        lambda v: {"o": v["o"].astype(np.float32)},
        "reference: o is float32; compute and return float64",
    ),
    (
        "buffers",
        lambda v: (v[0], Buffer("o", "scratch", "f32", 5)),
        "reference gives ['o']; out and inout buffers are []",
    ),
    ("tolerance", lambda _: {}, "reference gives ['o'] and tolerance []"),
    ("tolerance", lambda v: v | {"x": v["o"]}, "reference gives ['o'] and tolerance ['o', 'x']"),
    (
        "tolerance",
        lambda _: {"o": 1e-3},
        "tolerance: o is a float; give a Tolerance(atol, rtol, nmse)",
    ),
    ("tolerance", lambda _: {"o": NAN}, "tolerance: o: atol is nan; give a finite number of 0 or more"),
    ("tolerance", lambda _: {"o": INFINITE}, "tolerance: o: atol is inf; give a finite number of 0 or more"),
    ("tolerance", lambda _: {"o": NEGATIVE}, "tolerance: o: atol is -1.0; give a finite number of 0 or more"),
    (
        "tolerance",
        lambda v: {"o": replace(v["o"], nmse="1e-6")},
        "tolerance: o: nmse is '1e-6'; give a finite number of 0 or more",
    ),
    ("kept", lambda _: ("x",), "kept gives ['x']; out and inout buffers without a reference are []"),
    ("kept", lambda _: ("o",), "kept gives ['o']; out and inout buffers without a reference are []"),
    (
        "passes",
        lambda v: (replace(v[0], workgroup=(4, 2, 1)),),
        "double.comp.j2 declares a work group of (4, 1, 1) and its pass one of (4, 2, 1); "
        "write local_size with {{ workgroup[0] }}, {{ workgroup[1] }}, {{ workgroup[2] }}",
    ),
    (
        "passes",
        lambda v: (replace(v[0], buffers=("x",)),),
        "double.comp.j2 declares binding 1; its pass binds 1 buffers, from 0 on",
    ),
]


@pytest.mark.parametrize(("method", "change", "says"), CONTRADICTIONS)
def test_parts_that_contradict_each_other(
    prepare: Callable[..., Any], method: str, change: Change, says: str
) -> None:
    with pytest.raises(KernelFolderError) as caught:
        prepare(**{method: change})
    assert str(caught.value) == f"kernels/doubling/kernel.py: {says}{CASE}"


@pytest.mark.parametrize(
    "text", ["", "// only a remark\n", "/* two\nlines */\n", "{% if false %}void main() {}{% endif %}\n"]
)
def test_a_template_that_renders_to_nothing_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(KernelFolderError) as caught:
        check_sample(load(tmp_path, Doubling(), text))
    assert str(caught.value).startswith(
        f"{tmp_path}/doubling/kernel.py: double.comp.j2 renders to nothing; "
        "is all of it inside a condition or a macro? (a small case: doubling["
    )


@pytest.mark.parametrize(
    ("declarations", "found"),
    [
        ("", 0),
        ("shared float a[64];\nshared mediump uvec4 b[2 * (3 + 1)];\nshared float16_t c;", 256 + 128 + 2),
        ("const int N = 8;\nconst uint ROWS = 3u;\nshared vec3 a[N * N / 2][ROWS];", 12 * 32 * 3),
        ("const int N = M - 1;\nconst int M = 5;\nshared int a[N];", 16),
        ("layout(constant_id = 0) const int N = 1;\nshared float a[N];", None),
        ("const int N = N;\nshared float a[N];", None),
        ("shared float a[SIZE];", None),
        ("shared float a[4 << 1];", None),
        ("shared float a[(4];", None),
        ("shared float a[8 / (2 - 2)];", None),
        ("shared Row a[4];", None),
        ("#ifdef WIDE\nshared float a[4];\n#endif", None),
        ("shared float a[4], b[4];", None),
    ],
)
def test_shared_memory_is_added_up_where_plain_arithmetic_tells(declarations: str, found: int | None) -> None:
    assert declared_shared_bytes(f"#version 310 es\n{declarations}\nvoid main() {{}}\n") == found


def test_a_pass_and_its_text_agree_about_shared_memory(tmp_path: Path) -> None:
    """The toy's passes say 32 bytes; of a text that declares none nothing is said."""
    text = TEMPLATE.replace("void main", "shared float tile[{}];\nvoid main")
    check_sample(load(tmp_path / "none", Doubling(), TEMPLATE))
    check_sample(load(tmp_path / "same", Doubling(), text.replace("{}", "8")))
    with pytest.raises(KernelFolderError) as caught:
        check_sample(load(tmp_path / "other", Doubling(), text.replace("{}", "2 * 8")))
    assert str(caught.value).startswith(
        f"{tmp_path}/other/doubling/kernel.py: double.comp.j2 declares 64 bytes of shared memory and its "
        "pass 32; points are pruned by the latter, make both the same (a small case: doubling["
    )


def test_sizes_that_a_compiler_works_out_are_left_to_it(tmp_path: Path) -> None:
    text = TEMPLATE.replace("local_size_x = {{ workgroup[0] }}", "local_size_x = SIZE")
    check_sample(load(tmp_path / "name", Doubling(), text))
    check_sample(load(tmp_path / "remark", Doubling(), TEMPLATE + "// layout(binding = 7) buffer Z\n"))


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

"""Rendering: StrictUndefined, precise errors, shared templates, and a code hash that moves when it should."""

import subprocess
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from orchestrator.domain.case import AxisValue
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Pass
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernel
from orchestrator.planning.render import render_case
from tests.kernels.harness import all_kernels, make_case

KERNEL = """
from orchestrator.domain.kernel import Axis, Buffer, Cost, Kernel, Pass, Tolerance

class Small(Kernel):
    name = "small"
    op = "copy"
    params = (Axis("count", None, default=64),)
    axes = (Axis("api", ("gles",), "gles"), Axis("precision", ("fp32",), "fp32"), Axis("unroll", (1, 2), 1))
    distributions = ("normal",)
    tolerance_version = "VERSION"

    def buffers(self, case):
        return (Buffer("a", "in", "f32", 64), Buffer("b", "out", "DTYPE", 64))

    def passes(self, case):
        return (Pass("small.comp.j2", (GROUP, 1, 1), (4, 1, 1), 0, ("a", "b"), {"extra": 7}),)

    def data_key(self, case): return "k"
    def inputs(self, case): return {}
    def reference(self, case, inputs): return {}
    def tolerance(self, case, inputs): return {"b": Tolerance(0, 0, 0)}
    def cost(self, case): return Cost(1, 1, 1)

kernel = Small()
"""
TEMPLATE = "#version 310 es\n// {{ count }} {{ unroll }} {{ workgroup[0] }} {{ extra }}\nvoid main() {}\n"


def _load(
    folder: Path, template: str = TEMPLATE, *, group: int = 16, dtype: str = "f32", version: str = "1"
) -> LoadedKernel:
    home = folder / "small"
    home.mkdir(parents=True)
    text = KERNEL.replace("GROUP", str(group)).replace("DTYPE", dtype).replace("VERSION", version)
    (home / "kernel.py").write_text(text, encoding="utf-8")
    (home / "small.comp.j2").write_text(template, encoding="utf-8")
    return load_kernel(home)


def _hash(loaded: LoadedKernel, **axes: AxisValue) -> str:
    return render_case(loaded, make_case(loaded.kernel, {}, axes=axes)).code_hash


def test_templates_see_parameters_axes_workgroup_and_context(tmp_path: Path) -> None:
    loaded = _load(tmp_path)
    (only,) = render_case(loaded, make_case(loaded.kernel, {"count": 5}, axes={"unroll": 2})).passes
    assert only.glsl == "#version 310 es\n// 5 2 16 7\nvoid main() {}\n"
    assert (only.workgroup, only.grid, only.buffers) == ((16, 1, 1), (4, 1, 1), ("a", "b"))


def test_code_hash_follows_code_and_contract_and_nothing_else(tmp_path: Path) -> None:
    base = _hash(_load(tmp_path / "base"))
    assert base == _hash(_load(tmp_path / "again"))
    assert base == _hash(_load(tmp_path / "blanks", TEMPLATE.replace("{}", "{}   ") + "\n\n"))
    others = {
        _hash(_load(tmp_path / "text", TEMPLATE.replace("{}", "{ }"))),
        _hash(_load(tmp_path / "group", group=32)),
        _hash(_load(tmp_path / "dtype", dtype="f16")),
        _hash(_load(tmp_path / "tolerance", version="2")),
        _hash(_load(tmp_path / "axis"), unroll=2),
    }
    assert len(others | {base}) == 6


def test_gles_code_without_constants_keeps_the_hash_that_it_had_before_vulkan(tmp_path: Path) -> None:
    """As computed by the version that knew GLES only: a history must not end because Vulkan came."""
    assert _hash(_load(tmp_path)) == "31951639a309068b"


CONSTANT = "#version 310 es\n{{ constants }}\n// {{ api }}\nvoid main() {}\n"


def _constant(folder: Path, passed: str) -> LoadedKernel:
    """The small kernel on both APIs, with further arguments to its pass."""
    loaded = _load(folder, CONSTANT)
    text = (loaded.folder / "kernel.py").read_text().replace('("gles",)', '("gles", "vulkan")')
    text = text.replace('{"extra": 7}', f'{{"extra": 7}}, {passed}').replace("Pass,", "Pass, Subgroups,")
    (loaded.folder / "kernel.py").write_text(text, encoding="utf-8")
    return load_kernel(loaded.folder)


def test_constants_are_literals_on_gles_and_specialised_on_vulkan(tmp_path: Path) -> None:
    loaded = _constant(tmp_path, 'constants={"SEQ": 512, "ROWS": 0}')
    (gles,) = render_case(loaded, make_case(loaded.kernel, {})).passes
    assert gles.glsl == (
        "#version 310 es\nconst int SEQ = 512;\nconst int ROWS = 0;\n// gles\nvoid main() {}\n"
    )
    assert gles.constants == ()
    rendered = render_case(loaded, make_case(loaded.kernel, {}, axes={"api": "vulkan"}))
    assert rendered.api == "vulkan"
    assert rendered.passes[0].constants == (512, 0)
    assert rendered.passes[0].glsl == (
        "#version 310 es\nlayout(constant_id = 0) const int SEQ = 1;\n"
        "layout(constant_id = 1) const int ROWS = 1;\n// vulkan\nvoid main() {}\n"
    )


def test_the_code_hash_follows_constants_subgroups_and_api(tmp_path: Path) -> None:
    """On Vulkan the text is the same for every value: the values are in the hash all the same."""
    passed = (
        "constants={}",
        'constants={"N": 3}',
        'constants={"N": 4}',
        "subgroups=Subgroups(16, 1)",
        "subgroups=Subgroups(8, 2)",
    )
    found = {
        _hash(_constant(tmp_path / f"{number}-{api}", words), api=api)
        for number, words in enumerate(passed)
        for api in ("gles", "vulkan")
    }
    assert len(found) == 2 * len(passed)
    two = _constant(tmp_path / "order", 'constants={"A": 3, "B": 4}')
    turned = _constant(tmp_path / "turned", 'constants={"B": 3, "A": 4}')
    assert _hash(two, api="vulkan") != _hash(turned, api="vulkan")


@pytest.mark.parametrize("constant", ['"N": -1', '"N": 2**31', '"1N": 3', '"N;": 3', '"": 3'])
def test_a_constant_that_is_no_glsl_int_is_refused(tmp_path: Path, constant: str) -> None:
    loaded = _constant(tmp_path, f"constants={{{constant}}}")
    with pytest.raises(KernelFolderError, match=r"small\.comp\.j2: constant .* give a GLSL name"):
        render_case(loaded, make_case(loaded.kernel, {}))


VALUE = "#version 310 es\n{{ values }}\nvoid main() {}\n"


def _value(folder: Path, passed: str) -> LoadedKernel:
    loaded = _constant(folder, passed)
    (loaded.folder / "small.comp.j2").write_text(VALUE, encoding="utf-8")
    return load_kernel(loaded.folder)


def test_values_are_uniforms_on_gles_and_push_constants_on_vulkan(tmp_path: Path) -> None:
    loaded = _value(tmp_path, 'values={"TILE": 4294967295, "LAST": 0}')
    (gles,) = render_case(loaded, make_case(loaded.kernel, {})).passes
    assert gles.glsl == (
        "#version 310 es\nuniform highp uint tilefarm_values[2];\n#define TILE tilefarm_values[0]\n"
        "#define LAST tilefarm_values[1]\nvoid main() {}\n"
    )
    (vulkan,) = render_case(loaded, make_case(loaded.kernel, {}, axes={"api": "vulkan"})).passes
    assert vulkan.glsl == (
        "#version 310 es\nlayout(push_constant) uniform TilefarmValues {\n    uint TILE;\n    uint LAST;\n"
        "};\nvoid main() {}\n"
    )
    assert gles.values == vulkan.values == (4294967295, 0)
    assert gles.constants == vulkan.constants == ()


def test_passes_of_one_case_keep_their_texts_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One context for all of them: values change no text, but their order does, as everything else."""
    loaded = _value(tmp_path, 'values={"N": 0, "M": 1}')
    (step,) = loaded.kernel.passes(make_case(loaded.kernel, {}))
    (loaded.folder / "small.comp.j2").write_text("{{ values }}{{ constants }}{{ workgroup[0] }}\n")
    steps = (
        *(replace(step, grid=(n, 1, 1), values={"N": n, "M": 2 * n}) for n in (5, 6)),
        replace(step, values={"M": 0, "N": 1}),
        replace(step, constants={"C": 3}),
        replace(step, constants={"C": 4}),
        replace(step, workgroup=(8, 1, 1)),
    )

    def passes_of(kernel: object, case: object) -> tuple[Pass, ...]:
        del kernel, case
        return steps

    monkeypatch.setattr(type(loaded.kernel), "passes", passes_of)
    passes = render_case(loaded, make_case(loaded.kernel, {})).passes
    assert [p.values for p in passes] == [(5, 10), (6, 12), (0, 1), (0, 1), (0, 1), (0, 1)]
    assert [p.grid[0] for p in passes][:3] == [5, 6, 4]
    assert passes[0].glsl == passes[1].glsl
    assert len({p.glsl for p in passes}) == 5


def test_a_pass_without_values_declares_none(tmp_path: Path) -> None:
    loaded = _value(tmp_path, "values={}")
    (only,) = render_case(loaded, make_case(loaded.kernel, {})).passes
    assert (only.glsl, only.values) == ("#version 310 es\n\nvoid main() {}\n", ())


def test_the_code_hash_follows_values_though_the_text_does_not(tmp_path: Path) -> None:
    passed = ("values={}", 'values={"N": 3}', 'values={"N": 4}')
    loaded = [_value(tmp_path / str(number), words) for number, words in enumerate(passed)]
    for api in ("gles", "vulkan"):
        assert len({_hash(kernel, api=api) for kernel in loaded}) == len(passed)
        cases = [make_case(kernel.kernel, {}, axes={"api": api}) for kernel in loaded[1:]]
        three, four = (
            render_case(kernel, case).passes for kernel, case in zip(loaded[1:], cases, strict=True)
        )
        assert three[0].glsl == four[0].glsl


@pytest.mark.parametrize("value", ['"N": -1', '"N": 2**32', '"1N": 3', '"N;": 3', '"": 3'])
def test_a_value_that_is_no_glsl_uint_is_refused(tmp_path: Path, value: str) -> None:
    loaded = _value(tmp_path, f"values={{{value}}}")
    with pytest.raises(KernelFolderError, match=r"small\.comp\.j2: value .* give a GLSL name"):
        render_case(loaded, make_case(loaded.kernel, {}))


def test_values_and_constants_do_not_share_names_and_are_few(tmp_path: Path) -> None:
    loaded = _value(tmp_path / "same", 'constants={"N": 3}, values={"N": 3}')
    with pytest.raises(KernelFolderError, match="that no constant has"):
        render_case(loaded, make_case(loaded.kernel, {}))
    loaded = _value(tmp_path / "many", 'values={f"N{i}": i for i in range(33)}')
    with pytest.raises(KernelFolderError, match="33 values of a pass; 32 at most"):
        render_case(loaded, make_case(loaded.kernel, {}))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("one\n{{ nonsuch }}\n", r"small\.comp\.j2:2: 'nonsuch' is undefined.*unroll, values, workgroup"),
        ("one\ntwo\n{% if %}\n", r"small\.comp\.j2:3: "),
        ("{{ 1 // 0 }}\n", r"small\.comp\.j2:1: .*zero"),
        ('{% include "smal.comp.j2" %}\n', r"template 'smal\.comp\.j2' not found\. Did you mean"),
        ("// n\u00e4her\n", r"renders U\+00E4; shader text is ASCII"),
    ],
)
def test_template_errors_say_where_and_what_next(tmp_path: Path, template: str, message: str) -> None:
    loaded = _load(tmp_path, template)
    with pytest.raises(KernelFolderError, match=message):
        render_case(loaded, make_case(loaded.kernel, {}))


def test_shared_folder_beside_the_kernels_is_reachable(tmp_path: Path) -> None:
    (tmp_path / "_shared").mkdir()
    (tmp_path / "_shared" / "part.glsl.j2").write_text("// {{ extra }} from shared\n", encoding="utf-8")
    loaded = _load(tmp_path, '{% include "part.glsl.j2" %}\nvoid main() {}\n')
    (only,) = render_case(loaded, make_case(loaded.kernel, {})).passes
    assert only.glsl.startswith("// 7 from shared\n")


@pytest.mark.parametrize("name", ["attention_naive", "attention_flash"])
def test_every_variant_of_a_kernel_is_valid_glsl(tmp_path: Path, name: str) -> None:
    """Compiled by the reference compiler, head_dim aligned and not, even and odd."""
    loaded = all_kernels()[name]
    files: list[str] = []
    choices = product(
        (5, 6, 8), ("fp32", "fp16_storage"), ("row", "column"), (1, 4), ("highp", "mediump"), (False, True)
    )
    for number, (head_dim, precision, layout, vector, hint, causal) in enumerate(choices):
        workload: dict[str, AxisValue] = {"seq": 33, "head_dim": head_dim, "heads": 2, "causal": causal}
        axes = {"tile": "8x8", "precision": precision, "layout": layout, "vector": vector, "hint": hint}
        for step in render_case(loaded, make_case(loaded.kernel, workload, axes=axes)).passes:
            path = tmp_path / f"{number}-{step.template.removesuffix('.j2')}"
            path.write_text(step.glsl, encoding="ascii")
            files.append(str(path))
    done = subprocess.run(["glslangValidator", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if "ERROR" in line)

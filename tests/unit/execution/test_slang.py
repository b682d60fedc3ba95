"""Slang templates: slangc's modules and errors, the cache, where each kind goes, and life without slangc."""

import re
from pathlib import Path

import pytest

from orchestrator.domain.case import Case
from orchestrator.domain.errors import NotInstalled, ShaderRefused
from orchestrator.domain.kernel import Kernel, Pass
from orchestrator.domain.verdict import Verdict
from orchestrator.execution import slang
from orchestrator.execution.module_cache import MAGIC, ModuleCache
from orchestrator.execution.shaders import Shaders
from orchestrator.execution.slang import SlangCompiler
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning import prune, slangc
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.render import render_case
from orchestrator.storage.blobs import BlobStore
from tests.unit.execution.toy_kernel import Doubling, load, point

GOOD = """RWStructuredBuffer<float> o;

[shader("compute")]
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID)
{
    o[id.x] = 2.0 * o[id.x];
}
"""


class SlangDoubling(Doubling):
    """The toy kernel, with a template in Slang."""

    def passes(self, case: Case) -> tuple[Pass, ...]:
        (only,) = super().passes(case)
        return (Pass("double.slang.j2", only.workgroup, only.grid, 0, only.buffers, constants={"N": 5}),)


def slang_kernel(folder: Path, text: str, kernel: Kernel | None = None) -> LoadedKernel:
    loaded = load(folder, kernel or SlangDoubling(), "")
    (loaded.folder / "double.slang.j2").write_text(text, encoding="utf-8")
    return loaded


def _another_version(program: Path) -> str:
    return f"2030.1 of {program}"


def _no_package(name: str) -> None:
    del name


@pytest.fixture
def compiler(tmp_path: Path) -> SlangCompiler:
    return SlangCompiler(ModuleCache(tmp_path / "spirv"))


def test_a_module_is_made_once_and_kept(
    tmp_path: Path, compiler: SlangCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = compiler.compile(GOOD, where="a")
    assert module.startswith(MAGIC)
    (entry,) = (p for p in (tmp_path / "spirv").rglob("*") if p.is_file())
    with monkeypatch.context() as broken:
        broken.setattr(slang, "_run", None)
        assert compiler.compile(GOOD, where="b") == module
        broken.setattr(slang, "OPTIONS", (*slang.OPTIONS, "-g"))
        with pytest.raises(TypeError):
            compiler.compile(GOOD, where="other options are another module")
        broken.setattr(slang, "slangc_version", _another_version)
        with pytest.raises(TypeError):
            compiler.compile(GOOD, where="so is another version")
    entry.write_bytes(entry.read_bytes()[:-4])
    assert compiler.compile(GOOD, where="an entry cut short is made again") == module


def test_a_module_says_nothing_that_older_validators_refuse(compiler: SlangCompiler) -> None:
    """Debian 12's layer knows no source language 11, Slang."""
    words = memoryview(compiler.compile(GOOD, where="x")).cast("I")
    at, languages = 5, list[int]()
    while at < len(words):
        if words[at] & 0xFFFF == 3:
            languages.append(words[at + 1])
        at += words[at] >> 16
    assert languages == [0]


def test_errors_name_the_line_and_what_is_wrong(compiler: SlangCompiler) -> None:
    wrong = GOOD.replace("2.0 *", "two *").replace("id.x] =", "id.x] = 3 +")
    with pytest.raises(ShaderRefused) as caught:
        compiler.compile(wrong, where="kernels/x/x.slang.j2")
    assert str(caught.value).startswith(
        "kernels/x/x.slang.j2: slangc, line 7 of the rendered shader: undefined identifier: "
        "undefined identifier 'two'.\n  7 |     o[id.x] = 3 + two * o[id.x];"
    )


def test_an_error_without_a_place_is_told_as_it_is(compiler: SlangCompiler) -> None:
    with pytest.raises(ShaderRefused, match=r"(?s)^x: slangc: .*entry point name 'main'"):
        compiler.compile(GOOD.replace("main", "other"), where="x")


def test_templates_go_to_the_compiler_of_their_name_and_errors_to_their_line(tmp_path: Path) -> None:
    store, compiler = BlobStore(str(tmp_path / "blobs")), SpirvCompiler(tmp_path / "spirv")
    loaded = slang_kernel(tmp_path / "good", "{{ constants }}\n" + GOOD)
    rendered = render_case(loaded, point(5, api="vulkan"))
    (step,) = rendered.passes
    assert step.is_slang
    assert step.glsl.startswith("[vk::constant_id(0)] const int N = 1;\n")
    assert step.constants == (5,)
    with Shaders(store, compiler) as shaders:
        shaders.begin(loaded, rendered)
        assert store.get(shaders.digest(loaded, rendered, step)).startswith(MAGIC)
    bad = slang_kernel(tmp_path / "bad", "{# a comment #}\n\n" + GOOD.replace("2.0 *", "two *"))
    rendered = render_case(bad, point(5, api="vulkan"))
    with Shaders(store, compiler) as shaders, pytest.raises(ShaderRefused) as caught:
        shaders.digest(bad, rendered, rendered.passes[0])
    assert re.match(r"\S*doubling/double\.slang\.j2:9: slangc, line 7 of", str(caught.value))


def test_slang_on_gles_is_a_mistake_of_the_kernel(tmp_path: Path) -> None:
    loaded = slang_kernel(tmp_path, GOOD)
    with pytest.raises(Exception, match=r"double\.slang\.j2: Slang is compiled to SPIR-V; refuse api gles"):
        render_case(loaded, point(5))


def test_without_slangc_its_cases_are_dropped_with_what_to_install(
    compiler: SlangCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "slangc is not installed: pip install --no-deps slangtorch"
    case = point(5, api="vulkan")
    assert not isinstance(prune.check(SlangDoubling(), case), prune.Drop)
    monkeypatch.setattr(slangc, "find_spec", _no_package)
    monkeypatch.setenv("PATH", "")
    slangc.find_slangc.cache_clear()
    try:
        assert prune.check(SlangDoubling(), case) == prune.Drop(Verdict.INVALID, (asked,))
        assert not isinstance(prune.check(Doubling(), case), prune.Drop)
        with pytest.raises(NotInstalled, match="slangtorch"):
            compiler.compile(GOOD, where="x")
    finally:
        slangc.find_slangc.cache_clear()

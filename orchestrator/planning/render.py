"""Render a case: GLSL text of every pass, and the code hash.

A template sees the workload parameters, the axes, ``api``, ``workgroup``, ``shared_bytes``, ``constants``,
``values`` and the pass's own context, the later ones winning. ``constants`` declares the pass's shape
constants: literals on GLES, specialisation constants 0, 1, … on Vulkan. ``values`` declares what only its
dispatch knows (decision 0019): an array of uniforms on GLES, a block of push constants on Vulkan. An
undefined name is an error (StrictUndefined). Output is ASCII with LF and ends with one LF; trailing blanks
are removed, so that the code hash depends on the code. A template whose name ends in ``.slang.j2`` is Slang
(decision 0020), for Vulkan only: its ``constants`` are declared in that language, and it has no ``values``.
"""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from jinja2 import (
    Environment,
    FileSystemLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateSyntaxError,
)

from orchestrator.domain.case import Case
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Buffer, Pass
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.slangc import SLANG_SUFFIX
from orchestrator.planning.suggest import did_you_mean

CONTRACT_VERSION = 1
VALUES_MAX = 32
"""128 bytes of push constants: what every Vulkan device offers. The runner takes no more."""
GLES, VULKAN = "gles", "vulkan"

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class RenderedPass:
    """One dispatch, its shader as text."""

    template: str
    glsl: str
    """GLSL, or Slang where ``is_slang``."""
    workgroup: tuple[int, int, int]
    grid: tuple[int, int, int]
    shared_bytes: int
    buffers: tuple[str, ...]
    constants: tuple[int, ...] = ()
    """Vulkan: values of specialisation constants 0, 1, …; on GLES they are literals of ``glsl``."""
    values: tuple[int, ...] = ()
    """Of the dispatch; ``glsl`` is the same whatever they are."""
    subgroup: int = 0
    """The subgroup size that it must run with; 0: any."""

    @property
    def is_slang(self) -> bool:
        return self.template.endswith(SLANG_SUFFIX)


@dataclass(frozen=True, slots=True)
class RenderedCase:
    passes: tuple[RenderedPass, ...]
    api: str
    code_hash: str
    """16 hex digits of everything that decides what the GPU computes and how it is judged."""


def render_case(loaded: LoadedKernel, case: Case) -> RenderedCase:
    """All passes of a case.

    Raises:
        KernelFolderError: a template is missing, has a syntax error, uses an undefined name or renders to
            something that is not ASCII.
    """
    api = str(case.axes.get("api", GLES))
    steps = loaded.kernel.passes(case)
    texts: dict[tuple[object, ...], str] = {}
    for step in steps:
        _check_numbers(step, loaded.folder / step.template)
        _check_language(step, api, loaded.folder / step.template)
        if _sees(step) not in texts:
            texts[_sees(step)] = _text(loaded, case, step, api)
    passes = tuple(_render(texts[_sees(step)], step, api) for step in steps)
    code_hash = _code_hash(api, passes, loaded.kernel.buffers(case), loaded.kernel.tolerance_version)
    return RenderedCase(passes, api, code_hash)


def _sees(step: Pass) -> tuple[object, ...]:
    """What tells the text of one pass from that of another one of its case. Dispatches that differ in values
    share one object as context: their template is rendered once, and not for each of a hundred tiles."""
    constants = tuple(step.constants.items())
    return (id(step.context), step.template, step.workgroup, step.shared_bytes, constants, *step.values)


def _render(glsl: str, step: Pass, api: str) -> RenderedPass:
    return RenderedPass(
        template=step.template,
        glsl=glsl,
        workgroup=step.workgroup,
        grid=step.grid,
        shared_bytes=step.shared_bytes,
        buffers=step.buffers,
        constants=tuple(step.constants.values()) if api == VULKAN else (),
        values=tuple(step.values.values()),
        subgroup=0 if step.subgroups is None else step.subgroups.size,
    )


def _text(loaded: LoadedKernel, case: Case, step: Pass, api: str) -> str:
    where = loaded.folder / step.template
    context = {
        **case.workload,
        **case.axes,
        "api": api,
        "workgroup": step.workgroup,
        "shared_bytes": step.shared_bytes,
        "constants": _constants(step, api),
        "values": _values(step, api),
        **step.context,
    }
    try:
        text = _environment(loaded.template_folders).get_template(step.template).render(context)
    except TemplateSyntaxError as e:
        raise KernelFolderError(f"{e.filename or where}:{e.lineno}: {e.message}.") from e
    except TemplateNotFound as e:
        there = sorted(p.name for folder in loaded.template_folders for p in folder.glob("*.j2"))
        raise KernelFolderError(
            f"{where}: template '{e.name}' not found.{did_you_mean(str(e.name), there)}"
        ) from e
    except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as e:
        raise KernelFolderError(
            f"{_template_line(e, where)}: {e}. Templates see parameters, axes and the pass's context: "
            f"{', '.join(sorted(context))}."
        ) from e
    if not text.isascii():
        odd = next(c for c in text if not c.isascii())
        raise KernelFolderError(f"{where}: renders U+{ord(odd):04X}; shader text is ASCII, comments too.")
    return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"


def _check_numbers(step: Pass, where: Path) -> None:
    """Constants and values have names and fit 32 bits."""
    for name, value in step.constants.items():
        if not _NAME.fullmatch(name) or not 0 <= value < 1 << 31:
            raise KernelFolderError(
                f"{where}: constant '{name}' = {value}; give a GLSL name and a number from 0 to {2**31 - 1}."
            )
    if len(step.values) > VALUES_MAX:
        raise KernelFolderError(f"{where}: {len(step.values)} values of a pass; {VALUES_MAX} at most.")
    for name, value in step.values.items():
        if not _NAME.fullmatch(name) or name in step.constants or not 0 <= value < 1 << 32:
            raise KernelFolderError(
                f"{where}: value '{name}' = {value}; give a GLSL name that no constant has, and a number "
                f"from 0 to {2**32 - 1}."
            )


def _check_language(step: Pass, api: str, where: Path) -> None:
    if not step.template.endswith(SLANG_SUFFIX):
        return
    if api != VULKAN:
        raise KernelFolderError(f"{where}: Slang is compiled to SPIR-V; refuse api {api} in invalid().")
    if step.values:
        raise KernelFolderError(f"{where}: values of a pass are for GLSL templates; use constants.")


def _constants(step: Pass, api: str) -> str:
    """Lines that declare the pass's constants."""
    if step.template.endswith(SLANG_SUFFIX):
        lines = [f"[vk::constant_id({i})] const int {name} = 1;" for i, name in enumerate(step.constants)]
    elif api == VULKAN:
        lines = [f"layout(constant_id = {i}) const int {name} = 1;" for i, name in enumerate(step.constants)]
    else:
        lines = [f"const int {name} = {value};" for name, value in step.constants.items()]
    return "\n".join(lines)


def _values(step: Pass, api: str) -> str:
    """GLSL lines that declare the pass's values, by names that stand for them in the text."""
    if not step.values:
        return ""
    if api == VULKAN:
        members = "".join(f"    uint {name};\n" for name in step.values)
        return f"layout(push_constant) uniform TilefarmValues {{\n{members}}};"
    names = [f"#define {name} tilefarm_values[{i}]" for i, name in enumerate(step.values)]
    return "\n".join([f"uniform highp uint tilefarm_values[{len(names)}];", *names])


@lru_cache(maxsize=32)
def _environment(folders: tuple[Path, ...]) -> Environment:
    return Environment(
        loader=FileSystemLoader([str(folder) for folder in folders]),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 -- the output is shader source for a compiler, never HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # or the last line of an include runs into the line after it
    )


def _template_line(error: Exception, where: Path) -> str:
    """``FILE:LINE`` of the innermost template frame; Jinja2 rewrites tracebacks to template lines."""
    at, trace = str(where), error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if name.endswith(".j2"):
            at = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return at


def _code_hash(
    api: str, passes: tuple[RenderedPass, ...], buffers: tuple[Buffer, ...], tolerance_version: str
) -> str:
    contract: dict[str, object] = {
        "contract": CONTRACT_VERSION,
        "tolerance": tolerance_version,
        "buffers": [[b.name, b.role, b.dtype, b.count] for b in buffers],
        "passes": [
            [sha256_hex(p.glsl.encode("ascii")), p.workgroup, p.grid, p.shared_bytes, p.buffers]
            for p in passes
        ],
    }
    # Only where there is something to say: the code of before Vulkan keeps its hash, and its history.
    if api != GLES:
        contract["api"] = api
    if any(p.constants or p.subgroup for p in passes):
        contract["specialised"] = [[p.constants, p.subgroup] for p in passes]
    if any(p.values for p in passes):
        contract["values"] = [p.values for p in passes]
    return sha256_hex(json.dumps(contract, sort_keys=True).encode("ascii"))[:16]

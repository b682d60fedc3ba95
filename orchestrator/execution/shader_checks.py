"""What a shader's text says about itself, held against what its pass declares.

Only plain numbers of the text are read; a size that the compiler has to work out is left to the driver. A
work group of another size computes other elements than the grid was made for, and a binding beyond the
pass's buffers reads what nobody bound; drivers say nothing about either. Points are pruned by the shared
memory that a pass declares: it has to be what the text declares.
"""

import re

from orchestrator.execution.shared_memory import declared_shared_bytes
from orchestrator.planning.render import RenderedPass

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAYOUT = re.compile(r"layout\s*\(([^)]*)\)\s*([^;{]*)")
_LOCAL = re.compile(r"local_size_([xyz])\s*=\s*(\w+)")
_BINDING = re.compile(r"\bbinding\s*=\s*(\d+)\b")
_BUFFER = re.compile(r"\bbuffer\b")


def shader_fault(step: RenderedPass) -> str | None:
    """What contradicts the pass, or None."""
    text = _COMMENT.sub(" ", step.glsl)
    if not text.strip():
        return f"{step.template} renders to nothing; is all of it inside a condition or a macro?"
    if ".slang" in step.template:
        return None
    layouts = _LAYOUT.findall(text)
    return _group_fault(step, layouts) or _binding_fault(step, layouts) or _shared_fault(step, text)


def _group_fault(step: RenderedPass, layouts: list[tuple[str, str]]) -> str | None:
    named = [(axis, size) for inside, _ in layouts for axis, size in _LOCAL.findall(inside)]
    sizes = {axis: int(size) for axis, size in named if size.isdigit()}
    if len(sizes) != len(named) or not sizes:
        return None
    text = tuple(sizes.get(axis, 1) for axis in "xyz")
    if text == step.workgroup:
        return None
    return (
        f"{step.template} declares a work group of {text} and its pass one of {step.workgroup}; "
        "write local_size with {{ workgroup[0] }}, {{ workgroup[1] }}, {{ workgroup[2] }}"
    )


def _binding_fault(step: RenderedPass, layouts: list[tuple[str, str]]) -> str | None:
    bindings = [int(n) for inside, of in layouts if _BUFFER.search(of) for n in _BINDING.findall(inside)]
    beyond = sorted({n for n in bindings if n >= len(step.buffers)})
    if not beyond:
        return None
    return (
        f"{step.template} declares binding {beyond[0]}; its pass binds {len(step.buffers)} buffers, from 0 on"
    )


def _shared_fault(step: RenderedPass, text: str) -> str | None:
    declared = declared_shared_bytes(text)
    if not declared or declared == step.shared_bytes:
        return None
    return (
        f"{step.template} declares {declared} bytes of shared memory and its pass {step.shared_bytes}; "
        "points are pruned by the latter, make both the same"
    )

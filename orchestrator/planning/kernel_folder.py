"""Load kernel folders by path: ``FOLDER/NAME/kernel.py`` with its attribute ``kernel``.

Kernels are never imported by name: each kernel.py becomes a module with a name of its own, made from its full
path, so that two folders (ours and a user's ``--kernels DIR``) may hold kernels of one name. Folders whose
name starts with ``_`` or ``.`` hold what kernels share, and are passed over.
"""

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.kernel import Axis, Kernel
from orchestrator.planning.axis_values import allows
from orchestrator.planning.kernel_contract import (
    attribute_fault,
    cost_fault,
    data_key_fault,
    declared_fault,
    invalid_fault,
    words_fault,
)
from orchestrator.planning.suggest import did_you_mean

KERNEL_FILE = "kernel.py"
SHARED_FOLDER = "_shared"
APIS = ("gles", "vulkan")

_REQUIRED = ("name", "op", "params", "axes", "distributions")
_SAMPLE_SIZE = 64


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    kernel: Kernel
    folder: Path
    """The kernel's own folder, where its templates lie."""

    @property
    def template_folders(self) -> tuple[Path, ...]:
        """Where templates, includes and imports are looked for, in this order."""
        return (self.folder, self.folder.parent / SHARED_FOLDER)


def load_kernels(folder: Path) -> dict[str, LoadedKernel]:
    """Every kernel of a folder, by name, in alphabetical order.

    Raises:
        KernelFolderError: the folder is missing or holds no kernel, or a kernel does not keep its contract.
    """
    if not folder.is_dir():
        raise KernelFolderError(f"{folder}: no such folder. Give the folder that holds NAME/{KERNEL_FILE}.")
    found = [p for p in sorted(folder.iterdir()) if p.is_dir() and not p.name.startswith((".", "_"))]
    homes = [p for p in found if (p / KERNEL_FILE).is_file()]
    if not homes:
        raise KernelFolderError(f"{folder}: holds no NAME/{KERNEL_FILE}. See docs/add-a-kernel.md.")
    return {home.name: load_kernel(home) for home in homes}


def load_kernel(home: Path) -> LoadedKernel:
    """One kernel from its own folder.

    Raises:
        KernelFolderError: it does not keep its contract.
    """
    where = home / KERNEL_FILE
    kernel = getattr(_execute(where), "kernel", None)
    if kernel is None:
        raise KernelFolderError(f"{where}: no attribute 'kernel'. End the file with: kernel = YourKernel()")
    if not isinstance(kernel, Kernel):
        what = f"{kernel.__name__} itself" if isinstance(kernel, type) else f"a {type(kernel).__name__}"
        raise KernelFolderError(
            f"{where}: 'kernel' is {what}. "
            "Make it an instance of a subclass of orchestrator.domain.kernel.Kernel."
        )
    _check(kernel, home, where)
    return LoadedKernel(kernel, home)


def _execute(where: Path) -> ModuleType:
    name = f"tilefarm_kernel_{sha256_hex(str(where.resolve()).encode())[:16]}"
    spec = importlib.util.spec_from_file_location(name, where)
    if spec is None or spec.loader is None:
        raise KernelFolderError(f"{where}: is not a file that Python can load.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling of tracebacks look the module up here
    try:
        spec.loader.exec_module(module)
    except Exception as e:
        del sys.modules[name]
        line, what = (e.lineno, e.msg) if isinstance(e, SyntaxError) else (_last_line(e, where), str(e))
        at = f"{where}:{line}" if line else str(where)
        raise KernelFolderError(f"{at}: {type(e).__name__}: {what}. Fix the file and load it again.") from e
    return module


def _last_line(error: Exception, where: Path) -> int | None:
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(where):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _check(kernel: Kernel, home: Path, where: Path) -> None:
    for name in _REQUIRED:
        if not hasattr(kernel, name):
            raise KernelFolderError(
                f"{where}: {type(kernel).__name__} lacks '{name}'. Set it as a class attribute."
            )
        if fault := attribute_fault(name, getattr(kernel, name)):
            raise KernelFolderError(f"{where}: {fault}.")
    if kernel.name != home.name:
        raise KernelFolderError(
            f"{where}: the kernel is named '{kernel.name}' and its folder '{home.name}'. Rename one of them."
        )
    _check_axes((*kernel.params, *kernel.axes), kernel, where)
    for name in ("api", "precision"):
        if name not in {axis.name for axis in kernel.axes}:
            raise KernelFolderError(
                f"{where}: axis '{name}' is missing. Every kernel declares api and precision."
            )
    _check_apis(kernel, where)
    _check_sample(kernel, home, where)


def _check_apis(kernel: Kernel, where: Path) -> None:
    (axis,) = (axis for axis in kernel.axes if axis.name == "api")
    for value in axis.values or ("any integer",):
        if value not in APIS:
            hint = did_you_mean(str(value), APIS)
            raise KernelFolderError(f"{where}: axis 'api': value {value!r} is unknown.{hint}")


def _check_axes(axes: tuple[Axis, ...], kernel: Kernel, where: Path) -> None:
    names = [axis.name for axis in axes]
    for axis in axes:
        if names.count(axis.name) > 1:
            raise KernelFolderError(
                f"{where}: '{axis.name}' is declared twice among params and axes. Rename one."
            )
        if axis.values is not None and not axis.values:
            raise KernelFolderError(
                f"{where}: axis '{axis.name}' allows no value. List some, or give None for integers."
            )
        if axis.values is not None and len(set(axis.values)) < len(axis.values):
            raise KernelFolderError(
                f"{where}: axis '{axis.name}' lists a value twice: {list(axis.values)!r}."
            )
        refers = isinstance(axis.default, str) and axis.default in {p.name for p in kernel.params}
        if axis.values is None and isinstance(axis.default, str) and not refers:
            known = did_you_mean(axis.default, [p.name for p in kernel.params])
            raise KernelFolderError(
                f"{where}: axis '{axis.name}': default '{axis.default}' is neither a number "
                f"nor the name of a parameter.{known}"
            )
        if axis.values is not None and axis.default is not None and not allows(axis, axis.default):
            raise KernelFolderError(
                f"{where}: axis '{axis.name}': default {axis.default!r} is not among its values "
                f"{list(axis.values)!r}. Add it there or choose another default."
            )


def _check_sample(kernel: Kernel, home: Path, where: Path) -> None:
    """Ask for everything but data of one small case, so that a mistake shows at once and not in the night."""
    case = sample_case(kernel)
    invalid = _guarded(lambda: kernel.invalid(case), where, "invalid")
    if isinstance(invalid, str) and invalid:
        return
    passes = _guarded(lambda: kernel.passes(case), where, "passes")
    buffers = _guarded(lambda: kernel.buffers(case), where, "buffers")
    fault = (
        invalid_fault(invalid)
        or declared_fault(buffers, passes)
        or words_fault("features", _guarded(lambda: kernel.features(case), where, "features"))
        or words_fault("matrices", _guarded(lambda: kernel.matrices(case), where, "matrices"))
        or cost_fault(_guarded(lambda: kernel.cost(case), where, "cost"))
        or data_key_fault(_guarded(lambda: kernel.data_key(case), where, "data_key"))
    )
    if fault:
        raise KernelFolderError(f"{where}: {fault} (a small case: {case.label}).")
    for step in passes:
        if not (home / step.template).is_file():
            there = sorted(p.name for p in home.glob("*.j2"))
            raise KernelFolderError(
                f"{where}: template '{step.template}' is not in {home}.{did_you_mean(step.template, there)}"
            )


T = TypeVar("T")


def _guarded(call: Callable[[], T], where: Path, method: str) -> T:
    try:
        return call()
    except Exception as e:
        line = _last_line(e, where)
        at = f"{where}:{line}" if line else str(where)
        raise KernelFolderError(f"{at}: {method}() of a small case failed: {type(e).__name__}: {e}.") from e


def sample_case(kernel: Kernel) -> Case:
    """A small case of a kernel: defaults, first allowed values, sizes of 64."""

    def value(axis: Axis) -> AxisValue:
        if axis.default is not None:
            return axis.default
        return _SAMPLE_SIZE if axis.values is None else axis.values[0]

    return Case(
        kernel=kernel.name,
        op=kernel.op,
        workload={axis.name: value(axis) for axis in kernel.params},
        axes={axis.name: value(axis) for axis in kernel.axes},
        inputs=kernel.distributions[0],
    )

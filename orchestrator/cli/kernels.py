"""``tilefarm kernels``: what can be put into a matrix."""

import typer

from orchestrator.cli.options import JsonOption, KernelsOption, load_all_kernels
from orchestrator.cli.output import print_json, result
from orchestrator.domain.case import axis_text
from orchestrator.domain.kernel import Axis, Kernel


def kernels(folder: KernelsOption = None, as_json: JsonOption = False) -> None:
    """List kernels with their workload parameters, axes and input distributions.

    Example: tilefarm kernels --json
    """
    found = {name: loaded.kernel for name, loaded in load_all_kernels(folder).items()}
    if as_json:
        print_json({"kernels": [_document(k) for k in found.values()]})
        raise typer.Exit(0)
    for kernel in found.values():
        result.print(f"[bold]{kernel.name}[/] ({_role(kernel)})")
        for axis in (*kernel.params, *kernel.axes):
            result.print(f"  {axis.name}: {_values(axis)}", markup=False)
        result.print(f"  inputs: {' '.join(kernel.distributions)}", markup=False, soft_wrap=True)


def _role(kernel: Kernel) -> str:
    match kernel.role:
        case "op":
            return f"op {kernel.op}"
        case "probe":
            return "probe: measures a device once a run"
        case "canary":
            return "canary: vouches for a device before and after each batch"


def _values(axis: Axis) -> str:
    values = "any positive integer" if axis.values is None else " ".join(axis_text(v) for v in axis.values)
    return values if axis.default is None else f"{values} (default {axis_text(axis.default)})"


def _document(kernel: Kernel) -> dict[str, object]:
    def axes(given: tuple[Axis, ...]) -> list[dict[str, object]]:
        return [
            {"name": a.name, "values": None if a.values is None else list(a.values), "default": a.default}
            for a in given
        ]

    return {
        "name": kernel.name,
        "op": kernel.op,
        "role": kernel.role,
        "params": axes(kernel.params),
        "axes": axes(kernel.axes),
        "inputs": list(kernel.distributions),
    }

"""``--set NAME=VALUE[,VALUE…]``: replaces an axis, parameter, inputs or seeds in all blocks that have it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.domain.case import AxisValue
from orchestrator.domain.errors import UsageError
from orchestrator.domain.kernel import Axis, Kernel
from orchestrator.planning.axis_values import from_text, refusal
from orchestrator.planning.matrix import Block, Space, Suite
from orchestrator.planning.suggest import did_you_mean, shown


@dataclass(frozen=True, slots=True)
class Override:
    name: str
    values: tuple[str, ...]
    """As written."""


def parse_override(text: str) -> Override:
    """``tile=16x16,32x16`` as a name and its values.

    Raises:
        UsageError: no ``=``, no name, an empty or a repeated value.
    """
    name, equals, rest = text.partition("=")
    values = tuple(part.strip() for part in rest.split(","))
    if not equals or not name.strip() or not all(values):
        raise UsageError(
            f"--set {shown(text)}: write NAME=VALUE or NAME=VALUE,VALUE, such as --set tile=16x16"
        )
    if len(set(values)) < len(values):
        raise UsageError(f"--set {shown(text)}: a value is listed twice")
    return Override(name.strip(), values)


def apply_overrides(
    suite: Suite, overrides: Sequence[Override], kernels: Mapping[str, Kernel]
) -> tuple[Suite, list[str]]:
    """The suite with replaced values, and notes on blocks that cannot take all of them.

    A block keeps the values that its kernel allows; when it allows none, the block is left out.

    Raises:
        UsageError: no block has the name, or a value is allowed by no kernel that has it.
    """
    notes: list[str] = []
    for override in overrides:
        _check(suite, override, kernels)
        blocks: list[Block] = []
        for block in suite.blocks:
            changed = _applied(block, override, kernels[block.kernel], notes)
            if changed is not None:
                blocks.append(changed)
        suite = replace(suite, blocks=tuple(blocks))
    return suite, notes


def _axis(kernel: Kernel, name: str) -> Axis | None:
    if name == "inputs":
        return Axis("inputs", kernel.distributions)
    if name in ("seed", "seeds"):
        return Axis("seeds", None)
    return next((axis for axis in (*kernel.params, *kernel.axes) if axis.name == name), None)


def _check(suite: Suite, override: Override, kernels: Mapping[str, Kernel]) -> None:
    used = [kernels[name] for name in dict.fromkeys(block.kernel for block in suite.blocks)]
    axes = [axis for kernel in used if (axis := _axis(kernel, override.name)) is not None]
    if not axes:
        known = {axis.name for kernel in used for axis in (*kernel.params, *kernel.axes)} | {
            "inputs",
            "seeds",
        }
        hint = did_you_mean(override.name, known)
        raise UsageError(f"--set {override.name}: no block of suite {suite.name} has it.{hint}")
    for text in override.values:
        if all(from_text(axis, text) is None for axis in axes):
            raise UsageError(f"--set {override.name}: {refusal(_widest(axes), text, text)}")


def _widest(axes: Sequence[Axis]) -> Axis:
    """One axis with the values of all, for a message."""
    if any(axis.values is None for axis in axes):
        return Axis(axes[0].name, None)
    return Axis(axes[0].name, tuple(dict.fromkeys(v for axis in axes for v in axis.values or ())))


def _applied(block: Block, override: Override, kernel: Kernel, notes: list[str]) -> Block | None:
    axis = _axis(kernel, override.name)
    if axis is None:
        return block
    parsed = [(text, from_text(axis, text)) for text in override.values]
    values = tuple(value for _, value in parsed if value is not None)
    refused = [text for text, value in parsed if value is None]
    if refused:
        fate = "block left out" if not values else "left out there"
        notes.append(
            f"--set {override.name}: {kernel.name} does not take {', '.join(refused)}; {fate} ({block.where})"
        )
    if not values:
        return None
    return _replaced(block, axis.name, values)


def _replaced(block: Block, name: str, values: tuple[AxisValue, ...]) -> Block:
    if name == "inputs":
        return replace(block, inputs=tuple(str(v) for v in values))
    if name == "seeds":
        return replace(block, seeds=tuple(v for v in values if isinstance(v, int)))
    if name in block.axes:
        return replace(block, axes=_with(block.axes, name, values))
    return replace(block, workloads=tuple(_with(space, name, values) for space in block.workloads))


def _with(space: Space, name: str, values: tuple[AxisValue, ...]) -> Space:
    return {key: values if key == name else old for key, old in space.items()}

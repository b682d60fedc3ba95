"""One block of a suite or of the probes, checked against the kernel that it names."""

from collections.abc import Mapping

from orchestrator.domain.case import AxisValue, axis_text
from orchestrator.domain.kernel import Axis, Kernel
from orchestrator.planning.axis_values import allows, refusal
from orchestrator.planning.fields import Record, one_or_many
from orchestrator.planning.matrix import Block, Exclude, Sampling, Space
from orchestrator.planning.suggest import did_you_mean, shown
from orchestrator.planning.yaml_tree import Fields, Node, Problem, path_part

SAMPLING_KEYS = (
    "repeats",
    "warmup",
    "warmup_ms",
    "replays",
    "idle_replays",
    "idle_s",
    "deadline_s",
    "min_effect",
)
BLOCK_KEYS = ("name", "kernel", "workloads", "axes", "inputs", "seeds", "excludes", *SAMPLING_KEYS)
MAX_REST_S = 600.0
MAX_WARMUP_MS = 60_000
MIN_EFFECT, MAX_EFFECT = 0.001, 1.0
"""Finer than a phone's nights can tell; more than any suite would let pass."""
MAX_CASE_MS = 86_400_000
"""The runner takes no longer deadline."""


def read_sampling(record: Record, default: Sampling) -> Sampling:
    """How often cases run, from a suite's or a block's own keys; what is left out is ``default``'s."""
    rest_s = record.number("idle_s", 0, MAX_REST_S)
    found = Sampling(
        repeats=record.integer("repeats", default.repeats, 1, 10_000),
        warmup=record.integer("warmup", default.warmup, 0, 1_000),
        replays=record.integer("replays", default.replays, 1, 10_000),
        idle_replays=record.integer("idle_replays", default.idle_replays, 0, 10_000),
        idle_ms=default.idle_ms if rest_s is None else max(1, round(rest_s * 1000)),
        deadline_s=record.integer("deadline_s", default.deadline_s, 1, 3_600),
        warmup_ms=record.integer("warmup_ms", default.warmup_ms, 0, MAX_WARMUP_MS),
        min_effect=record.share("min_effect", default.min_effect, MIN_EFFECT, MAX_EFFECT),
    )
    if found.warmup_ms >= found.deadline_s * 1000:
        what = f"{found.warmup_ms} ms of warm-up leave nothing of the deadline of {found.deadline_s} s"
        record.problem("warmup_ms" if "warmup_ms" in record.node.entries else "deadline_s", what)
    if found.idle_replays and not found.idle_ms and "idle_s" not in record.node.entries:
        record.problem("idle_replays", "rests of no length; give idle_s, the seconds of rest before each")
    longest_ms = found.deadline_s * 1000 + found.rest_ms
    if longest_ms > MAX_CASE_MS:
        hours = longest_ms / 3_600_000
        what = f"a case may take {hours:.1f} h with its rests; {MAX_CASE_MS // 3_600_000} h is most"
        record.problem("idle_replays" if "idle_replays" in record.node.entries else "idle_s", what)
    return found


def read_block(
    record: Record,
    kernels: Mapping[str, Kernel],
    excludes: tuple[Exclude, ...],
    problems: list[Problem],
    sampling: Sampling,
) -> Block | None:
    """The block, or None after problems that leave nothing to expand; ``sampling`` is the suite's."""
    before = len(problems)
    name = record.text("kernel")
    kernel = kernels.get(name)
    if kernel is None:
        if name:
            record.problem("kernel", f"there is no kernel {shown(name)}.{did_you_mean(name, kernels)}")
        return None
    axes = _space(record.node.entries.get("axes"), record.at("axes"), kernel, "axes", record, problems)
    block = Block(
        where=record.where,
        line=record.node.line,
        kernel=kernel.name,
        op=kernel.op,
        workloads=_workloads(record, kernel, problems),
        axes=axes,
        inputs=_inputs(record, kernel, problems),
        seeds=_seeds(record, problems),
        excludes=excludes,
        name=record.text("name"),
        linked=linked_parameters(kernel),
        sampling=own if (own := read_sampling(record, sampling)) != sampling else None,
    )
    return block if len(problems) == before else None


def _workloads(record: Record, kernel: Kernel, problems: list[Problem]) -> tuple[Space, ...]:
    if "workloads" not in record.node.entries:
        return (_space(None, record.at("workloads"), kernel, "workloads", record, problems),)
    return tuple(
        _space(node, where, kernel, "workloads", record, problems)
        for node, where in record.items("workloads")
    )


def _space(
    node: Node | None, where: str, kernel: Kernel, key: str, record: Record, problems: list[Problem]
) -> Space:
    """The values of each declared axis (or parameter) in the kernel's order, defaults filled in."""
    declared, other = (kernel.axes, kernel.params) if key == "axes" else (kernel.params, kernel.axes)
    word = "axis" if key == "axes" else "parameter"
    line = record.line(key) if node is None else node.line
    given = node if isinstance(node, Fields) else Fields(line)
    if node is not None and not isinstance(node, Fields):
        example = f"{declared[0].name}: …" if declared else "nothing"
        problems.append(Problem(line, where, f"must be a mapping such as {{{example}}}"))
        return {}
    names = [axis.name for axis in declared]
    for name in given.entries:
        if name not in names:
            misplaced = any(axis.name == name for axis in other)
            place = "workloads" if key == "axes" else "axes"
            hint = f" It belongs under {place}." if misplaced else did_you_mean(name, names)
            what = f"{kernel.name} has no {word} {shown(name)}.{hint}"
            problems.append(Problem(given.lines[name], f"{where}.{path_part(name)}", what))
    space: Space = {}
    for axis in declared:
        if axis.name in given.entries:
            space[axis.name] = _values(given.entries[axis.name], f"{where}.{axis.name}", axis, problems)
        elif axis.default is not None:
            space[axis.name] = (axis.default,)
        else:
            known = "" if axis.values is None else f" Known: {', '.join(map(axis_text, axis.values))}."
            problems.append(
                Problem(line, where, f"{word} {shown(axis.name)} of {kernel.name} is missing.{known}")
            )
    return space


def _values(node: Node, where: str, axis: Axis, problems: list[Problem]) -> tuple[AxisValue, ...]:
    found: list[AxisValue] = []
    for scalar, at in one_or_many(node, where, problems):
        value = scalar.value
        if value is None or isinstance(value, float) or not allows(axis, value):
            problems.append(Problem(scalar.line, at, refusal(axis, value, scalar.text)))
        elif value in found:
            problems.append(Problem(scalar.line, at, f"{shown(axis_text(value))} is listed twice"))
        else:
            found.append(value)
    return tuple(found)


def _inputs(record: Record, kernel: Kernel, problems: list[Problem]) -> tuple[str, ...]:
    node = record.node.entries.get("inputs")
    if node is None:
        return ("normal",) if "normal" in kernel.distributions else kernel.distributions[:1]
    axis = Axis("inputs", kernel.distributions)
    return tuple(str(v) for v in _values(node, record.at("inputs"), axis, problems))


def _seeds(record: Record, problems: list[Problem]) -> tuple[int, ...]:
    node = record.node.entries.get("seeds")
    if node is None:
        return (1,)
    values = _values(node, record.at("seeds"), Axis("seeds", None), problems)
    return tuple(v for v in values if isinstance(v, int))


def linked_parameters(kernel: Kernel) -> frozenset[str]:
    """Parameters that take numbers and whose default names another parameter, whose value they then have."""
    links = {p.name: p.default for p in kernel.params if p.values is None and isinstance(p.default, str)}
    names = {p.name for p in kernel.params}
    found: set[str] = set()
    for name in links:
        target, hops = links[name], 0
        while target in links and hops <= len(links):
            target, hops = links[target], hops + 1
        if target in names and target not in links:
            found.add(name)
    return frozenset(found)


def points(block: Block) -> int:
    """Points of a block before excludes, those of overlapping workloads counted twice."""
    return sum(_size(w) for w in block.workloads) * _size(block.axes) * len(block.inputs) * len(block.seeds)


def _size(space: Space) -> int:
    size = 1
    for values in space.values():
        size *= len(values)
    return size

"""matrix.yaml → Matrix. All problems are collected and raised in one MatrixError."""

from collections.abc import Container, Iterable, Mapping
from datetime import date
from pathlib import Path
from re import fullmatch

from orchestrator.domain.case import AxisValue
from orchestrator.domain.errors import MatrixError
from orchestrator.domain.expectation import Expectation
from orchestrator.domain.kernel import Kernel
from orchestrator.planning.block_reader import BLOCK_KEYS, SAMPLING_KEYS, points, read_block, read_sampling
from orchestrator.planning.expectation_reader import EXPECTATION_KEYS, EXPECTATION_REQUIRED, read_expectation
from orchestrator.planning.expression import SelectionError
from orchestrator.planning.fields import Record, kind
from orchestrator.planning.matrix import MATRIX_VERSION, Block, Exclude, Matrix, Sampling, Suite
from orchestrator.planning.select import compile_selection
from orchestrator.planning.suggest import shown
from orchestrator.planning.vocabulary import Vocabulary
from orchestrator.planning.yaml_events import YamlSyntaxError
from orchestrator.planning.yaml_tree import MAX_BYTES, Fields, Node, Problem, read_tree

MAX_POINTS = 5_000_000
"""Points of one suite; more is taken for a slip of the pen."""

MAX_PHONES = 100
"""Of a SoC; each that a run lacks is named in its report."""

_NOTE_KEYS = ("when", "reason", "owner", "expires")
_PROBES_KEYS = ("description", *SAMPLING_KEYS, "budget", "blocks")
_PHONES = "min_phones_per_soc"
_SUITE_KEYS = (*_PROBES_KEYS, _PHONES)
_PROBES = "probes"


def load_matrix(path: Path, kernels: Mapping[str, Kernel], today: date) -> Matrix:
    """The checked matrix.

    Excludes and expectations that expired before ``today`` are left out and named in ``warnings``.

    Raises:
        MatrixError: all that is wrong, one ``FILE:LINE: where: what`` each, in the order of lines.
    """
    file = path.name
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as e:
        raise MatrixError([f"{path}: cannot be read: {e.strerror}. Give another file with --matrix"]) from e
    try:
        root, problems = read_tree(data)
    except YamlSyntaxError as e:
        raise MatrixError([Problem(e.line, "", e.what).render(file)]) from e
    reader = _Reader(kernels, today, problems)
    matrix = reader.matrix(root, file)
    if problems or matrix is None:
        raise MatrixError([p.render(file) for p in sorted(problems, key=lambda p: p.line)])
    return matrix


class _Reader:
    def __init__(self, kernels: Mapping[str, Kernel], today: date, problems: list[Problem]) -> None:
        self._kernels = kernels
        self._vocabulary = Vocabulary.of(kernels.values())
        self._today = today
        self._problems = problems
        self._warnings: list[Problem] = []

    def matrix(self, root: Node | None, file: str) -> Matrix | None:
        keys = ("version", "suites", _PROBES, "excludes", "expectations")
        top = Record.read(root, "", self._problems, known=keys, required=("version", "suites"))
        if top is None:
            return None
        version = top.integer("version", MATRIX_VERSION, 1, 10**6)
        if version != MATRIX_VERSION:
            top.problem("version", f"version {version}; this Tilefarm reads {MATRIX_VERSION}")
        suites = self._suites(top)
        probes = self._probes(top)
        excludes = self._excludes(top)
        expectations = tuple(
            found for node, where in top.items("expectations") if (found := self._expectation(node, where))
        )
        warnings = tuple(p.render(file) for p in sorted(self._warnings, key=lambda p: p.line))
        return Matrix(file, suites, excludes, expectations, warnings, probes)

    def _suites(self, top: Record) -> dict[str, Suite]:
        node = top.node.entries.get("suites")
        if node is None:
            return {}
        if not isinstance(node, Fields) or not node.entries:
            top.problem("suites", f"must be a mapping of suite names to suites, not {_empty_or(node)}")
            return {}
        suites: dict[str, Suite] = {}
        for name, body in node.entries.items():
            where = f"suites.{name if _is_name(name) else shown(name)}"
            line = node.lines[name]
            if not _is_name(name):
                what = "a suite's name is 1 to 40 of the characters a-z A-Z 0-9 . _ -"
                self._problems.append(Problem(line, where, what))
            record = Record.read(
                body, where, self._problems, known=_SUITE_KEYS, required=("blocks",), line=line
            )
            if record is not None:
                suites[name] = self._suite(record, name, line)
                self._only(
                    suites[name].blocks, ("op", "probe"), "a canary runs by itself; it belongs under probes"
                )
        return suites

    def _probes(self, top: Record) -> Suite | None:
        node = top.node.entries.get(_PROBES)
        if node is None:
            return None
        line = top.line(_PROBES)
        record = Record.read(
            node, _PROBES, self._problems, known=_PROBES_KEYS, required=("blocks",), line=line
        )
        if record is None:
            return None
        probes = self._suite(record, _PROBES, line)
        self._only(probes.blocks, ("probe", "canary"), "it measures no device; it belongs under suites")
        self._one_canary_an_api(probes.blocks)
        return probes

    def _only(self, blocks: Iterable[Block], roles: Container[str], what: str) -> None:
        for block in blocks:
            if self._kernels[block.kernel].role not in roles:
                self._problems.append(
                    Problem(block.line, f"{block.where}.kernel", f"{shown(block.kernel)}: {what}")
                )

    def _one_canary_an_api(self, blocks: Iterable[Block]) -> None:
        seen: set[AxisValue] = set()
        for block in blocks:
            if self._kernels[block.kernel].role != "canary":
                continue
            apis = block.axes.get("api", ())
            if points(block) > len(apis) or seen.intersection(apis):
                what = "more than one canary for an API; give one value to every axis and parameter but api"
                self._problems.append(Problem(block.line, block.where, what))
            seen.update(apis)

    def _suite(self, record: Record, name: str, line: int) -> Suite:
        sampling = read_sampling(record, Sampling())
        blocks = [b for node, where in record.items("blocks") if (b := self._block(node, where, sampling))]
        total = sum(points(b) for b in blocks)
        if total > MAX_POINTS:
            what = f"{total} points, more than {MAX_POINTS}; split the suite or list fewer values"
            self._problems.append(Problem(line, record.where, what))
        return Suite(
            name=name,
            blocks=tuple(blocks),
            description=record.text("description"),
            sampling=sampling,
            budget_s=self._budget(record),
            min_phones_per_soc=record.integer(_PHONES, 0, 1, MAX_PHONES) or None,
        )

    def _budget(self, record: Record) -> float | None:
        if "budget" not in record.node.entries:
            return None
        budget = Record.read(
            record.node.entries["budget"],
            record.at("budget"),
            self._problems,
            known=("minutes",),
            required=("minutes",),
        )
        minutes = None if budget is None else budget.number("minutes", 0, 7 * 24 * 60)
        return None if minutes is None else minutes * 60

    def _block(self, node: Node, where: str, sampling: Sampling) -> Block | None:
        record = Record.read(node, where, self._problems, known=BLOCK_KEYS, required=("kernel",))
        if record is None:
            return None
        return read_block(record, self._kernels, self._excludes(record), self._problems, sampling)

    def _excludes(self, owner: Record) -> tuple[Exclude, ...]:
        found: list[Exclude] = []
        for node, where in owner.items("excludes"):
            record = Record.read(node, where, self._problems, known=_NOTE_KEYS, required=_NOTE_KEYS)
            if record is None:
                continue
            when = self._when(record)
            reason, person, expires = record.text("reason"), record.text("owner"), record.date("expires")
            if expires is None:
                continue
            exclude = Exclude(when, reason, person, expires, record.node.line, where)
            if exclude.expired(self._today):
                self._expired(record, expires, person, "its points run again")
            else:
                found.append(exclude)
        return tuple(found)

    def _expectation(self, node: Node, where: str) -> Expectation | None:
        record = Record.read(
            node, where, self._problems, known=EXPECTATION_KEYS, required=EXPECTATION_REQUIRED
        )
        if record is None:
            return None
        found = read_expectation(record, self._when(record))
        if found is not None and found.expired(self._today):
            again = {"fails": "a failure", "flakes": "a flake", "slow": "a slowness"}[found.kind]
            self._expired(record, found.expires, found.owner, f"{again} counts as one again")
            return None
        return found

    def _when(self, record: Record) -> str:
        text = record.text("when")
        if text:
            try:
                compile_selection(text, self._vocabulary, record.at("when"))
            except SelectionError as e:
                for fault in e.faults:
                    record.problem("when", f"column {fault.at + 1} of the expression: {fault.what}")
        return text

    def _expired(self, record: Record, expires: date, owner: str, effect: str) -> None:
        what = f"expired on {expires}; {effect}. Remove it, or have {shown(owner)} set a new date"
        self._warnings.append(Problem(record.line("expires"), record.where, what))


def _is_name(name: str) -> bool:
    return fullmatch(r"[A-Za-z0-9._-]{1,40}", name) is not None


def _empty_or(node: Node) -> str:
    return "an empty one" if isinstance(node, Fields) else kind(node)

"""A decision's file: YAML → ``Decision``; all that is wrong in one go, with lines."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import get_args

from orchestrator.domain.finding import Finding, TriageState
from orchestrator.planning.fields import Record, kind
from orchestrator.planning.suggest import did_you_mean, shown
from orchestrator.planning.yaml_events import YamlSyntaxError
from orchestrator.planning.yaml_tree import Fields, Node, Problem, Scalar, read_tree
from orchestrator.triage.decision import EXPIRING, NEVER, Decision, Subject

VERSION = 1
MAX_BYTES = 4 << 20
MAX_NODES = 500_000
STATES: tuple[TriageState, ...] = get_args(TriageState)
WHATS: tuple[str, ...] = get_args(Finding.__annotations__["what"])
_ID = re.compile(r"[0-9a-f]{16}")
_MARK = re.compile(rb"^(<{7}|={7}|>{7}|\|{7})(?:[ \r].*)?$", re.MULTILINE)
_REQUIRED = ("version", "state", "owner", "decided", "findings")
_KEYS = (*_REQUIRED, "about", "run", "note", "link", "expires")
_SUBJECT_REQUIRED = ("soc", "what", "case_id", "since")
_SUBJECT_KEYS = (*_SUBJECT_REQUIRED, "case", "device", "effect")


def read_decision(data: bytes) -> tuple[Decision | None, list[Problem]]:
    """The decision in a file, None where it cannot be made out, and all that is wrong: with any problem the
    decision is not to be used."""
    if mark := _MARK.search(data):
        line = data.count(b"\n", 0, mark.start()) + 1
        return None, [
            Problem(line, "", "a merge conflict that nobody resolved. Keep one side, remove the marks")
        ]
    try:
        root, problems = read_tree(data, MAX_BYTES, MAX_NODES)
    except YamlSyntaxError as e:
        return None, [Problem(e.line, "", e.what)]
    return _Reader(problems).decision(root), problems


class _Reader:
    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems

    def decision(self, root: Node | None) -> Decision | None:
        record = Record.read(root, "", self._problems, known=_KEYS, required=_REQUIRED)
        if record is None:
            return None
        version = record.integer("version", VERSION, 1, 10**6)
        if version != VERSION:
            record.problem("version", f"version {version}; this Tilefarm reads {VERSION}")
        state = self._state(record)
        if state is None:
            return None
        return Decision(
            state=state,
            owner=record.text("owner"),
            about=record.text("about"),
            run=record.text("run"),
            decided=_moment(record),
            subjects=tuple(self._subjects(record)),
            note=record.text("note"),
            link=record.text("link"),
            expires=_expires(record, state),
        )

    def _state(self, record: Record) -> TriageState | None:
        text = record.text("state")
        for state in STATES:
            if text == state:
                return state
        if text:
            record.problem("state", f"{shown(text)} is not a state.{did_you_mean(text, STATES)}")
        return None

    def _subjects(self, record: Record) -> list[Subject]:
        node = record.node.entries.get("findings")
        if node is None:
            return []
        if not isinstance(node, Fields) or not node.entries:
            what = kind(node) if not isinstance(node, Fields) else "an empty one"
            record.problem("findings", f"must be a mapping of finding ids, not {what}")
            return []
        where = record.at("findings")
        return [s for i, n in node.entries.items() if (s := self._subject(i, n, where, node.lines))]

    def _subject(self, finding_id: str, node: Node, where: str, lines: Mapping[str, int]) -> Subject | None:
        line = lines[finding_id]
        here = f"{where}.{finding_id}"
        if not _ID.fullmatch(finding_id):
            what = f"{shown(finding_id)} is no finding's id. `tilefarm triage` shows them"
            self._problems.append(Problem(line, where, what))
            return None
        record = Record.read(
            node, here, self._problems, known=_SUBJECT_KEYS, required=_SUBJECT_REQUIRED, line=line
        )
        if record is None:
            return None
        what = record.text("what")
        if what and what not in WHATS:
            record.problem("what", f"{shown(what)} is nothing that is found.{did_you_mean(what, WHATS)}")
        return Subject(
            finding_id=finding_id,
            soc=record.text("soc"),
            what=what,
            case_id=record.text("case_id"),
            case=record.text("case"),
            device=record.text("device"),
            effect=record.text("effect"),
            since=record.text("since"),
            line=line,
        )


def _moment(record: Record) -> str:
    text = record.text("decided")
    if not text:
        return ""
    try:
        if datetime.fromisoformat(text).tzinfo is not None:
            return text
    except ValueError:
        pass
    record.problem("decided", f"must be a time such as 2026-12-02T09:14:00+00:00, not {shown(text)}")
    return ""


def _expires(record: Record, state: TriageState) -> str:
    node = record.node.entries.get("expires")
    if state not in EXPIRING:
        if node is not None:
            record.problem("expires", f"what is {state} does not expire. Remove the line")
        return ""
    if node is None:
        what = f'"expires" is missing: a date, or the word {NEVER}'
        record.problems.append(Problem(record.node.line, record.where, what))
        return ""
    if isinstance(node, Scalar) and node.text == NEVER:
        return ""
    found = record.date("expires")
    return found.isoformat() if found else ""

"""Decisions → the text of their file: always the same text for the same decisions, one line a finding."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from orchestrator.planning.suggest import printable
from orchestrator.triage.decision import EXPIRING, NEVER, Decision, Subject
from orchestrator.triage.reader import VERSION

_HEAD = """\
# What people decided about findings of suite {suite}; `tilefarm triage` writes it. See docs/triage.md.
version: {version}
decisions:
"""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.+-]*(?: [A-Za-z0-9_/.+-]+)*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def file_text(suite: str, decisions: Sequence[Decision]) -> str:
    """Blocks in the order of SoC, first case and id, so that two branches seldom write in one place."""
    ordered = [replace(d, subjects=tuple(sorted(d.subjects, key=_place))) for d in decisions if d.subjects]
    blocks = sorted(ordered, key=lambda d: _place(d.subjects[0]))
    return _HEAD.format(suite=suite, version=VERSION) + "".join(_block(d) for d in blocks)


def _place(subject: Subject) -> tuple[str, str, str]:
    return subject.soc, subject.case, subject.finding_id


def _block(decision: Decision) -> str:
    lines = {
        "state": decision.state,
        "owner": decision.owner,
        "expires": (decision.expires or NEVER) if decision.state in EXPIRING else "",
        "about": decision.about,
        "note": decision.note,
        "link": decision.link,
        "decided": decision.decided,
        "run": decision.run,
    }
    written = [f"{name}: {_scalar(name, text)}" for name, text in lines.items() if text.strip()]
    findings = "".join(f'    "{s.finding_id}": {{{_subject(s)}}}\n' for s in decision.subjects)
    return "\n- " + "\n  ".join(written) + "\n  findings:\n" + findings


def _subject(subject: Subject) -> str:
    fields = {
        "soc": subject.soc,
        "device": subject.device,
        "what": subject.what,
        "effect": subject.effect,
        "case": subject.case,
        "case_id": subject.case_id,
        "since": subject.since,
    }
    return ", ".join(f"{name}: {_scalar(name, text)}" for name, text in fields.items() if text.strip())


def _scalar(name: str, text: str) -> str:
    """Plain where it can be nothing but text; ids and times always look alike."""
    line = printable(" ".join(text.split()))
    if name == "expires" or (_PLAIN.fullmatch(line) and line.lower() not in _WORDS):
        return line
    return json.dumps(line, ensure_ascii=False)

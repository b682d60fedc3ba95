"""A decision → the text of its file: always the same text for the same decision, one line a finding."""

import json
import re

from orchestrator.planning.suggest import printable
from orchestrator.triage.decision import EXPIRING, NEVER, Decision, Subject
from orchestrator.triage.reader import VERSION

_HEAD = """\
# Decided about findings of suite {suite}; `tilefarm triage` wrote it. See docs/triage.md.
version: {version}
"""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.+-]*(?: [A-Za-z0-9_/.+-]+)*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def file_text(suite: str, decision: Decision) -> str:
    """Findings in the order of SoC, case and id."""
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
    written = "".join(f"{name}: {_scalar(name, text)}\n" for name, text in lines.items() if text.strip())
    ordered = sorted(decision.subjects, key=lambda s: (s.soc, s.case, s.finding_id))
    findings = "".join(f'  "{s.finding_id}": {{{_subject(s)}}}\n' for s in ordered)
    return _HEAD.format(suite=suite, version=VERSION) + written + "findings:\n" + findings


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

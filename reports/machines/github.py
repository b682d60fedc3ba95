"""ReportModel → GitHub's workflow commands: annotations of a job and of the files of a pull request.

https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.analysis.outcome import Outcome
from orchestrator.analysis.words import plural
from reports.changes.model import Card
from reports.changes.words import name
from reports.machines.causes import cause_of
from reports.model import Finding, ReportModel
from reports.scope import lost
from reports.text import visible

Level = Literal["error", "warning", "notice"]
LEVELS: tuple[Level, ...] = ("error", "warning", "notice")
MAX_EACH = 10
"""Of each level that GitHub shows of a step; it drops further ones without a word."""
MAX_TITLE, MAX_MESSAGE = 200, 1_000


@dataclass(frozen=True, slots=True)
class Annotation:
    level: Level
    title: str
    message: str
    file: str = ""
    """From the repository's root; empty: of the job alone."""

    def command(self) -> str:
        """``::error file=…,title=…::…``, whatever the texts hold."""
        properties = {"file": self.file, "title": visible(self.title, MAX_TITLE)}
        given = ",".join(f"{k}={_property(v)}" for k, v in properties.items() if v)
        return f"::{self.level} {given}::{_data(visible(self.message, MAX_MESSAGE))}"


def commands(model: ReportModel, files: Mapping[str, str]) -> list[str]:
    """One line each, errors first.

    Args:
        files: kernel → its file in the repository, as far as there is one.
    """
    found = annotations(model, files)
    lines: list[str] = []
    for level in LEVELS:
        own = [a for a in found if a.level == level]
        kept = own if len(own) <= MAX_EACH else own[: MAX_EACH - 1]
        lines += [a.command() for a in kept]
        if len(own) > len(kept):
            more = len(own) - len(kept)
            lines.append(Annotation(level, f"{more} more", "See the job's summary, or the report.").command())
    return lines


def annotations(model: ReportModel, files: Mapping[str, str]) -> list[Annotation]:
    """What makes the exit code 1 is an error; what else is wrong, worse or not there a warning; good news and
    the verdict are notices."""
    gate = model.fail_on
    wrong: Level = "warning" if gate == "never" else "error"
    worse: Level = "error" if gate == "regressed" else "warning"
    kernels = {t.trial.case_id: t.info.case.kernel for t in model.trials}
    said = [Annotation("notice", f"Tilefarm, {model.run.suite}", _verdict(model))]
    said += _failures(model, wrong, files)
    if model.slow:
        bound = f"slower than ×{model.max_slowdown:.2f} of the run before" if model.max_slowdown else "slower"
        said.append(Annotation(wrong, f"{plural(len(model.slow), 'case')} {bound}", "See the report."))
    said += [Annotation("warning", f"Not obtained: {x.device}", f"{x.what}: {x.why}") for x in lost(model)]
    said += [Annotation("warning", "Degraded run", sentence) for sentence in model.run.degraded]
    said += [Annotation("warning", f"No results: {m.night}", m.why) for m in model.run.missed_nights]
    failing = {f.finding_id for f in model.worse.findings}
    for card in model.changes.cards if model.changes is not None else ():
        bad = any(e.finding.finding_id in failing for e in card.entries)
        if bad or any(e.finding.finding_id in model.told for e in card.entries):
            unwell = card.group.cause == "device" and card.group.what != "improved"
            level: Level = worse if bad else "warning" if unwell else "notice"
            said.append(_cause(card, level, _file(card, kernels, files)))
    for f in model.findings(Outcome.UNEXPECTEDLY_PASSED):
        title = f"{f.kernel}: passes though a known failure is expected"
        said.append(Annotation("notice", title, f"{f.label} on {f.device_name}", files.get(f.kernel, "")))
    return said


def _verdict(model: ReportModel) -> str:
    if model.changes is None:
        return model.summary.sentence
    return f"{model.changes.sentence.rstrip('.')}. This run's results: {model.summary.sentence}"


def _failures(model: ReportModel, level: Level, files: Mapping[str, str]) -> list[Annotation]:
    """By kernel and verdict: one wrong line in a shader is hundreds of wrong variants."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for f in model.findings(Outcome.FAILURE):
        groups[f.kernel, f.verdict.value].append(f)
    made: list[Annotation] = []
    for (kernel, verdict), own in sorted(groups.items(), key=lambda item: -len(item[1])):
        devices = _listed(list(dict.fromkeys(f.device_name for f in own)))
        first = own[0]
        why = f"{first.label}: {first.reason or first.note}. Repeat: {first.repro}"
        title = f"{kernel}: {plural(len({f.case_id for f in own}), 'variant')} {verdict} on {devices}"
        made.append(Annotation(level, title, why, files.get(kernel, "")))
    return made


def _cause(card: Card, level: Level, file: str) -> Annotation:
    number = plural(len(card.entries), "finding") if card.entries else "all variants together"
    what = name(card.group.what)
    kind = f"One phone alone {what}" if card.group.cause == "device" else what.capitalize()
    why = [] if card.group.cause == "device" else [cause_of(card)]
    title = f"{kind}: {', '.join(part for part in (number, card.change, *why) if part)}"
    second = f" {card.confirmed}." if card.confirmed else ""
    return Annotation(level, title, f"{card.sentence}.{second}", file)


def _file(card: Card, kernels: Mapping[str, str], files: Mapping[str, str]) -> str:
    """Where its variants are all of one kernel and its code changed: no edit of a file made a driver slow."""
    if card.group.cause != "code":
        return ""
    own = {kernels.get(e.finding.case_id, "") for e in card.entries}
    return files.get(own.pop(), "") if len(own) == 1 else ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

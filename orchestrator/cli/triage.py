"""``tilefarm triage``: what a person decides about findings, written to files that git keeps."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.analysis.alerts import alarm
from orchestrator.analysis.words import plural
from orchestrator.cli.decisions import triage_folder
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, result, say
from orchestrator.cli.person import person
from orchestrator.cli.triage_list import decided, document, lines
from orchestrator.domain.errors import UsageError
from orchestrator.domain.finding import Findings, TriageState
from orchestrator.domain.results import RunResults
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import from_json, to_json
from orchestrator.execution.run_folder import find_run, load_results
from orchestrator.triage.deciding import named
from orchestrator.triage.decision import EXPIRING, NEVER, Decision
from orchestrator.triage.folder import TriageError, TriageFolder
from reports.changes.naming import Names

USUAL_DAYS = 30
"""So long a finding is quiet where nobody says until when."""

triage = typer.Typer(invoke_without_command=True)

FindingsArgument = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Findings or groups; their beginning is enough.")
]
RunOption = Annotated[
    str, typer.Option("--run", help="Run id, 'latest' or a run's folder. Default: the newest judged run.")
]
OwnerOption = Annotated[str, typer.Option("--owner", help="Who looks after it. Default: you.")]
NoteOption = Annotated[str, typer.Option("--note", help="Why, for those who read the file.")]
LinkOption = Annotated[str, typer.Option("--link", help="Where more is said, e.g. an issue's address.")]
ExpiresOption = Annotated[
    str,
    typer.Option(
        "--expires", metavar="DATE", help=f"Last quiet day, or '{NEVER}'. Default: in {USUAL_DAYS} days."
    ),
]


@triage.callback()
def list_open(
    context: typer.Context,
    run: RunOption = "",
    all_of_them: Annotated[bool, typer.Option("--all", help="Also those that are decided.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Decide about findings: acknowledge, accept as the new baseline, noise, fixed. Without a word of these:
    list the findings of a run that nobody has dealt with, by group, with their ids.

    Example: tilefarm triage --all
    """
    if context.invoked_subcommand is not None:
        if run or all_of_them or as_json:
            raise UsageError(f"give options after the word: `tilefarm triage {context.invoked_subcommand} …`")
        return
    judged = _judged(Settings(), run)
    today = datetime.now(UTC).date()
    found = decided(judged.findings, judged.decisions, judged.results.run.started_at)
    open_ones = [f for f in found if alarm(f, today)]
    shown = found if all_of_them else open_ones
    if as_json:
        print_json(document(judged.findings, shown, today, judged.labels))
        return
    for line in lines(judged.findings, shown, today, judged.labels, everything=all_of_them):
        result.print(line, markup=False, soft_wrap=True)
    quiet = len(found) - len(open_ones)
    result.print(f"{len(open_ones)} open, {quiet} decided or expected; run {judged.findings.run_id}")


@triage.command()
def acknowledge(
    ids: FindingsArgument,
    owner: OwnerOption = "",
    note: NoteOption = "",
    link: LinkOption = "",
    expires: ExpiresOption = "",
    run: RunOption = "",
    as_json: JsonOption = False,
) -> None:
    """Somebody looks after it: no alert until the date, then again.

    Example: tilefarm triage acknowledge 4e11d3a3 --owner ana --expires 2027-01-31
    """
    _decide("acknowledged", ids, _Words(owner, note, link, expires), run, as_json=as_json)


@triage.command()
def accept(
    ids: FindingsArgument,
    owner: OwnerOption = "",
    note: NoteOption = "",
    link: LinkOption = "",
    run: RunOption = "",
    as_json: JsonOption = False,
) -> None:
    """It stays like this: the first run that shows the shift begins a new baseline.

    Example: tilefarm triage accept 4e11d3a3 --note 'the price of the new rounding'
    """
    _decide("accepted", ids, _Words(owner, note, link), run, as_json=as_json)


@triage.command()
def noise(
    ids: FindingsArgument,
    owner: OwnerOption = "",
    note: NoteOption = "",
    link: LinkOption = "",
    expires: ExpiresOption = "",
    run: RunOption = "",
    as_json: JsonOption = False,
) -> None:
    """Nothing changed there: no alert until the date; it is counted.

    Example: tilefarm triage noise 4e11d3a3 --note 'the shelf was in the sun'
    """
    _decide("noise", ids, _Words(owner, note, link, expires), run, as_json=as_json)


@triage.command()
def fixed(
    ids: FindingsArgument,
    owner: OwnerOption = "",
    note: NoteOption = "",
    link: LinkOption = "",
    run: RunOption = "",
    as_json: JsonOption = False,
) -> None:
    """The cause is gone: a run that starts from now on and shows it all the same alerts again.

    Example: tilefarm triage fixed 4e11d3a3 --link https://example.org/pull/8
    """
    _decide("fixed", ids, _Words(owner, note, link), run, as_json=as_json)


@triage.command()
def reopen(
    ids: FindingsArgument,
    owner: OwnerOption = "",
    note: NoteOption = "",
    link: LinkOption = "",
    run: RunOption = "",
    as_json: JsonOption = False,
) -> None:
    """Take back what was decided: it alerts again, and an accepted shift has its old baseline.

    Example: tilefarm triage reopen 4e11d3a3 --note 'no noise: three phones show it'
    """
    _decide("new", ids, _Words(owner, note, link), run, as_json=as_json)


@triage.command()
def check(
    folder: Annotated[Path | None, typer.Argument(help="Default: TILEFARM_TRIAGE, else ./triage.")] = None,
) -> None:
    """Prove all files of decisions, as after an edit or a merge by hand; for CI.

    Exit code 2 with FILE:LINE and what is wrong.

    Example: tilefarm triage check
    """
    where = folder or Settings().triage or Path("triage")
    if not where.is_dir():
        raise UsageError(f"{where}: no folder of decisions; `tilefarm triage acknowledge ID` makes one")
    problems: list[str] = []
    count = 0
    for suite in sorted(p for p in where.iterdir() if p.is_dir() and not p.name.startswith(".")):
        decisions, wrong = TriageFolder(where, suite.name).load_what_can_be()
        problems += wrong
        count += sum(len(d.subjects) for d in decisions)
    if problems:
        raise TriageError(problems)
    say(f"{where}: decisions about {count} findings, all in order")


@dataclass(frozen=True, slots=True)
class _Words:
    """What the person says."""

    owner: str
    note: str
    link: str
    expires: str = ""


@dataclass(frozen=True, slots=True)
class _Judged:
    """A run with its findings, and what was decided about those of its suite."""

    results: RunResults
    findings: Findings
    labels: Mapping[str, str]
    folder: TriageFolder
    decisions: Sequence[Decision]


def _judged(settings: Settings, run: str) -> _Judged:
    path = find_run(settings.out, run) if run else _newest(settings.out)
    path = path if path.is_dir() else path.parent
    file = path / "findings.json"
    if not file.is_file():
        raise UsageError(
            f"run {path.name} has no findings: it is a part of a suite, the first of its suite, or not "
            "finished. Give another one with --run"
        )
    findings = from_json(Findings, file.read_bytes(), str(file))
    results = load_results(path)
    folder = triage_folder(settings, results.run)
    labels = Names({case_id: info.case for case_id, info in results.cases.items()}).labels
    return _Judged(results, findings, labels, folder, folder.load())


def _newest(out: Path) -> Path:
    there = sorted(p.parent for p in (out / "runs").glob("*/findings.json"))
    if not there:
        raise UsageError(
            f"{out / 'runs'}: no run has findings yet; they begin with the second whole run of a suite"
        )
    return there[-1]


def _decide(state: TriageState, ids: Sequence[str], words: _Words, run: str, *, as_json: bool) -> None:
    now = datetime.now(UTC)
    judged = _judged(Settings(), run)
    found = named(ids, judged.findings, judged.labels, judged.decisions)
    decision = Decision(
        state=state,
        owner=words.owner.strip() or person(),
        about=found.about,
        run=judged.findings.run_id,
        decided=now.isoformat(timespec="seconds"),
        subjects=found.subjects,
        note=words.note,
        link=words.link,
        expires=_expires(words.expires, now.date()) if state in EXPIRING else "",
    )
    changed = judged.folder.put(decision)
    if as_json:
        print_json({"decision": json.loads(to_json(decision)), "files": [str(path) for path in changed]})
        return
    until = f" until {decision.expires}" if decision.expires else ""
    say(f"{state}{until}: {plural(len(found.subjects), 'finding')} ({found.about})")
    names = ", ".join(str(path) for path in changed)
    say(f"to commit: {names}. `tilefarm report {judged.findings.run_id}` renews the run's reports")


def _expires(text: str, today: date) -> str:
    """
    Raises:
        UsageError: no date, or one that has passed.
    """
    if not text:
        return (today + timedelta(days=USUAL_DAYS)).isoformat()
    if text == NEVER:
        return ""
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--expires {text}: a date such as 2027-01-31, or '{NEVER}'") from None
    if found < today:
        raise UsageError(f"--expires {text}: has passed")
    return found.isoformat()

"""Why each job of a farm still waits, in words, and when it should begin and end. Pure.

A job is what one run has left on one target: a device, or any phone of a SoC.
"""

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrator.analysis.words import plural
from orchestrator.domain.names import LANES, Lane
from orchestrator.domain.run_state import ENDED, RunState, Target
from orchestrator.execution.forecast import Forecast, Work, forecast
from orchestrator.execution.matches import Match, Phones, Seen, matching, running, seconds_since
from orchestrator.execution.turns import earlier_own, shares_phones

CASE_S = 5.0
"""Of a case whose plan has no estimate."""


@dataclass(frozen=True, slots=True)
class Pending:
    run_id: str
    suite: str
    user: str
    lane: Lane
    target: str
    """For people; empty while nobody has planned where the run goes."""
    cases: int
    """Left; 0 while nobody has planned them."""
    since: str
    """UTC, ISO 8601: since when it waits; empty while a batch of it runs."""
    why: list[str]
    matches: list[Match] = field(default_factory=list[Match])
    begins_s: float | None = None
    """In seconds from now; 0 while a batch of it runs. None: nobody can tell."""
    ends_s: float | None = None


def pending(seen: Seen, now: datetime) -> list[Pending]:
    """All jobs that are left: on demand before nightly, older runs first."""
    runs = [run for run in seen.runs if run.phase not in ENDED]
    phones = Phones(seen, runs, now)
    living = [(run, target) for run in runs if run.live for target in run.targets if target.left > 0]
    wanted = dict.fromkeys(device_id for _, target in living for device_id in target.devices)
    expected = forecast([_work(*job, now) for job in living], map(phones.place, wanted))
    found = [_living(run, t, seen, phones, cast) for (run, t), cast in zip(living, expected, strict=True)]
    for run in runs:
        if not run.live:
            found += _nobodys(run, seen, phones)
        elif not run.targets:
            found.append(_unplanned(run, f"it is being prepared on {run.host}"))
    started = {run.run_id: run.started_at for run in runs}
    return sorted(found, key=lambda p: (LANES.index(p.lane), started[p.run_id], p.run_id))


def _living(run: RunState, target: Target, seen: Seen, phones: Phones, cast: Forecast) -> Pending:
    matches = phones.matches(target)
    match_words = matching(matches, phones.noun(target))
    if running(target):
        why = ["a batch of it runs", *([match_words] if len(matches) > 1 else [])]
    else:
        why = [match_words, *_ahead(run, target, seen.runs)]
        if target.why and all(target.why not in words for words in why):
            why.append(f"its worker says: {target.why}")
    return Pending(
        run_id=run.run_id,
        suite=run.suite,
        user=run.user,
        lane=run.lane,
        target=_named(target),
        cases=target.left,
        since=target.waiting_since,
        why=why,
        matches=matches,
        begins_s=_told(0.0 if running(target) else cast.begins_s),
        ends_s=_told(cast.ends_s),
    )


def _ahead(run: RunState, target: Target, runs: Iterable[RunState]) -> list[str]:
    """Which other runs have, or share, the turn."""
    if (own := earlier_own(run, target, runs)) is not None:
        return [f"after {own.run_id} of the same person"]
    rivals = [
        other
        for other in runs
        if other.live and other.run_id != run.run_id and other.phase not in ENDED
        if any(t.left > 0 and shares_phones(target, t) for t in other.targets)
    ]
    first = [r for r in rivals if LANES.index(r.lane) < LANES.index(run.lane)]
    turns = [r for r in rivals if r.lane == run.lane and r.user != run.user]
    words = [f"behind {_runs_of(first)} on demand"] if first else []
    return words + ([f"takes turns with {_runs_of(turns)}"] if turns else [])


def _runs_of(runs: Sequence[RunState]) -> str:
    return f"{plural(len(runs), 'run')} of {plural(len({r.user for r in runs}), 'person', 'people')}"


def _nobodys(run: RunState, seen: Seen, phones: Phones) -> list[Pending]:
    """No process carries the run out."""
    host = seen.orchestrators[0].host if seen.orchestrators else ""
    if run.phase == "submitted" or run.run_id in seen.submitted:
        why = (
            f"the orchestrator on {host} has not begun it"
            if run.phase == "submitted"
            else f"nobody carries it out now: the orchestrator on {host} starts it again"
        )
        why = why if host else "no orchestrator serves this farm now: start `tilefarm orchestrator`"
    else:
        command = f"tilefarm run --resume {shlex.quote(run.run_id)}"
        why = f"its run is not carried out by anybody now: `{command}` on {run.host} goes on with it"
    left = [target for target in run.targets if target.left > 0]
    if not left:
        return [_unplanned(run, why)]
    return [
        replace(
            _unplanned(run, why),
            target=_named(target),
            cases=target.left,
            matches=phones.matches(target),
        )
        for target in left
    ]


def _unplanned(run: RunState, why: str) -> Pending:
    return Pending(run.run_id, run.suite, run.user, run.lane, "", 0, run.updated_at, [why])


def _work(run: RunState, target: Target, now: datetime) -> Work:
    return Work(
        run_id=run.run_id,
        user=run.user,
        lane=run.lane,
        started_at=run.started_at,
        devices=tuple(target.devices),
        left_s=target.left_s if target.left_s > 0 else target.left * CASE_S,
        shared=not target.device_id,
        waited_s=seconds_since(target.waiting_since, now),
        running=running(target),
    )


def _named(target: Target) -> str:
    """Phones of one model share their name."""
    named = target.name or target.soc
    return f"{named} ({target.device_id})" if target.device_id else named


def _told(seconds: float) -> float | None:
    return round(seconds, 1) if math.isfinite(seconds) else None

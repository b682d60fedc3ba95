"""Since when a finding is so, and what was new in that night."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import assert_never

import numpy as np

from orchestrator.analysis.speed.causes import Cause as Why
from orchestrator.analysis.speed.causes import Evidence, attribute
from orchestrator.analysis.speed.confirm import Answer
from orchestrator.analysis.speed.levels import steps
from orchestrator.analysis.speed.rows import Bools, Floats
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.domain.finding import Cause
from orchestrator.verdicts.speed import Judged

CAUSES: Mapping[Why, Cause] = {
    Why.CODE: "code",
    Why.DRIVER: "driver",
    Why.DEVICE: "device",
    Why.ENVIRONMENT: "environment",
}
_NAME = re.compile(r"[^\s;,()@/]+")
_VERSION = re.compile(r"\d+\.\d+")
MAX_NEW = 2
"""Words of new software that a sentence names."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Of the level that a series has tonight."""

    night: int
    """The first at it."""
    before: int
    """The last one before it that has what was compared; −1: none."""
    cause: Cause
    changed: str
    """``driver 0744.1``, ``code``, ``compiler 11:14.0.0``, ``code and driver 0744.1``; empty: nothing."""
    why: str


def origin_of(judged: Judged, test: int, showing: Sequence[int], delta: float, sd: float) -> Origin:
    """
    Args:
        showing: series of a test, the one that stands for them first.
        sd: of one night of their mean.
    """
    marked = _marked(judged, showing)
    found = [s for s in steps(_levels(judged, showing), sd, marked) if (s.size > 0) == (delta > 0)]
    night = found[-1].night if found else _first_said(judged, showing, delta)
    table = judged.nights.table
    lead = next((s for s in showing if isfinite(table.log_ns[s, night])), showing[0])
    return what_was_new(
        judged, lead, night, None, judged.able(test), len(showing), judged.in_turns(test, showing)
    )


def what_was_new(
    judged: Judged,
    series: int,
    night: int,
    known: Bools | None = None,
    phones: int = 2,
    showing: int = 2,
    turns: Answer | None = None,
) -> Origin:
    """In ``night`` on the phone of a series, since the last one before that has what is compared. What came
    to nothing says nothing of its code: it was refused before it had any, or new code came with it.

    Args:
        known: (nights,) that have what is compared; None: a number.
    """
    code = judged.nights.table.code[series]
    there = np.flatnonzero(numbered(judged, series) if known is None else known)
    at = int(np.searchsorted(there, night))
    before = int(there[at - 1]) if at else -1
    first = int(there[at]) if at < len(there) else night
    old, new = judged.environment(series, before), judged.environment(series, first)
    code_changed = before >= 0 and bool(code[before] != code[first])
    compilers = judged.nights.other_compiler(series, before, first) if before >= 0 else None
    found = attribute(
        Evidence(
            code_changed=code_changed,
            before=old if before >= 0 else new,
            after=new,
            phones=phones,
            showing=showing,
            turns=turns,
            compilers=compilers,
        )
    )
    software = new_software((old.driver, old.os_build), (new.driver, new.os_build)) if before >= 0 else ""
    cause = CAUSES[found.cause]
    match cause:
        case "code":
            new_code = code_changed and turns is not Answer.SAME
            compiler = f"compiler {_new(*compilers)}" if compilers is not None else ""
            changed = " and ".join(filter(None, ("code" if new_code else "", compiler, software)))
            why = found.why
            if software and turns not in (Answer.DIFFERENT, Answer.SAME):
                why = f"{changed} are new" + (": measure both codes in turns" if new_code else "")
        case "driver":
            not_code = "measured in turns the codes do not differ; " if code_changed else ""
            changed, why = software, f"{not_code}{software} is new"
        case "device" | "environment":
            changed, why = software, found.why
        case _:
            assert_never(cause)
    return Origin(night, before, cause, changed, why)


def numbered(judged: Judged, series: int) -> Bools:
    """(nights,) in which a series has a number."""
    return np.isfinite(judged.nights.table.log_ns[series])


def _levels(judged: Judged, showing: Sequence[int]) -> Floats:
    """(nights,) Mean over the phones of each one's log ratio to its baseline, in this baseline's epoch."""
    rows: list[Floats] = []
    for s in showing:
        nights, own = judged.baseline(s), judged.values[s]
        epoch = judged.nights.epoch[s]
        level = float(own[nights].mean()) if nights else float(own[-1])
        # What came before the baseline is of another season; another clock is another machine.
        there = (epoch == epoch[-1]) & (np.arange(len(own)) >= (nights[0] if nights else 0))
        there &= judged.nights.table.basis[s] == judged.nights.table.basis[s, -1]
        rows.append(np.where(there, own - level, np.nan))
    stacked = np.stack(rows)
    known = np.isfinite(stacked)
    count = known.sum(axis=0)
    mean = np.where(known, stacked, 0.0).sum(axis=0) / np.maximum(count, 1)
    return np.where(count > 0, mean, np.nan)


def _marked(judged: Judged, showing: Sequence[int]) -> Bools:
    """(nights,) Code, its compiler, driver or OS build is another than in the last night with a number."""
    table = judged.nights.table
    found = np.zeros(len(table.runs), np.bool_)
    for s in showing:
        there = np.flatnonzero(numbered(judged, s))
        builds = judged.nights.os_build[s]
        for earlier, night in zip(there[:-1].tolist(), there[1:].tolist(), strict=True):
            found[night] |= (
                table.code[s, earlier] != table.code[s, night]
                or table.driver[s, earlier] != table.driver[s, night]
                or builds[earlier] != builds[night]
                or judged.nights.other_compiler(s, earlier, night) is not None
            )
    return found


def _first_said(judged: Judged, showing: Sequence[int], delta: float) -> int:
    """The first of the last nights in a row that said the same; tonight where none did before."""
    said = judged.nights.said
    code = SPEEDS.index(Speed.REGRESSED if delta > 0 else Speed.IMPROVED)
    night = said.shape[1] - 1
    for earlier in range(night - 1, -1, -1):
        there = [s for s in showing if isfinite(judged.nights.table.log_ns[s, earlier])]
        if not there:
            continue  # a night without a number ends nothing
        if not any(said[s, earlier] == code for s in there):
            break
        night = earlier
    return night


def new_software(before: tuple[str, str], after: tuple[str, str]) -> str:
    """The versions that are new in (driver, OS build), in few words: ``driver 0744.1``. Both APIs of a phone
    name its driver's version, each in another sentence."""
    words = [
        f"{what} {_new(old, new)}"
        for what, old, new in zip(("driver", "OS build"), before, after, strict=True)
        if old != new
    ]
    return " and ".join(words)


def _new(old: str, new: str) -> str:
    known = set(_NAME.findall(old))
    fresh = [word for word in dict.fromkeys(_NAME.findall(new)) if word not in known]
    versions = [word for word in fresh if _VERSION.search(word)]
    numbers = [word for word in fresh if any(c.isdigit() for c in word)]
    return " ".join((versions or numbers or fresh)[:MAX_NEW]) or new or "unknown"


def noise(judged: Judged, test: int, series: int | None) -> float:
    """Standard error of one night's delta of a test, or of one phone's series."""
    se = judged.night.pooled.se[test] if series is None else judged.night.deltas.se[series]
    return float(se) if isfinite(se) else 0.0

"""Nights: which are due by a schedule, which were missed. Pure, and in UTC alone: zones and their summer
time do not exist here.

A night's id is its suite and the UTC date on which it is due, so that nothing makes two of them: no second
beat, no second orchestrator, no late start, no clock that is set back, no changed hour.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from orchestrator.domain.errors import UsageError, WireError
from orchestrator.domain.moment import parse_time
from orchestrator.domain.results import MissedNight

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
"""In the order of ``date.weekday``."""
_SLOT = re.compile(
    r"(?P<suite>[A-Za-z0-9._-]{1,40})@(?:(?P<day>[A-Za-z]{3}) +)?(?P<hour>\d\d):(?P<minute>\d\d)"
)
NIGHT_ID = re.compile(r"\d{4}-\d\d-\d\d-[A-Za-z0-9._-]{1,40}")

NIGHT_KEY_PREFIX = "tilefarm:night:"
"""In Redis: night id → NightRecord, written by whoever was first."""
NIGHT_TTL_S = 40 * 24 * 3600

NightState = Literal["started", "finished", "failed", "missed"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One entry of a schedule."""

    suite: str
    at: time
    """UTC."""
    day: int | None = None
    """Of the week, Monday is 0; None: each."""

    def due_on(self, day: date) -> "Night | None":
        if self.day is not None and day.weekday() != self.day:
            return None
        return Night(self.suite, datetime.combine(day, self.at, UTC))

    def __str__(self) -> str:
        day = "" if self.day is None else f"{DAYS[self.day]} "
        return f"{self.suite}@{day}{self.at:%H:%M}"


@dataclass(frozen=True, slots=True, order=True)
class Night:
    suite: str
    due: datetime
    """UTC."""

    @property
    def night_id(self) -> str:
        return f"{self.due:%Y-%m-%d}-{self.suite}"

    @property
    def run_id(self) -> str:
        """The same whoever starts it and however often: a second start finds the folder of the first."""
        return f"{self.due:%Y%m%dT%H%M%SZ}-{self.suite}-night"


@dataclass(frozen=True, slots=True)
class NightRecord:
    """What became of a night; kept in ``OUT/nights`` of its orchestrator, and in Redis for all others."""

    night: str
    suite: str
    due: str
    """UTC, ISO 8601, as all times here."""
    state: NightState
    keeper: str
    """Whose night it is: the id of an orchestrator's OUT. Nobody else starts it."""
    host: str
    run_id: str = ""
    started_at: str = ""
    """When it was started first; its deadline counts from then."""
    deadline_s: float = 0.0
    starts: int = 0
    """Processes that were started for it: one more after each that died."""
    ended_at: str = ""
    verdict: str = ""
    exit_code: int | None = None
    why: str = ""
    """Of ``failed`` and ``missed``."""
    degraded: list[str] = field(default_factory=list[str])
    """As in RunInfo of its run, the first ones."""
    missed: list[MissedNight] = field(default_factory=list[MissedNight])
    """Nights of the suite that brought no results since the last one that did."""

    @property
    def has_results(self) -> bool:
        return self.state == "finished"

    def check(self, night: str) -> None:
        """Of what came from Redis: its id becomes a file's name, its times are read.

        Raises:
            WireError: it is no record of ``night``.
        """
        try:
            parse_time(self.due)
            parse_time(self.started_at or self.due)
        except ValueError as e:
            raise WireError(f"{night}: {e}") from e
        if self.night != night or not NIGHT_ID.fullmatch(night):
            raise WireError(f"{night[:80]!r}: a record of {self.night[:80]!r}, or no night's id")

    @property
    def closes_at(self) -> datetime:
        """From then on its report is made of what is there."""
        return parse_time(self.started_at) + timedelta(seconds=self.deadline_s)


@dataclass(frozen=True, slots=True)
class Decision:
    start: list[Night]
    missed: list[Night]


def parse_schedule(text: str) -> tuple[Slot, ...]:
    """``nightly@01:00, speed@Sun 03:00``: suites and UTC times, on each day or on one of the week.

    Raises:
        UsageError: an entry of another form, or two of one suite for one day (a date has one night of it).
    """
    slots: list[Slot] = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        found = _SLOT.fullmatch(entry)
        day = found["day"].capitalize() if found is not None and found["day"] else ""
        hour, minute = (int(found["hour"]), int(found["minute"])) if found is not None else (24, 0)
        if found is None or hour > 23 or minute > 59 or (day and day not in DAYS):
            raise UsageError(
                f"TILEFARM_NIGHTS: {entry!r}: expected SUITE@HH:MM or SUITE@DAY HH:MM in UTC, "
                f"e.g. nightly@01:00 or speed@Sun 03:00; days are {', '.join(DAYS)}"
            )
        slot = Slot(found["suite"], time(hour, minute), DAYS.index(day) if day else None)
        twin = next((s for s in slots if s.suite == slot.suite and _share_a_day(s, slot)), None)
        if twin is not None:
            raise UsageError(
                f"TILEFARM_NIGHTS: {twin} and {slot}: a suite has one night a day (UTC); "
                "leave one of them out"
            )
        slots.append(slot)
    return tuple(slots)


def _share_a_day(one: Slot, other: Slot) -> bool:
    return one.day is None or other.day is None or one.day == other.day


def due_nights(slots: Sequence[Slot], after: datetime, until: datetime) -> list[Night]:
    """Nights due later than ``after`` and not later than ``until``, by time."""
    after, until = after.astimezone(UTC), until.astimezone(UTC)
    days = range((until.date() - after.date()).days + 1)
    dates = [after.date() + timedelta(days=n) for n in days]
    nights = (night for day in dates for slot in slots if (night := slot.due_on(day)) is not None)
    return sorted((n for n in nights if after < n.due <= until), key=lambda n: (n.due, n.suite))


def decide(
    slots: Sequence[Slot], since: datetime, known: Collection[str], now: datetime, late: timedelta
) -> Decision:
    """What to do now about every night since ``since`` that nobody has a record of.

    Of each suite the newest is started unless it is more than ``late`` late; the others were missed. Asked
    again at the same time, with the answer among ``known``, it decides nothing.

    Args:
        since: nights due until then are no concern of this farm: it did not exist, or had another schedule.
        known: ids of nights that have a record.
    """
    open_nights = [n for n in due_nights(slots, since, now) if n.night_id not in known]
    newest = {n.suite: n for n in open_nights}
    start = [n for n in newest.values() if now - n.due <= late and not _passed(n, known, now)]
    return Decision(start, [n for n in open_nights if n not in start])


def _passed(night: Night, known: Collection[str], now: datetime) -> bool:
    """A later night of the suite has a record. One later than now was started by a clock that was ahead."""
    today = f"{now.astimezone(UTC):%Y-%m-%d}-{night.suite}"
    return any(night.night_id < k <= today for k in known if k[11:] == night.suite)


def missed_before(night: str, suite: str, records: Collection[NightRecord]) -> list[MissedNight]:
    """Nights of a suite without results, after the last one before ``night`` that has them; oldest first."""
    earlier = sorted(
        (r for r in records if r.suite == suite and r.night < night), key=lambda r: r.night, reverse=True
    )
    found: list[MissedNight] = []
    for record in earlier:
        if record.has_results:
            break
        found.append(MissedNight(record.night, record.why or "it has not ended yet"))
    return found[::-1]

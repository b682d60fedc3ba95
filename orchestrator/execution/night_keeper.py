"""An orchestrator's nights: which it must carry out now. It looks at its start, at each message of beat, and
by itself, so that a night hangs on none of them."""

import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import redis
import structlog

from orchestrator.domain.night import (
    NIGHT_TTL_S,
    Night,
    NightRecord,
    Slot,
    decide,
    missed_before,
    parse_schedule,
    parse_time,
)
from orchestrator.execution.night_folder import Kept, NightFolder
from orchestrator.storage.night_claims import NightClaims

MAX_STARTS = 20
"""Processes of one night; a look starts at most one, so that they are minutes apart."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class NightRules:
    slots: tuple[Slot, ...]
    deadline: timedelta
    late: timedelta

    @property
    def schedule(self) -> str:
        return ", ".join(str(slot) for slot in self.slots)


class NightKeeper:
    """Of one OUT. Several may look at once, in any order and as often as they like."""

    def __init__(
        self,
        folder: NightFolder,
        claims: NightClaims,
        rules: NightRules,
        host: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._folder = folder
        self._claims = claims
        self._rules = rules
        self._host = host
        self._now = now

    def look(self, at_work: Collection[str] = ()) -> list[NightRecord]:
        """Nights that nobody carries out and that this orchestrator has to: start a process for each.

        Without Redis no night begins, and those whose deadline has passed still get their report.

        Args:
            at_work: nights of which a process of the caller's lives, which may not have its lock yet.
        """
        with self._folder.alone("keeper") as alone:
            if not alone:
                return []
            now = self._now()
            reachable = True
            try:
                self._decide(now)
            except redis.RedisError as e:
                reachable = False
                log.warning("no night begins: Redis does not answer", error=str(e))
            kept = self._folder.kept()
            mine = [r for r in self._folder.all().values() if kept is not None and r.keeper == kept.keeper]
            open_ones = [r for r in mine if r.state == "started" and (reachable or now >= r.closes_at)]
            begun = [self._begin(r, now) for r in open_ones if r.night not in at_work]
            return [record for record in begun if record is not None]

    def give_up(self, night: str, why: str) -> None:
        """Its process said that it was called wrongly: trying again changes nothing."""
        with self._folder.alone(night) as alone:
            record = self._folder.get(night)
            if alone and record.state == "started":
                self._folder.replace(replace(record, state="failed", ended_at=_text(self._now()), why=why))

    def _decide(self, now: datetime) -> None:
        """Record every night that has become due since the last look.

        Raises:
            redis.RedisError: nothing was forgotten; the next look decides it.
        """
        kept = self._folder.kept()
        if kept is None:
            self._folder.keep(Kept(secrets.token_hex(8), self._rules.schedule, _text(now), _text(now)))
            return
        since = self._since(kept, now)
        records = self._reconciled(kept.keeper, since, now)
        decided = decide(parse_schedule(kept.schedule), since, records, now, self._rules.late)
        unseen = f"nobody looked between {_minute(since)} and {_minute(now)} UTC"
        for night in decided.missed:
            self._record(self._missed(night, kept.keeper, f"{unseen}, or Redis did not answer"))
        for night in decided.start:
            if night in (slot.due_on(night.due.date()) for slot in self._rules.slots):
                self._record(self._started(night, kept.keeper, now))
            else:
                why = f"the schedule was changed to {self._rules.schedule or 'none'} before it was started"
                self._record(self._missed(night, kept.keeper, why))
        changed = kept.schedule != self._rules.schedule
        set_at = _text(now) if changed else kept.set_at
        self._folder.keep(Kept(kept.keeper, self._rules.schedule, set_at, _text(now)))

    def _since(self, kept: Kept, now: datetime) -> datetime:
        """Nights due until then have a record. A clock that was ahead and was set back must hide none."""
        looked, set_at = parse_time(kept.looked_at), parse_time(kept.set_at)
        if looked <= now:
            return looked
        return max(set_at, now - self._rules.late) if set_at <= now else now - self._rules.late

    def _reconciled(self, keeper: str, since: datetime, now: datetime) -> dict[str, NightRecord]:
        """Records of this folder and of Redis, each where the other one lacks it."""

        def undecided(record: NightRecord) -> bool:
            """Told as missed by a clock that was ahead: it may come yet."""
            return record.state == "missed" and parse_time(record.due) > since

        for record in filter(undecided, self._folder.all().values()):
            self._folder.remove(record.night)
        claimed = self._claims.all()
        for record in claimed.values():
            theirs = record.keeper != keeper and not undecided(record)
            if theirs and not self._folder.create(record):
                self._give_way(record, keeper)
        remembered = now - timedelta(seconds=NIGHT_TTL_S)
        for record in self._folder.all().values():
            if record.keeper != keeper or parse_time(record.due) < remembered:
                continue
            if record.night not in claimed:
                self._claim(record)
            elif record != claimed[record.night] and claimed[record.night].keeper == keeper:
                self._claims.publish(record)
        return self._folder.all()

    def _record(self, record: NightRecord) -> None:
        if self._folder.create(record):
            self._claim(record)

    def _claim(self, record: NightRecord) -> None:
        """Where another orchestrator was first, the night is its."""
        counts = self._claims.claim(record)
        if counts.keeper != record.keeper:
            log.info("night of another orchestrator", night=record.night, host=counts.host)
            self._give_way(counts, record.keeper)
        elif counts != record:
            self._claims.publish(record)

    def _give_way(self, counts: NightRecord, keeper: str) -> None:
        """Another orchestrator's record replaces ours, unless a process was started for ours already."""
        ours = self._folder.get(counts.night)
        if ours.keeper != keeper or ours.starts == 0:
            self._folder.replace(counts)

    def _begin(self, record: NightRecord, now: datetime) -> NightRecord | None:
        """Count one more process for it, unless there is one, or there were too many."""
        with self._folder.alone(record.night) as alone:
            record = self._folder.get(record.night)
            if not alone or record.state != "started":
                return None
            if record.starts >= MAX_STARTS and now < record.closes_at:
                return None  # its report is made at the deadline
            if record.starts >= 2 * MAX_STARTS:
                why = f"{record.starts} processes ended without a report; {record.why or 'see their logs'}"
                self._folder.replace(replace(record, state="failed", ended_at=_text(now), why=why))
                return None
            begun = replace(record, starts=record.starts + 1, host=self._host)
            self._folder.replace(begun)
            return begun

    def _started(self, night: Night, keeper: str, now: datetime) -> NightRecord:
        missed = missed_before(night.night_id, night.suite, self._folder.all().values())
        return replace(
            self._missed(night, keeper, ""),
            state="started",
            run_id=night.run_id,
            started_at=_text(now),
            deadline_s=self._rules.deadline.total_seconds(),
            missed=missed,
        )

    def _missed(self, night: Night, keeper: str, why: str) -> NightRecord:
        return NightRecord(
            night.night_id, night.suite, _text(night.due), "missed", keeper, self._host, why=why
        )


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"

"""Which devices match a job, and what each of them does now, in words. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.analysis.words import plural
from orchestrator.domain.agent import AgentReport, PhoneReport
from orchestrator.domain.event import Registration
from orchestrator.domain.health import Condition
from orchestrator.domain.lease import Hold
from orchestrator.domain.moment import parse_time
from orchestrator.domain.run_state import RunState, Target
from orchestrator.domain.submission import Service
from orchestrator.execution.forecast import Place

DETAILS = 3
"""Of phones in one state so many are told in full."""
FREE, AT_WORK, HELD, UNSERVED = "free", "at work", "held", "without a worker"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a broker knows."""

    runs: Sequence[RunState]
    registrations: Mapping[str, Registration] = field(default_factory=dict[str, Registration])
    """By device id, as holds."""
    holds: Mapping[str, Hold] = field(default_factory=dict[str, Hold])
    agents: Sequence[AgentReport] = ()
    leased: Set[str] = frozenset()
    """Devices that somebody has in hand now."""
    submitted: Set[str] = frozenset()
    """Ids of runs that an orchestrator carries out."""
    orchestrators: Sequence[Service] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A device that may do a job."""

    device_id: str
    state: str
    """``free``, ``at work``, ``held``, ``without a worker``, or its health's condition."""
    why: str = ""


class Phones:
    """Devices of the farm, and what each of them does now."""

    def __init__(self, seen: Seen, runs: Iterable[RunState], now: datetime) -> None:
        self._seen = seen
        self._now = now
        self._reports: dict[str, tuple[AgentReport, PhoneReport]] = {}
        for agent in seen.agents:
            for phone in agent.phones:
                # Through one of its two links a phone may be well.
                if phone.device_id not in self._reports or phone.condition is Condition.ONLINE:
                    self._reports[phone.device_id] = (agent, phone)
        self._on: dict[str, str] = {}
        """Device → run whose batch it has in hand."""
        at_work = [(r, t) for r in runs if r.live for t in r.targets if t.left > 0 and running(t)]
        for run, target in at_work:
            if target.device_id:
                self._on[target.device_id] = run.run_id
        for device_id in seen.leased - self._on.keys():
            pools = [r.run_id for r, t in at_work if not t.device_id and device_id in t.devices]
            if len(pools) == 1:
                self._on[device_id] = pools[0]

    def matches(self, target: Target) -> list[Match]:
        return [self._match(device_id) for device_id in target.devices]

    def noun(self, target: Target) -> str:
        records = [r.record for i in target.devices if (r := self._seen.registrations.get(i)) is not None]
        return "device" if records and all(r.transport == "local" for r in records) else "phone"

    def place(self, device_id: str) -> Place:
        """For the forecast."""
        registration = self._seen.registrations.get(device_id)
        processor = registration.record.resource if registration else device_id
        match = self._match(device_id)
        if match.state in (FREE, AT_WORK):
            return Place(device_id, processor)
        _, phone = self._reports.get(device_id, (None, None))
        until = phone.until if phone and match.state == Condition.QUARANTINED else ""
        return Place(device_id, processor, max(0.0, seconds_until(until, self._now, unknown=math.inf)))

    def _match(self, device_id: str) -> Match:
        if (hold := self._seen.holds.get(device_id)) is not None:
            return Match(device_id, HELD, hold.sentence)
        agent, phone = self._reports.get(device_id, (None, None))
        if agent and phone and phone.condition is not Condition.ONLINE:
            why = f"{phone.why} until {phone.until}" if phone.until else phone.why
            return Match(device_id, phone.condition.value, why)
        if device_id not in self._seen.registrations:
            return Match(device_id, UNSERVED, f"it starts on {agent.host}" if agent else "no agent sees it")
        if (run_id := self._on.get(device_id)) is not None:
            return Match(device_id, AT_WORK, f"a batch of {run_id}")
        return Match(device_id, AT_WORK if device_id in self._seen.leased else FREE)


def matching(matches: Sequence[Match], noun: str) -> str:
    """``3 phones match: 2 hot (38.2 °C > 35 °C), 1 held by ann@desk since …: new battery``."""
    states: dict[str, list[Match]] = {}
    for match in matches:
        states.setdefault(match.state, []).append(match)
    if len(matches) == 1:
        return f"its {noun} is {_state_words(*states.popitem())}"
    told = ", ".join(f"{len(found)} {_state_words(state, found)}" for state, found in states.items())
    return f"{plural(len(matches), noun)} match" + (f": {told}" if told else "")


def _state_words(state: str, found: Sequence[Match]) -> str:
    whys = list(dict.fromkeys(m.why for m in found if m.why))
    if state == HELD and len(whys) == 1:
        return whys[0]
    details = "; ".join(whys[:DETAILS]) + (f"; and {len(whys) - DETAILS} more" if len(whys) > DETAILS else "")
    return f"{state} ({details})" if details else state


def running(target: Target) -> bool:
    return not target.waiting_since


def seconds_since(moment: str, now: datetime) -> float:
    """0 for what is no time, or lies ahead."""
    return max(0.0, -seconds_until(moment, now, unknown=0.0))


def seconds_until(moment: str, now: datetime, unknown: float) -> float:
    try:
        return (parse_time(moment) - now).total_seconds()
    except ValueError:
        return unknown

"""Accepted shifts: from which run on a series is held against its new self."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from orchestrator.triage.decision import Decision

NUMERICS = frozenset({"hash_changed", "nmse_doubled", "limit_crossed", "nondeterministic"})


@dataclass(frozen=True, slots=True)
class Restart:
    """A shift of a series that a person accepted."""

    since: str
    """First run of the new baseline."""
    seen_in: str
    """Last run that is known to show it: what was told as this shift up to then is part of the baseline."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """Accepted shifts by series; speed and numerics each have a baseline of their own."""

    of_phones: Mapping[tuple[Literal["speed", "numerics"], str, str], list[Restart]] = field(
        default_factory=dict[tuple[Literal["speed", "numerics"], str, str], list[Restart]]
    )
    """(speed or numerics, device id, case id) → of one phone."""
    of_socs: Mapping[tuple[Literal["speed", "numerics"], str, str], list[Restart]] = field(
        default_factory=dict[tuple[Literal["speed", "numerics"], str, str], list[Restart]]
    )
    """(speed or numerics, SoC, case id) → of each phone with that SoC."""

    @classmethod
    def of(cls, decisions: Iterable[Decision]) -> "Restarts":
        phones: dict[tuple[Literal["speed", "numerics"], str, str], list[Restart]] = {}
        socs: dict[tuple[Literal["speed", "numerics"], str, str], list[Restart]] = {}
        for decision in decisions:
            if decision.state != "accepted":
                continue
            for subject in decision.subjects:
                kind: Literal["speed", "numerics"] = "numerics" if subject.what in NUMERICS else "speed"
                into, whose = (phones, subject.device) if subject.device else (socs, subject.soc)
                restart = Restart(subject.since, max(decision.run, subject.since))
                into.setdefault((kind, whose, subject.case_id), []).append(restart)
        return cls(phones, socs)

    def __bool__(self) -> bool:
        return bool(self.of_phones or self.of_socs)

    def of_series(
        self, kind: Literal["speed", "numerics"], soc: str, device_id: str, case_id: str
    ) -> list[Restart]:
        """In no order; empty for nearly all."""
        return [
            *self.of_socs.get((kind, soc, case_id), ()),
            *self.of_phones.get((kind, device_id, case_id), ()),
        ]

"""What the canary vouched for: batches of one device and API around which a known answer came in time."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.analysis.outcome import JudgedTrial
from orchestrator.domain.verdict import Verdict

CANARY_REASON = "canary "
"""How the reason of a trial starts whose batch the canary did not vouch for (worker's session)."""


@dataclass(frozen=True, slots=True)
class CanaryFacts:
    """Latencies in ns of the canary on one device through one API."""

    api: str
    expected_ns: int
    factor: float
    low_ns: int
    high_ns: int
    batches: int
    """With different latencies; those whose results count."""
    trials: int
    """Whose results count because of it."""
    lost: int
    """Trials whose batch it did not vouch for."""

    @property
    def pace(self) -> float:
        """Slowest latency ÷ fastest one: how far apart the device's speeds lay; 1 where not known."""
        return self.high_ns / self.low_ns if self.low_ns else 1.0


def refused_by_canary(item: JudgedTrial) -> bool:
    trial = item.trial
    return trial.verdict is Verdict.INFRA and trial.reason.casefold().startswith(CANARY_REASON)


def canary_facts(trials: Iterable[JudgedTrial]) -> tuple[CanaryFacts, ...]:
    """Of one device's trials, one entry an API, in order seen."""
    groups: dict[str, list[JudgedTrial]] = defaultdict(list)
    for item in trials:
        if item.trial.canary is not None or refused_by_canary(item):
            groups[str(item.info.case.axes.get("api", ""))].append(item)
    return tuple(_facts(api, items) for api, items in groups.items())


def _facts(api: str, items: list[JudgedTrial]) -> CanaryFacts:
    counted = [i.trial.canary for i in items if i.trial.canary is not None and not refused_by_canary(i)]
    seen = [c for i in items if (c := i.trial.canary) is not None]
    latencies = [ns for c in seen for ns in (c.before_ns, c.after_ns)]
    return CanaryFacts(
        api=api,
        expected_ns=max((c.expected_ns for c in seen), default=0),
        factor=max((c.factor for c in seen), default=0.0),
        low_ns=min(latencies, default=0),
        high_ns=max(latencies, default=0),
        batches=len({(c.before_ns, c.after_ns) for c in counted}),
        trials=len(counted),
        lost=sum(refused_by_canary(i) for i in items),
    )

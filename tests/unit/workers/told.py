"""What a run's dispatcher reads of what workers told."""

from contextlib import closing

from orchestrator.domain.event import Progress
from orchestrator.domain.trial import Trial
from orchestrator.execution.broker import Broker


def events(redis_url: str, run_id: str) -> list[Trial | Progress | None]:
    with closing(Broker(redis_url)) as broker:
        return [event for _, event in broker.events(run_id, "0", 1)]


def trials(redis_url: str, run_id: str) -> list[Trial]:
    return [event for event in events(redis_url, run_id) if isinstance(event, Trial)]

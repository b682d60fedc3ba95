"""Commands that work on a farm and on nothing else."""

from orchestrator.domain.errors import UsageError
from orchestrator.domain.settings import Settings


def broker_url(settings: Settings, who: str, without: str = "") -> str:
    """``TILEFARM_BROKER``.

    Args:
        who: needs it.
        without: what a person without a farm does.

    Raises:
        UsageError: it is not set.
    """
    if not settings.broker:
        next_step = f". {without}" if without else ""
        raise UsageError(
            f"TILEFARM_BROKER is not set: {who} needs the farm's Redis, e.g. redis://localhost:6379/0{next_step}"
        )
    return settings.broker

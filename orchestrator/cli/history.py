"""The history that a command works with, loaded only by those that do: its libraries take half a second."""

from typing import TYPE_CHECKING

from orchestrator.domain.settings import Settings

if TYPE_CHECKING:
    from orchestrator.history.history import History


def open_history(settings: Settings) -> "History":
    """
    Raises:
        UsageError, InfraError: its database cannot be used.
    """
    from orchestrator.history.history import History

    return History(settings.history_url(), settings.out / "history")

"""After a batch that this phone cannot do, other work comes first, once.

Queues are asked in order of their lanes. A batch that is handed back would be the first one there again, and
again, for as long as no other phone takes it, and what waits for this phone in a later lane would never come.
"""

from collections.abc import Iterable

ORDER = f"{__name__}:StandBack"
"""For ``queue_order_strategy``."""
_behind: list[str] = []
"""The queue that a batch was handed back to, until the next one is taken; a process has one worker."""


def stand_back(queue: str) -> None:
    """Ask this queue last for the next batch."""
    _behind[:] = [queue]


class StandBack:
    """kombu's order of priority (``kombu.utils.scheduling``) with that one exception."""

    def __init__(self) -> None:
        self._queues: list[str] = []

    def update(self, queues: Iterable[str]) -> None:
        self._queues = list(queues)

    def consume(self, n: int) -> list[str]:
        """In which order to ask."""
        return sorted(self._queues[:n], key=lambda queue: queue in _behind)

    def rotate(self, last_used: str) -> None:
        """Called with each message that is taken."""
        del last_used
        _behind.clear()

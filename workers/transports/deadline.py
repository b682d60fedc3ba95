"""One total deadline for a whole call, however many reads and writes it takes."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from orchestrator.domain.errors import DeadlineExceeded


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point of the monotonic clock; ``left`` raises once it has passed."""

    what: str
    """Who waits for what, for the message: ``emulator-5554: pull /data/…``."""
    limit_s: float
    at_s: float
    clock: Callable[[], float] = field(default=time.monotonic)

    @classmethod
    def after(cls, limit_s: float, what: str, clock: Callable[[], float] = time.monotonic) -> "Deadline":
        return cls(what, limit_s, clock() + limit_s, clock)

    def left(self) -> float:
        """Seconds that remain, always more than zero.

        Raises:
            DeadlineExceeded: none remain.
        """
        rest = self.at_s - self.clock()
        if rest <= 0:
            raise self.exceeded()
        return rest

    def exceeded(self) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"{self.what}: not done after {self.limit_s:g} s. Likely a loose cable, a dialog on the "
            "phone's screen, or a device or host under heavy load; look there, then run it again."
        )


class IdleWatch:
    """The nearer of a total deadline and the time without any output."""

    def __init__(self, total: Deadline, idle_s: float | None) -> None:
        self.total = total
        self._idle_s = idle_s
        self._idle = self._fresh()

    def _fresh(self) -> Deadline | None:
        if self._idle_s is None:
            return None
        what = f"{self.total.what}: silent"
        return Deadline.after(self._idle_s, what, self.total.clock)

    def heard(self) -> None:
        """Output came: the idle time starts again."""
        self._idle = self._fresh()

    def left(self) -> float:
        total = self.total.left()
        return total if self._idle is None else min(total, self._idle.left())

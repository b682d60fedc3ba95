"""What a run suffered though it has its results: a worker that lived, took nothing and was replaced."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import StringConstraints

from orchestrator.domain.errors import WireError
from orchestrator.domain.limits import Limits, Line, check
from orchestrator.domain.moment import parse_time


@dataclass(frozen=True, slots=True)
class Degraded:
    """Left for a device by whoever replaced its worker."""

    at: str
    """UTC, ISO 8601, by the clock of Redis."""
    why: str

    @property
    def moment(self) -> datetime:
        return parse_time(self.at)

    def sentence(self, device_id: str) -> str:
        return f"{device_id} at {self.at}: {self.why}"

    def check(self, where: str) -> None:
        """Of what came from Redis.

        Raises:
            WireError: it has no time, or is too long for people.
        """
        check(_Degraded, self, where)
        try:
            parse_time(self.at)
        except ValueError as e:
            raise WireError(f"{where}: {e}") from e


class _Degraded(Limits):
    at: Annotated[str, StringConstraints(max_length=40)]
    why: Line

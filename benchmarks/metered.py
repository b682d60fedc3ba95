"""A device whose calls are timed: what goes to it, how long it takes, and what the runner says."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from workers.transports.base import MAX_PULL_BYTES, CommandResult, Device

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    what: str
    began_s: float
    ended_s: float

    @property
    def took_s(self) -> float:
        return self.ended_s - self.began_s


@dataclass(frozen=True, slots=True)
class Line:
    """A record of the runner, and when it came."""

    at_s: float
    record: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return str(self.record.get("type", ""))

    def spent_s(self, *, without: Sequence[str] = ()) -> float:
        """In the stages of a case that ended well, but for those named."""
        stages: Mapping[str, int] = self.record.get("timing", {}).get("spent_ns", {})
        return sum(ns for stage, ns in stages.items() if stage not in without) / 1e9


@dataclass(slots=True)
class Metered:
    """Implements :class:`workers.transports.base.Device` on another one."""

    device: Device
    calls: list[Call] = field(default_factory=list[Call])
    lines: list[Line] = field(default_factory=list[Line])

    @property
    def serial(self) -> str:
        return self.device.serial

    @property
    def workdir(self) -> str:
        return self.device.workdir

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        return self._timed(f"run {argv[0]}", lambda: self.device.run(argv, timeout_s=timeout_s, env=env))

    def stream(
        self,
        argv: Sequence[str],
        on_line: Callable[[bytes], None],
        *,
        timeout_s: float,
        idle_timeout_s: float,
        env: Mapping[str, str] | None = None,
    ) -> int:
        def heard(line: bytes) -> None:
            self.lines.append(Line(time.monotonic(), json.loads(line)))
            on_line(line)

        return self._timed(
            "stream",
            lambda: self.device.stream(
                argv, heard, timeout_s=timeout_s, idle_timeout_s=idle_timeout_s, env=env
            ),
        )

    def push(self, data: bytes, path: str, *, timeout_s: float, mode: int = 0o644) -> None:
        what = "push job" if path.endswith("/job.txt") else "push blob"
        self._timed(what, lambda: self.device.push(data, path, timeout_s=timeout_s, mode=mode))

    def pull(self, path: str, *, timeout_s: float, at_most: int = MAX_PULL_BYTES) -> bytes:
        return self._timed("pull", lambda: self.device.pull(path, timeout_s=timeout_s, at_most=at_most))

    def list_dir(self, path: str, *, timeout_s: float) -> Mapping[str, int]:
        return self._timed("list", lambda: self.device.list_dir(path, timeout_s=timeout_s))

    def remove(self, path: str, *, timeout_s: float) -> None:
        self._timed("remove", lambda: self.device.remove(path, timeout_s=timeout_s))

    def properties(self, *, timeout_s: float) -> Mapping[str, str]:
        return self._timed("properties", lambda: self.device.properties(timeout_s=timeout_s))

    def _timed(self, what: str, call: Callable[[], T]) -> T:
        began = time.monotonic()
        try:
            return call()
        finally:
            self.calls.append(Call(what, began, time.monotonic()))

    def by_call(self, since_s: float) -> dict[str, tuple[int, float]]:
        """Call → how often and how long in all, of those that began after ``since_s``."""
        found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        for call in self.calls:
            if call.began_s >= since_s:
                count, total = found[call.what]
                found[call.what] = count + 1, total + call.took_s
        return dict(found)

"""Live progress of a run: per device cases done, verdicts, time left; plain lines without a terminal."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table

from orchestrator.domain.event import Progress
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from reports.text import visible

PLAIN_EVERY_S = 10.0


@dataclass(slots=True)
class _DeviceProgress:
    name: str
    total: int
    planned_s: float
    verdicts: Counter[Verdict] = field(default_factory=Counter[Verdict])
    lost: int = 0
    ended: int = 0
    """Unverified: what the runner said it finished, so that the display moves within a batch."""
    state: str = "queued"
    began: float | None = None

    @property
    def done(self) -> int:
        return sum(self.verdicts.values()) + self.lost

    @property
    def shown_state(self) -> str:
        return "done" if self.done >= self.total and not self.lost else self.state

    def left_s(self, now: float) -> float | None:
        """From the pace so far; from the plan before anything is done; None while it waits in its queue."""
        seen = max(self.done, min(self.ended, self.total))
        if seen >= self.total:
            return 0.0
        if self.began is None:
            return None
        if not seen:
            return self.planned_s or None
        return (now - self.began) / seen * (self.total - seen)


class LiveProgress:
    """A Watcher that draws on a console (stderr, so that stdout stays for results)."""

    def __init__(
        self,
        console: Console,
        devices: Mapping[str, tuple[str, int, float]],
        revive: Callable[[], None],
    ) -> None:
        """``devices``: id of a device or pool → (name for people, cases, planned seconds)."""
        self._console = console
        self._revive = revive
        self._devices = {i: _DeviceProgress(*given) for i, given in devices.items()}
        self._live = Live(console=console, refresh_per_second=4) if console.is_terminal else None
        self._next_plain = time.monotonic() + PLAIN_EVERY_S

    def __enter__(self) -> "LiveProgress":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.update(self._table())
            self._live.stop()
        else:
            self._plain()

    def trial(self, trial: Trial) -> None:
        if (device := self._devices.get(trial.target)) is not None:
            device.verdicts[trial.verdict] += 1

    def lost(self, target: str, cases: int, why: str) -> None:
        if (device := self._devices.get(target)) is not None:
            device.lost += cases
            device.state = why

    def progress(self, news: Progress) -> None:
        device = self._devices.get(news.target)
        if device is None:
            return
        match news.state:
            case "batch":
                device.began = device.began or time.monotonic()
                device.state = "running"
            case "waiting":
                device.state = f"waits for {news.detail}"
            case "started":
                device.state = "running"
            case "ended":
                device.ended += 1

    def tick(self) -> None:
        self._revive()
        if self._live is not None:
            self._live.update(self._table())
        elif time.monotonic() >= self._next_plain:
            self._next_plain = time.monotonic() + PLAIN_EVERY_S
            self._plain()

    def _plain(self) -> None:
        for device in self._devices.values():
            words = [
                f"{visible(device.name)}: {device.done}/{device.total}",
                _counts(device),
                _time(device.left_s(time.monotonic())),
                visible(device.shown_state),
            ]
            self._console.print(
                "  ".join(w for w in words if w),
                markup=False,
                highlight=False,
                soft_wrap=True,
            )

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, expand=False)
        for column in ("device", "done", "verdicts", "left", ""):
            table.add_column(column, justify="right" if column in ("done", "left") else "left")
        now = time.monotonic()
        for device in self._devices.values():
            table.add_row(
                visible(device.name),
                f"{max(device.done, min(device.ended, device.total))}/{device.total}",
                _counts(device),
                _time(device.left_s(now)),
                visible(device.shown_state),
            )
        return table


def _counts(device: _DeviceProgress) -> str:
    words = [f"{n} {v.value}" for v, n in sorted(device.verdicts.items(), key=lambda item: -item[1])]
    if device.lost:
        words.append(f"{device.lost} lost")
    return ", ".join(words)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} left" if seconds else ""

"""Plain progress lines, as a log gets them."""

import io

from rich.console import Console

from orchestrator.cli.live import LiveProgress
from orchestrator.domain.event import Progress


def lines(*news: Progress, planned_s: float = 75.0) -> list[str]:
    """What is printed at the end, after these events."""
    output = io.StringIO()
    with LiveProgress(Console(file=output), {"a": ("Phone A", 4, planned_s)}, lambda: None) as live:
        for event in news:
            live.progress(event)
    return output.getvalue().splitlines()


def test_a_queued_device_says_so_and_promises_no_time() -> None:
    assert lines() == ["Phone A: 0/4  queued"]


def test_a_waiting_device_says_for_what() -> None:
    assert (
        "waits for cpu@host" in lines(Progress("a", "batch"), Progress("a", "waiting", detail="cpu@host"))[0]
    )


def test_a_running_device_has_a_time() -> None:
    assert lines(Progress("a", "batch")) == ["Phone A: 0/4  1:15 left  running"]


def test_without_an_estimate_nothing_is_claimed() -> None:
    assert lines(Progress("a", "batch"), planned_s=0.0) == ["Phone A: 0/4  running"]

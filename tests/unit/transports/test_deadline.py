"""Deadlines by a clock of the test."""

import pytest

from orchestrator.domain.errors import DeadlineExceeded
from workers.transports.deadline import Deadline, IdleWatch


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_what_is_left_shrinks_and_then_raises():
    clock = Clock()
    deadline = Deadline.after(5, "phone: pull x", clock)
    clock.now_s += 2
    assert deadline.left() == 3
    clock.now_s += 3
    with pytest.raises(DeadlineExceeded, match=r"phone: pull x: not done after 5 s"):
        deadline.left()


def test_output_renews_the_idle_time_and_not_the_total():
    clock = Clock()
    watch = IdleWatch(Deadline.after(10, "phone: run", clock), 4)
    for _ in range(3):
        clock.now_s += 3
        watch.heard()
    assert watch.left() == 1
    clock.now_s += 2
    with pytest.raises(DeadlineExceeded, match="run: not done after 10 s"):
        watch.left()


def test_silence_is_told_from_slowness():
    clock = Clock()
    watch = IdleWatch(Deadline.after(10, "phone: run", clock), 4)
    clock.now_s += 5
    with pytest.raises(DeadlineExceeded, match="silent: not done after 4 s"):
        watch.left()


def test_without_idle_time_only_the_total_counts():
    clock = Clock()
    watch = IdleWatch(Deadline.after(10, "phone: run", clock), None)
    clock.now_s += 9
    assert watch.left() == 1

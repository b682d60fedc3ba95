"""Gates before a batch, and the wait for a phone that cools or charges, on a clock of our own."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import InfraError
from orchestrator.domain.health import Vitals
from workers.admission import POLL_S, admit
from workers.cooldown import seconds_until


@dataclass
class Shelf:
    """A phone on a shelf: ``reading`` gives its vitals at a time, and sleeping lets time pass."""

    reading: Callable[[float], Vitals]
    now: float = 0.0
    told: list[str] = field(default_factory=list[str])
    asked: int = 0

    def ask(self, at: float) -> Vitals:
        self.asked += 1
        return self.reading(at)

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds

    def admit(self, timeout_s: float = 1800.0) -> Vitals:
        return admit(
            "phone-1",
            self.ask,
            timeout_s=timeout_s,
            on_wait=self.told.append,
            clock=lambda: self.now,
            sleep=self.sleep,
        )


def newton(start_c: float, end_c: float, tau_s: float) -> Callable[[float], float]:
    return lambda at: end_c + (start_c - end_c) * math.exp(-at / tau_s)


def test_a_fit_phone_is_asked_once() -> None:
    shelf = Shelf(lambda at: Vitals(at, battery_percent=80, battery_c=30.0))
    assert shelf.admit().battery_c == 30.0
    assert (shelf.asked, shelf.told) == (1, [])


def test_a_phone_that_tells_nothing_is_not_kept_from_work() -> None:
    assert Shelf(Vitals).admit() == Vitals(0.0)


def test_a_hot_phone_is_waited_for_until_it_is_cool_and_no_longer() -> None:
    curve = newton(41.0, 27.0, 300.0)
    shelf = Shelf(lambda at: Vitals(at, battery_c=curve(at)))
    assert (shelf.admit().battery_c or 99) <= 33.0
    reached = 300.0 * math.log(14.0 / 6.0)
    assert reached <= shelf.now < reached + POLL_S
    assert shelf.told[0] == "hot: 41.0 °C > 35 °C"
    assert shelf.told[-1].startswith("hot: ")
    assert " s more" in shelf.told[4]


def test_an_empty_phone_is_named_with_both_numbers_when_time_is_up() -> None:
    shelf = Shelf(lambda at: Vitals(at, battery_percent=12, charging=False))
    with pytest.raises(InfraError, match=r"phone-1: low battery for 60 s: 12 % < 35 %, not charging"):
        shelf.admit(timeout_s=60.0)


@given(
    start=st.floats(36.0, 50.0),
    end=st.floats(20.0, 31.0),
    tau=st.floats(60.0, 1500.0),
    count=st.integers(4, 12),
)
def test_the_fit_foretells_when_it_is_cool(start: float, end: float, tau: float, count: int) -> None:
    curve = newton(start, end, tau)
    samples = [(10.0 * n, curve(10.0 * n)) for n in range(count)]
    if samples[-1][1] <= 33.0:
        assert seconds_until(samples, 33.0) == 0.0
        return
    truth = tau * math.log((start - end) / (33.0 - end)) - samples[-1][0]
    told = seconds_until(samples, 33.0)
    assert told is not None
    assert told == pytest.approx(truth, rel=0.15, abs=5.0)


@pytest.mark.parametrize(
    "samples",
    [
        [],
        [(0.0, 40.0), (10.0, 39.0), (20.0, 38.5)],
        [(10.0 * n, 40.0) for n in range(6)],
        [(10.0 * n, 38.0 + n) for n in range(6)],
        [(10.0 * n, newton(41.0, 36.0, 60.0)(10.0 * n)) for n in range(20)],
    ],
    ids=["none", "too few", "level", "rising", "ends above the target"],
)
def test_no_promise_where_there_is_none(samples: list[tuple[float, float]]) -> None:
    assert seconds_until(samples, 33.0) is None

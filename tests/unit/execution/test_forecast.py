"""When jobs begin and end, by the rules of turns."""

import math
from dataclasses import replace

import pytest

from orchestrator.execution.forecast import MOST_TURNS, Forecast, Place, Work, forecast
from orchestrator.execution.turns import AGE_S
from orchestrator.planning.plan import BATCH_S

A, B, C = Place("a", "a"), Place("b", "b"), Place("c", "c")


def work(
    run: str, user: str = "", devices: tuple[str, ...] = ("a",), minutes: float = 1.0, **more: object
) -> Work:
    shared = len(devices) > 1
    plain = Work(run, user or f"{run}@desk", "ondemand", run, devices, minutes * 60, shared=shared)
    return replace(plain, **more)


def minutes(found: list[Forecast]) -> list[tuple[float, float]]:
    return [(f.begins_s / 60, f.ends_s / 60) for f in found]


def test_an_idle_device_begins_at_once() -> None:
    assert minutes(forecast([work("r1", minutes=2.5)], [A])) == [(0, 2.5)]


def test_people_take_turns_batch_by_batch() -> None:
    """1,000 cases and 10 cases: the second person waits for one batch at most."""
    assert minutes(forecast([work("long", minutes=100), work("short", minutes=2)], [A])) == [(0, 102), (1, 4)]


def test_one_persons_runs_follow_each_other_beside_anothers() -> None:
    mine = [work("r1", "anna", minutes=3), work("r2", "anna", minutes=1)]
    assert minutes(forecast([*mine, work("r3", "ben", minutes=2)], [A])) == [(0, 5), (5, 6), (1, 4)]


def test_what_runs_now_has_a_batch_to_go() -> None:
    """An on-demand run during a nightly starts within one batch."""
    night = work("night", minutes=60, lane="nightly", running=True)
    assert minutes(forecast([night, work("now", minutes=2)], [A])) == [(0, 62), (1, 3)]


def test_nightly_work_has_a_turn_now_and_then_and_the_rest_afterwards() -> None:
    night = work("night", minutes=3, lane="nightly")
    (_, busy), (first, last) = minutes(forecast([work("day", minutes=30), night], [A]))
    assert AGE_S / 60 < first <= AGE_S / 60 + 1
    assert (busy, last) == (33, 19)


def test_nightly_work_that_has_waited_for_long_comes_sooner() -> None:
    night = work("night", minutes=1, lane="nightly", waited_s=AGE_S - BATCH_S / 2)
    assert minutes(forecast([work("day", minutes=30), night], [A]))[1] == (1, 2)


def test_phones_of_a_soc_share_what_any_of_them_may_do() -> None:
    assert minutes(forecast([work("r1", devices=("a", "b", "c"), minutes=30)], [A, B, C])) == [(0, 10)]


def test_a_phone_does_its_own_work_before_that_of_its_soc() -> None:
    shared = work("r1", devices=("a", "b"), minutes=6)
    assert minutes(forecast([shared, work("r2", minutes=2)], [A, B])) == [(0, 4), (0, 2)]


def test_devices_of_one_processor_work_one_after_another() -> None:
    places = [replace(A, processor="cpu"), replace(B, processor="cpu")]
    both = [work("r1", minutes=2), work("r1", devices=("b",), minutes=2)]
    assert sorted(minutes(forecast(both, places)))[-1][1] == 4
    assert minutes(forecast(both, [A, B])) == [(0, 2), (0, 2)]


def test_a_phone_that_comes_back_is_waited_for_and_one_that_may_not_is_no_help() -> None:
    later, never = replace(A, free_in_s=600.0), replace(B, free_in_s=math.inf)
    either = work("r1", devices=("a", "b"), minutes=1)
    lost = work("r2", devices=("b",))
    assert forecast([either, lost], [later, never]) == [Forecast(600, 660), Forecast(math.inf, math.inf)]


def test_a_device_that_nobody_knows_does_nothing() -> None:
    assert forecast([work("r1", devices=("gone",))], [A]) == [Forecast(math.inf, math.inf)]


def test_nothing_to_forecast() -> None:
    assert forecast([], [A]) == []


def test_a_batch_of_a_soc_that_runs_occupies_one_phone() -> None:
    runs = work("r1", devices=("a", "b"), minutes=1, running=True)
    assert minutes(forecast([runs, work("r2"), work("r3", devices=("b",))], [A, B])) == [
        (0, 1),
        (1, 2),
        (0, 1),
    ]


def test_a_farm_of_200_phones_and_nights_of_work_is_played_in_no_more_turns_than_people_wait_for() -> None:
    """MOST_TURNS bounds it; times become coarser, sums stay right."""
    names = [f"p{n}" for n in range(200)]
    works = [work(f"r{u}", devices=(name,), minutes=600) for name in names for u in range(3)]
    found = forecast(works, [Place(name, name) for name in names])
    assert max(f.ends_s for f in found) == pytest.approx(3 * 600 * 60)
    assert sum(w.left_s for w in works) / BATCH_S > 10 * MOST_TURNS

"""A night at two clocks is summarised at the one that its series usually has."""

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.domain.results import RunResults
from orchestrator.domain.trial import Sensors, Timing
from orchestrator.history.history import History
from orchestrator.history.query import night_table
from orchestrator.history.usual import usual_clocks
from tests.results_fixture import case, device, info, passing, results, run_info

POINT = case()
FAST, SLOW = 900_000_000, 600_000_000


def night(number: int, fast: int) -> RunResults:
    """1 ms at the fast clock; ``fast`` samples of 20 at it, the others after them at the slow one."""
    read = [FAST] * (fast + 1) + [SLOW] * (20 - fast)
    times = [round(1e6 * FAST / hz * (1.001 if i % 2 else 0.999)) for i, hz in enumerate(read[1:])]
    timing = Timing([1_000_000], 2_000_000, [t + 5000 for t in times], times, "trusted", 1_000_000, 10)
    run_id = f"202612{number:02d}T010000Z-nightly-aaaa"
    made = passing(POINT, "one", timing, run_id=run_id)
    return results(
        run=run_info(run_id, suite="nightly"),
        devices=[device("one")],
        infos=[info(POINT)],
        trials=[replace(made, sensors=Sensors(read, [30_000] * 21, False))],
    )


def test_a_night_that_was_mostly_slower_compares_with_the_nights_before(history: History) -> None:
    for number in (1, 2, 3):
        made = night(number, 20)
        assert history.store(made, usual_clocks(history, made))
    tonight = night(4, 8)
    usual = usual_clocks(history, tonight)
    assert usual == {("one", POINT.case_id): FAST}
    assert history.store(tonight, usual)
    table = night_table({run.run_id: history.path(run) for run in history.runs()})
    assert table.clock_hz[0].tolist() == [FAST] * 4
    assert np.exp(table.log_ns[0]) == pytest.approx([1e6] * 4, rel=0.002)


def test_storing_a_run_again_without_its_earlier_nights_leaves_it_as_it_is(history: History) -> None:
    first, tonight = night(1, 20), night(2, 8)
    history.store(first)
    history.store(tonight, usual_clocks(history, tonight))
    assert not history.store(tonight)


def test_an_earlier_file_that_is_damaged_costs_the_clocks_only(history: History) -> None:
    history.store(night(1, 20))
    history.path(history.runs()[0]).write_bytes(b"damaged")
    assert usual_clocks(history, night(2, 8)) == {}

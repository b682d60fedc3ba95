"""Questions to the history: series by nights, as the analysis reads them."""

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.domain.errors import InfraError
from orchestrator.history.history import History
from orchestrator.history.query import NightTable, night_table
from tests.unit.history.test_history import night

NIGHTS = [f"2026120{n}T010000Z-nightly-aaaa" for n in (1, 2, 3)]


def table(history: History) -> NightTable:
    return night_table({run.run_id: history.path(run) for run in history.runs()})


def test_each_series_is_a_row_and_each_night_a_column(history: History) -> None:
    for number, run_id in enumerate(NIGHTS):
        history.store(night(run_id, ns=1_000_000 * (number + 1)))
    found = table(history)
    assert found.runs == NIGHTS
    assert [device for device, _ in found.series] == ["one", "one", "two", "two"]
    assert np.exp(found.log_ns) == pytest.approx(np.tile([1e6, 2e6, 3e6], (4, 1)), rel=0.01)
    assert found.verdicts == ["pass"]
    assert (found.measured == 20).all()
    assert (found.code == found.code[:, :1]).all(), "the same code every night"
    assert len(set(found.code[:, 0].tolist())) == 2, "two cases, two codes"
    assert (found.distinct == 1).all()


def test_a_trial_that_is_not_there_is_nan_and_minus_one(history: History) -> None:
    history.store(night(NIGHTS[0]))
    second = night(NIGHTS[1])
    history.store(replace(second, trials=second.trials[:1]))
    found = table(history)
    assert np.isnan(found.log_ns[:, 1]).tolist() == [False, True, True, True]
    assert (found.code[1:, 1] == -1).all()
    assert (found.verdict[1:, 1] == -1).all()


def test_a_new_driver_is_seen_in_the_night_it_came(history: History) -> None:
    for number, run_id in enumerate(NIGHTS):
        made = night(run_id)
        driver = "Adreno 744" if number == 2 else "Adreno 740"
        history.store(replace(made, trials=[replace(t, driver=driver) for t in made.trials]))
    found = table(history)
    assert [found.drivers[n] for n in found.driver[0]] == ["Adreno 740", "Adreno 740", "Adreno 744"]


@pytest.mark.parametrize("died", [0, 1, 2])
def test_a_trial_that_died_before_it_named_its_driver_is_no_change_of_driver(
    history: History, died: int
) -> None:
    for number, run_id in enumerate(NIGHTS):
        made = night(run_id)
        trials = [replace(t, driver="" if number == died else "Adreno 740") for t in made.trials]
        history.store(replace(made, trials=[*trials[:-1], replace(trials[-1], driver="")]))
    found = table(history)
    assert [[found.driver_text(s, n) for n in range(3)] for s in range(len(found.series))] == [
        *[["Adreno 740"] * 3] * (len(found.series) - 1),
        [""] * 3,
    ]


def test_a_damaged_file_is_named_with_what_to_do(history: History) -> None:
    history.store(night(NIGHTS[0]))
    (run,) = history.runs()
    history.path(run).write_bytes(b"not parquet")
    with pytest.raises(InfraError, match="tilefarm db check"):
        table(history)

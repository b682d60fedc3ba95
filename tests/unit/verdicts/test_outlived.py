"""A shift that nobody accepted does not end by its baseline's age."""

from collections.abc import Sequence

import numpy as np
import pytest

from orchestrator.domain.finding import EVERYTHING, Findings
from orchestrator.history.database import StoredRun
from orchestrator.history.history import History
from orchestrator.triage.decision import Decision, subject_of
from orchestrator.triage.restarts import Restarts
from orchestrator.verdicts.decided import Decided
from orchestrator.verdicts.outlived import Lacking, outlived
from tests.unit.verdicts.small_farm import SLOW, SmallFarm, of_case, run_id, verdict

WINDOW = 8
"""Nights that are looked at here: seven before tonight."""


@pytest.fixture(autouse=True)
def _few_nights(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr("orchestrator.verdicts.nights.NIGHTS", WINDOW)


def ids(first: int, last: int) -> list[str]:
    return [run_id(n) for n in range(first, last + 1)]


def test_a_case_stays_slower_than_it_was(history: History) -> None:
    farm = SmallFarm(history, lambda n, _, case: 0.08 if n >= 10 and case == SLOW else 0.0)
    farm.nights(1, 9)
    told: list[Findings] = [farm.night(n) for n in range(10, 21)]
    assert [verdict(f) for f in told] == ["regressed"] * len(told)
    assert len({f.finding_id for night in told for f in of_case(night)}) == 1
    (last,) = of_case(told[-1])
    assert (last.since, last.baseline) == (run_id(10), ids(1, 9))
    assert told[-1].nights == ids(1, 10) + ids(13, 20)
    assert told[-1].counts["regressed"] == 1


def test_a_phone_as_a_whole_stays_slower_than_it_was(history: History) -> None:
    farm = SmallFarm(history, lambda n, _phone, _case: 0.06 if n >= 10 else 0.0)
    farm.nights(1, 9)
    told = [farm.night(n) for n in range(10, 21)]
    assert [[f.what for f in of_case(night, EVERYTHING)] for night in told] == [["regressed"]] * len(told)
    assert {f.since for night in told for f in of_case(night, EVERYTHING)} == {run_id(10)}


def test_what_was_accepted_is_no_baseline_of_an_older_season(history: History) -> None:
    """8 % since night 8, accepted in night 9, and 8 % more since night 15: that is held against nights 8 to
    14, not against what was before."""
    farm = SmallFarm(history, lambda n, _, case: 0.08 * ((n >= 8) + (n >= 15)) if case == SLOW else 0.0)
    shown = farm.nights(1, 9)
    (finding,) = of_case(shown)
    subjects = (subject_of(finding, ""),)
    accepted = Decision(
        "accepted", "ana", about="", run=shown.run_id, decided="2026-12-09T09:00:00+00:00", subjects=subjects
    )
    decided = Decided(restarts=Restarts.of([accepted]))
    (last,) = of_case(farm.nights(10, 23, decided))
    assert (last.since, last.baseline) == (run_id(15), ids(8, 14))


def test_nights_like_any_other_read_no_older_ones(history: History) -> None:
    assert SmallFarm(history).nights(1, 12).nights == ids(5, 12)


class Year:
    """Nights that were stored and never judged, or judged and empty of the series."""

    def __init__(self, *, judged: bool) -> None:
        self.asked: list[str] = []
        self._verdicts = "gone.parquet" if judged else ""

    def before(self, run: str) -> Sequence[StoredRun]:
        self.asked.append(run)
        nights = [n for n in range(1, 29) if run_id(n) < run][-WINDOW:]
        return [StoredRun(run_id=run_id(n), verdicts=self._verdicts, verdicts_sha256="0") for n in nights]


@pytest.mark.parametrize(("judged", "found"), [(True, []), (False, ids(6, 20))])
def test_a_series_that_was_not_there_has_no_older_nights(
    history: History, judged: bool, found: list[str]
) -> None:
    """Of nights before the first one that was judged nobody knows: the newest ones are taken."""
    year = Year(judged=judged)
    lacking = Lacking([("one", SLOW)], np.array([15]), np.array([0]), np.array([True]))
    runs = outlived(history, year.before, run_id(21), run_id(25), lacking, Restarts(), {})
    assert [run.run_id for run in runs] == found
    assert len(year.asked) == (1 if judged else 2)

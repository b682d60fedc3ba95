"""The end of a run: whatever happens to its second look, its report is made."""

from math import inf, log, nan
from pathlib import Path
from typing import cast

import pytest

from orchestrator.cli.confirm import FARM_LIMITS, OnTheFarm, duel_line
from orchestrator.cli.fleet import Fleet
from orchestrator.cli.judged import read_confirmation
from orchestrator.domain.confirmation import Confirmation, Duel, Wanted
from orchestrator.domain.errors import InfraError
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.broker import Broker
from orchestrator.execution.confirm import Confirming
from orchestrator.execution.dispatch import FARM_OUTAGE_S
from orchestrator.execution.manifest import Manifest
from orchestrator.execution.run_folder import RunFolder
from tests.results_fixture import device, results, run_info
from tests.unit.execution.duel_farm import RUN, DuelFarm, job

WANTED = Wanted("phone", job().case_id, "again")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    planned = results(devices=[device("phone")], run=run_info(RUN))
    return RunFolder.create(tmp_path, Manifest(planned, {"phone": [job()]}, "memory://blobs", "nightly"))


def look(folder: RunFolder, *wanted: Wanted, unpaid: int = 0) -> Confirmation | None:
    fleet = Fleet(cast("Broker", DuelFarm(workers={"phone": "worker-1"})), [device("phone")], [])
    settings = Settings(out=folder.path.parents[1])
    return OnTheFarm(folder, fleet, settings)(wanted, 1000, unpaid)


def test_the_answers_are_in_the_run_s_folder(folder: RunFolder) -> None:
    found = look(folder, WANTED)
    assert found is not None
    assert (found.why, len(found.again)) == ("", 1)
    assert read_confirmation(folder.path) == found


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (InfraError("the blob store is away"), "the blob store is away"),
        (RuntimeError("a fault of ours"), "RuntimeError: a fault of ours"),
        (KeyboardInterrupt(), "ended by Ctrl-C on "),
    ],
)
def test_what_goes_wrong_is_a_reason(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, error: BaseException, why: str
) -> None:
    def fail(_confirming: Confirming, *_: object) -> Confirmation:
        raise error

    monkeypatch.setattr(Confirming, "_once_more", fail)
    found = look(folder, WANTED)
    assert found is not None
    assert found.why.startswith(why)
    assert found.wanted == [WANTED]
    assert read_confirmation(folder.path) == found


def test_a_second_look_waits_for_a_farm_s_redis_as_long_as_its_run() -> None:
    assert FARM_LIMITS.outage_s == FARM_OUTAGE_S


def test_nothing_is_written_where_nothing_is_asked(folder: RunFolder) -> None:
    assert look(folder) is None
    assert read_confirmation(folder.path) is None


def test_a_budget_that_reaches_nothing_is_told(folder: RunFolder) -> None:
    found = look(folder, unpaid=3)
    assert found is not None
    assert (found.unpaid, found.wanted) == (3, [])
    assert "beyond the budget" in found.why


@pytest.mark.parametrize("text", ["{", '{"run_id": "x", "format": 9}', '{"format": 1}'])
def test_answers_that_cannot_be_read_are_left_out_with_a_word(
    folder: RunFolder, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (folder.path / "confirmation.json").write_text(text)
    assert read_confirmation(folder.path) is None
    assert "the run is judged without its second look" in capsys.readouterr().err


def test_what_was_written_is_read(folder: RunFolder) -> None:
    one = Duel(WANTED, "unknown", nan, -inf, inf, 1.0, 16, 0, [5], [nan], [30_000.0], [False])
    kept = Confirmation(RUN, [one], wanted=[WANTED])
    (folder.path / "confirmation.json").write_text(to_json(kept))
    found = read_confirmation(folder.path)
    assert found is not None
    assert to_json(found) == to_json(kept)


def test_a_duel_in_words() -> None:
    def line(effect: float, low: float, high: float) -> str:
        return duel_line(Duel(WANTED, "different", effect, low, high, 3.1e-5, 16, 15, clock="gpu"), "S24")

    assert line(0.05, 0.04, log(2.5)) == (
        "S24: different: +5.1% (+4.1% to ×2.5), p = 3.1e-05, 15 of 16 pairs count, GPU timer"
    )
    assert "-4.9% (no limit to no limit)" in line(-0.05, -inf, inf)
    none = Duel(WANTED, "unknown", nan, nan, nan, 1.0, 0, 0, why="its shader is gone")
    assert duel_line(none, "S24") == "S24: unknown: its shader is gone"

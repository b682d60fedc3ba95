"""Finding runs: by id, by ``latest``, by path, and the one to compare with."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import (
    find_run,
    load_results,
    new_run_id,
    point_latest,
    previous_results,
)
from tests.results_fixture import case, results, run_info, trial


def finished(
    out: Path,
    run_id: str,
    *,
    suite: str = "smoke",
    complete: bool = True,
    cases: tuple[str, ...] = ("a", "b"),
    selection: str = "",
) -> None:
    folder = out / "runs" / run_id
    folder.mkdir(parents=True)
    run = replace(run_info(run_id, suite=suite, finished=complete), selection=selection)
    made = results(run=run)
    made = replace(made, trials=[replace(trial(case(), "local"), case_id=case_id) for case_id in cases])
    (folder / "results.json").write_text(to_json(made), encoding="utf-8")


NOW = "20261201T010000Z-smoke-aaaa"


def previous(out: Path, suite: str = "smoke", before: str = NOW) -> str:
    found = previous_results(out, suite, before)
    return found.run.run_id if found else ""


def test_the_newest_complete_run_of_the_suite_is_the_previous_one(tmp_path: Path) -> None:
    finished(tmp_path, "20261127T010000Z-smoke-aaaa")
    finished(tmp_path, "20261128T010000Z-smoke-aaaa")
    finished(tmp_path, "20261129T010000Z-nightly-aaaa", suite="nightly")
    finished(tmp_path, "20261130T010000Z-smoke-aaaa", complete=False)
    finished(tmp_path, NOW)
    finished(tmp_path, "20261202T010000Z-smoke-aaaa")
    assert previous(tmp_path) == "20261128T010000Z-smoke-aaaa"
    assert previous(tmp_path, "nightly") == "20261129T010000Z-nightly-aaaa"
    assert previous(tmp_path, "other") == ""


def test_runs_that_cannot_be_read_are_passed_over(tmp_path: Path) -> None:
    finished(tmp_path, "20261127T010000Z-smoke-aaaa")
    finished(tmp_path, "20261128T010000Z-smoke-aaaa")
    (tmp_path / "runs" / "20261128T010000Z-smoke-aaaa" / "results.json").write_text('{"format": 99}')
    (tmp_path / "runs" / "20261129T010000Z-smoke-aaaa").mkdir()
    (tmp_path / "runs" / ".DS_Store").write_text("")
    assert previous(tmp_path) == "20261127T010000Z-smoke-aaaa"


def test_the_first_run_has_none_before(tmp_path: Path) -> None:
    assert previous(tmp_path) == ""
    finished(tmp_path, NOW)
    assert previous(tmp_path) == ""


def test_a_run_is_found_by_id_by_latest_and_by_path(tmp_path: Path) -> None:
    finished(tmp_path, NOW)
    point_latest(tmp_path, NOW)
    expected = (tmp_path / "runs" / NOW).resolve()
    for name in (NOW, "latest", str(expected), str(expected / "results.json")):
        found = find_run(tmp_path, name)
        assert found in (expected, expected / "results.json")
        assert load_results(found).run.run_id == NOW


def test_a_run_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"run 'nosuch' is neither in .*; newest: none"):
        find_run(tmp_path, "nosuch")
    for day in (26, 27, 28, 29):
        finished(tmp_path, f"202611{day}T010000Z-smoke-aaaa")
    with pytest.raises(UsageError) as caught:
        find_run(tmp_path, "nosuch")
    assert "20261129T010000Z-smoke-aaaa" in str(caught.value)
    assert "20261126T010000Z-smoke-aaaa" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "latest", "."])
def test_no_name_is_no_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "runs").mkdir()
    with pytest.raises(UsageError):
        find_run(tmp_path, name)


def test_a_folder_without_results_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such run"):
        load_results(tmp_path)


def test_latest_moves_in_one_step_and_stays_valid_when_the_folder_moves(tmp_path: Path) -> None:
    out = tmp_path / "out"
    finished(out, NOW)
    finished(out, "20261202T010000Z-smoke-aaaa")
    point_latest(out, NOW)
    point_latest(out, "20261202T010000Z-smoke-aaaa")
    assert sorted(p.name for p in out.iterdir()) == ["latest", "runs"]
    moved = out.rename(tmp_path / "elsewhere")
    assert load_results(moved / "latest").run.run_id == "20261202T010000Z-smoke-aaaa"


def test_a_dangling_latest_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    point_latest(tmp_path, "gone")
    with pytest.raises(UsageError):
        find_run(tmp_path, "latest")


def test_run_ids_sort_by_time_and_differ_within_a_second() -> None:
    at = datetime(2026, 12, 1, 1, 0, 0, tzinfo=UTC)
    ids = {new_run_id("smoke", at) for _ in range(20)}
    assert len(ids) > 15
    assert all(i.startswith("20261201T010000Z-smoke-") for i in ids)
    assert new_run_id("zzz", at) < new_run_id("aaa", at.replace(second=1))


@pytest.mark.parametrize("shape", ["the same", "another"])
def test_results_of_a_newer_format_are_refused_by_name(tmp_path: Path, shape: str) -> None:
    finished(tmp_path, NOW)
    path = tmp_path / "runs" / NOW / "results.json"
    newer = (
        to_json(replace(load_results(path), format=2)) if shape == "the same" else '{"format": 2, "runs": []}'
    )
    path.write_text(newer)
    with pytest.raises(UsageError, match=r"results of format 2; this Tilefarm reads 1"):
        load_results(path)


def test_a_run_without_trials_is_nothing_to_compare_with(tmp_path: Path) -> None:
    finished(tmp_path, "20261127T010000Z-smoke-aaaa")
    finished(tmp_path, "20261128T010000Z-smoke-aaaa", cases=())
    assert previous(tmp_path) == "20261127T010000Z-smoke-aaaa"


def test_a_selection_in_between_does_not_hide_the_whole_run(tmp_path: Path) -> None:
    finished(tmp_path, "20261127T010000Z-smoke-aaaa")
    finished(tmp_path, "20261128T010000Z-smoke-aaaa", cases=("b",), selection="seq=33")
    assert previous(tmp_path) == "20261127T010000Z-smoke-aaaa"
    both = [("local", "a"), ("local", "b")]
    found = [
        previous_results(tmp_path, "smoke", NOW, wanted) for wanted in (both, both[1:], [("local", "c")])
    ]
    assert [f.run.run_id if f else "" for f in found] == [
        "20261127T010000Z-smoke-aaaa",
        "20261128T010000Z-smoke-aaaa",
        "",
    ]

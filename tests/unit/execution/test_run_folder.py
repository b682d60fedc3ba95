"""The run folder after a crash at any moment: readable, and nothing lost or doubled."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import UsageError, WireError
from orchestrator.domain.job import CaseJob
from orchestrator.domain.precision import Precision
from orchestrator.domain.results import CaseInfo, Missing
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution import run_folder
from orchestrator.execution.run_folder import (
    Manifest,
    RunFolder,
    last_attempts,
    load_results,
    write_atomically,
)
from tests.results_fixture import RUN_ID, case, device, results, run_info
from tests.results_fixture import trial as made_trial
from tests.unit.domain.strategies import quick

POINTS = [case(tile=f"{n}x8") for n in (8, 16, 32)]
DEVICES = ["local-1", "phone-1"]


def job(case_id: str, attempt: int = 1) -> CaseJob:
    return CaseJob(case_id, attempt, case_id, "gles", "c0de", [], [], [])


def trial(
    number: int,
    verdict: Verdict = Verdict.PASS,
    *,
    attempt: int = 1,
    device_id: str = "local-1",
    reason: str = "",
) -> Trial:
    return replace(made_trial(POINTS[number], device_id, verdict, reason=reason), attempt=attempt)


def manifest(run_id: str = RUN_ID, suite: str = "smoke") -> Manifest:
    planned = results(
        points=POINTS, devices=[device(d) for d in DEVICES], run=run_info(run_id, suite=suite, finished=False)
    )
    return Manifest(planned, {d: [job(p.case_id) for p in POINTS] for d in DEVICES}, "memory://b", "ondemand")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, manifest())


def left(folder: RunFolder) -> dict[str, list[tuple[int, int]]]:
    """Device → (number of the point, attempt) still to run."""
    ids = [p.case_id for p in POINTS]
    return {d: [(ids.index(j.case_id), j.attempt) for j in jobs] for d, jobs in folder.unfinished().items()}


def test_the_manifest_is_on_disk_before_anything_is_dispatched(folder: RunFolder, tmp_path: Path) -> None:
    assert folder.path == tmp_path / "runs" / RUN_ID
    assert folder.manifest() == manifest()
    assert folder.trials() == {}
    assert left(folder) == {d: [(0, 1), (1, 1), (2, 1)] for d in DEVICES}


def test_a_run_id_is_taken_once(folder: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        RunFolder.create(tmp_path, manifest())
    assert folder.manifest() == manifest()


def test_a_folder_without_a_manifest_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"manifest\.json: missing; this run was never dispatched"):
        RunFolder(tmp_path).manifest()


def test_trials_come_back_by_key(folder: RunFolder) -> None:
    folder.append([trial(0), trial(1, Verdict.INFRA)])
    folder.append([trial(1, attempt=2), trial(0, device_id="phone-1")])
    assert set(folder.trials()) == {
        f"local-1/{POINTS[0].case_id}/1",
        f"local-1/{POINTS[1].case_id}/1",
        f"local-1/{POINTS[1].case_id}/2",
        f"phone-1/{POINTS[0].case_id}/1",
    }


def test_the_first_of_two_results_with_one_key_counts(folder: RunFolder) -> None:
    folder.append([trial(0, Verdict.MISMATCH, reason="first")])
    folder.append([trial(0, Verdict.PASS)])
    assert [t.reason for t in folder.trials().values()] == ["first"]


@quick
@given(st.data())
def test_a_crash_in_the_middle_of_a_write_costs_that_line_alone(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = RunFolder.create(tmp_path_factory.mktemp("run"), manifest())
    folder.append([trial(0)])
    whole = (folder.path / "trials.jsonl").read_bytes()
    folder.append([trial(1, Verdict.MISMATCH, reason="wrong")])
    both = (folder.path / "trials.jsonl").read_bytes()
    cut = data.draw(st.integers(len(whole), len(both) - 1))
    (folder.path / "trials.jsonl").write_bytes(both[:cut])
    assert [t.case_id for t in folder.trials().values()] == [POINTS[0].case_id]
    assert left(folder)["local-1"] == [(1, 1), (2, 1)]

    folder.append([trial(1, attempt=1), trial(2)])
    assert [t.case_id for t in folder.trials().values()] == [p.case_id for p in POINTS], "nor the next one"
    assert left(folder)["local-1"] == []


def test_damage_in_the_middle_is_named_and_not_passed_over(folder: RunFolder) -> None:
    folder.append([trial(0), trial(1)])
    path = folder.path / "trials.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"verdict":"pass"', b'"verdict":"good"', 1))
    with pytest.raises(WireError, match=r"trials\.jsonl:1: verdict"):
        folder.trials()


def test_unfinished_gives_the_next_attempt_of_what_has_no_verdict(folder: RunFolder) -> None:
    folder.append(
        [
            trial(0, Verdict.INFRA),
            trial(0, Verdict.INFRA, attempt=2),
            trial(1, Verdict.INFRA),
            trial(1, Verdict.MISMATCH, attempt=2),
            trial(2, Verdict.CRASHED, device_id="phone-1"),
        ]
    )
    assert left(folder) == {"local-1": [(0, 3), (2, 1)], "phone-1": [(0, 1), (1, 1)]}


@pytest.mark.parametrize("late", [Verdict.INFRA, Verdict.PASS])
def test_infra_never_hides_a_verdict(late: Verdict) -> None:
    found = last_attempts([trial(0, late, attempt=5), trial(0, Verdict.MISMATCH, attempt=2)])
    expected = Verdict.MISMATCH if late is Verdict.INFRA else Verdict.PASS
    assert [t.verdict for t in found.values()] == [expected]


@quick
@given(st.dictionaries(st.integers(1, 4), st.sampled_from(list(Verdict)), min_size=1), st.data())
def test_the_attempt_that_counts_does_not_depend_on_the_order(
    attempts: dict[int, Verdict], data: st.DataObject
) -> None:
    trials = [trial(0, verdict, attempt=number) for number, verdict in attempts.items()]
    (counts,) = last_attempts(data.draw(st.permutations(trials))).values()
    real = [t.attempt for t in trials if t.verdict is not Verdict.INFRA]
    assert counts.attempt == max(real or attempts)


def test_a_complete_run_is_finished(folder: RunFolder) -> None:
    folder.append([trial(n, device_id=d) for d in DEVICES for n in range(3)])
    done = folder.finish("earlier", "2026-12-01T01:02:11Z", {})
    assert (done.run.finished_at, done.previous_run, done.missing) == ("2026-12-01T01:02:11Z", "earlier", [])
    assert len(done.trials) == 6
    assert load_results(folder.path) == load_results(folder.results_json) == done


def test_each_trial_that_never_came_is_missing_with_its_reason(folder: RunFolder) -> None:
    folder.append([trial(n) for n in range(3)] + [trial(0, Verdict.INFRA, device_id="phone-1")])
    why = {("phone-1", POINTS[1].case_id): "no worker for 61 s"}
    done = folder.finish("", "2026-12-01T01:02:11Z", why)
    assert done.missing == [
        Missing("phone-1", POINTS[1].case_id, "no worker for 61 s"),
        Missing("phone-1", POINTS[2].case_id, "no result came back"),
    ]
    assert done.run.finished_at == "", "a run with gaps is no baseline"
    assert len(done.trials) == 4


def test_what_the_probes_found_is_in_the_results_and_what_could_not_be_read_is_missing(
    folder: RunFolder,
) -> None:
    folder.append([trial(n, device_id=d) for d in DEVICES for n in range(3)])
    found = Precision("phone-1", "gles", "mediump", 23, 3e38, "kept", "nearest-even", "kept", "kept", -87.0,
                      "fp32", 1.0)  # fmt: skip
    lost = Missing("phone-2", POINTS[0].case_id, "what the probe found: gone")

    def measure(
        trials: Sequence[Trial], cases: Mapping[str, CaseInfo]
    ) -> tuple[list[Precision], list[Missing]]:
        assert len(trials) == 6
        assert set(cases) == {p.case_id for p in POINTS}
        return [found], [lost]

    done = folder.finish("", "now", {}, measure)
    assert (done.precision, done.missing, done.run.finished_at) == ([found], [lost], "")
    assert load_results(folder.path) == done


def test_devices_that_were_never_seen_stay_missing(tmp_path: Path) -> None:
    planned = replace(manifest().planned, missing=[Missing("pixel", "", "unauthorized")])
    folder = RunFolder.create(tmp_path, replace(manifest(), planned=planned))
    folder.append([trial(n, device_id=d) for d in DEVICES for n in range(3)])
    assert folder.finish("", "now", {}).missing == [Missing("pixel", "", "unauthorized")]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.json"
    write_atomically(path, "old")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_folder.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new" * 1000)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_what_is_written_others_may_read(tmp_path: Path) -> None:
    write_atomically(tmp_path / "results.json", "é")
    assert (tmp_path / "results.json").read_text(encoding="utf-8") == "é"
    assert (tmp_path / "results.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("text", ["", "{", '{"run": {}}', json.dumps({"format": 99})])
def test_damaged_results_are_a_usage_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(UsageError, match=r"results\.json: "):
        load_results(tmp_path)


def test_two_processes_cannot_carry_out_one_run(folder: RunFolder) -> None:
    second = RunFolder(folder.path).only_one()
    with folder.only_one(), pytest.raises(UsageError, match="another process"):
        second.__enter__()
    with folder.only_one():
        assert folder.trials() == {}

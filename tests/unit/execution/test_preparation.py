"""Cases become jobs while others run: what is on disk when, and what a run that was cut off still knows."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.job import CaseJob
from orchestrator.domain.results import Pruned
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.manifest import Manifest, Outcome, Pool, Unprepared, cases_of
from orchestrator.execution.preparation import Preparation
from orchestrator.execution.run import begin_run, carry_out, go_on_preparing
from orchestrator.execution.run_folder import NOT_PREPARED, RunFolder
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.matrix import Sampling
from tests.results_fixture import case, device, info, results, run_info
from tests.unit.execution.fake_farm import FakeFarm, Notes
from tests.unit.execution.test_run import CASES, SMALL, WIDE, ZEROS, kernel, kernels, plan, request
from tests.unit.execution.toy_kernel import Doubling

__all__ = ["kernel", "kernels"]
RUN = "20261201T010000Z-smoke-aaaa"
NOW = "2026-12-01T01:00:00+00:00"
Kernels = dict[str, LoadedKernel]


@dataclass(slots=True)
class Patient(Notes):
    """Gives the preparing thread its time."""

    def tick(self) -> None:
        time.sleep(0.002)
        Notes.tick(self)


def job(number: int) -> CaseJob:
    return CaseJob(f"case-{number}", 1, f"label {number}", "gles", "c0de", [], [], [], warmup_ms=400)


def waiting(*numbers: int, software: bool = False) -> list[Unprepared]:
    return [Unprepared(f"case-{n}", 1000 * n, software, Sampling()) for n in numbers]


def base(**unprepared: list[Unprepared]) -> Manifest:
    planned = results(devices=[device(d) for d in unprepared], run=run_info(RUN, finished=False))
    jobs: dict[str, list[CaseJob]] = {d: [] for d in unprepared}
    return Manifest(planned, jobs, "memory://blobs", "ondemand", unprepared=unprepared)


def made(*numbers: int) -> list[Outcome]:
    return [Outcome(f"case-{n}", job=job(n)) for n in numbers]


def ids(manifest: Manifest) -> dict[str, list[str]]:
    return {target: [j.case_id for j in jobs] for target, jobs in manifest.wanted.items()}


def all_of(preparation: Preparation) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    while not preparation.done:
        jobs, _ = preparation.take()
        for target, cases in jobs.items():
            found.setdefault(target, []).extend(j.case_id for j in cases)
    return found


def test_each_device_gets_a_case_before_any_gets_its_second() -> None:
    assert cases_of({"a": waiting(1, 2, 3), "b": waiting(2, 4), "c": []}) == [
        f"case-{n}" for n in (1, 2, 4, 3)
    ]


def test_a_prepared_case_is_a_job_of_each_target_as_that_one_does_it() -> None:
    manifest = base(a=waiting(1, 2), b=waiting(2, software=True)).with_outcomes(made(2))
    assert ids(manifest) == {"a": ["case-2"], "b": ["case-2"]}
    assert manifest.jobs["a"][0] == replace(job(2), estimate_ms=2000)
    assert manifest.jobs["b"][0].warmup_ms == 0, "no idle GPU's clock there"
    assert manifest.unprepared == {"a": waiting(1)}
    assert manifest.with_outcomes(made(2)) == manifest, "once is enough"


def test_a_pools_case_is_a_job_of_the_pool() -> None:
    manifest = replace(base(a=[]), pools={"pool0": Pool("SM8650", ["a"], [])})
    manifest = replace(manifest, unprepared={"pool0": waiting(1, 2)})
    bad = Outcome("case-2", degenerate="reference_absmax 0 < 1e-12")
    manifest = manifest.with_outcomes([*made(1), bad])
    assert ids(manifest) == {"a": [], "pool0": ["case-1"]}
    assert manifest.planned.pruned[-1] == Pruned("a", "case-2", Verdict.INVALID, [bad.degenerate])
    assert manifest.unprepared == {}


def test_a_job_is_on_disk_before_anybody_gets_it(tmp_path: Path) -> None:
    manifest = base(a=waiting(1, 2, 3))
    folder = RunFolder.create(tmp_path, manifest)
    preparation = Preparation(folder, manifest, made(1, 2, 3), lambda: NOW)
    seen: list[str] = []
    while not preparation.done:
        jobs, _ = preparation.take()
        seen += [j.case_id for j in jobs.get("a", [])]
        assert [j.case_id for j in RunFolder(folder.path).unfinished()["a"]] == seen
    assert seen == ["case-1", "case-2", "case-3"]
    assert folder.manifest().unprepared == {}


def test_half_a_line_of_a_crash_costs_one_job(tmp_path: Path) -> None:
    manifest = base(a=waiting(1, 2))
    folder = RunFolder.create(tmp_path, manifest)
    folder.note_prepared(made(1, 2), [])
    log = folder.path / "prepared.jsonl"
    log.write_bytes(log.read_bytes()[:-20])
    assert ids(folder.manifest()) == {"a": ["case-1"]}
    folder.note_prepared(made(2), [])
    assert ids(folder.manifest()) == {"a": ["case-1", "case-2"]}


def test_what_was_not_prepared_is_missing_with_that_reason(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, base(a=waiting(1, 2)))
    done = folder.finish("", NOW, {("a", "case-2"): "cancelled by anna@desk"})
    assert [(m.device_id, m.case_id, m.why) for m in done.missing] == [
        ("a", "case-1", NOT_PREPARED),
        ("a", "case-2", "cancelled by anna@desk"),
    ]
    assert done.run.finished_at == ""


def test_nothing_is_prepared_for_a_run_that_was_ended(tmp_path: Path) -> None:
    manifest = base(a=waiting(1, 2))
    folder = RunFolder.create(tmp_path, manifest)

    def endless() -> Iterator[Outcome]:
        while True:
            yield made(1)[0]

    preparation = Preparation(folder, manifest, endless(), lambda: NOW)
    preparation.stop()
    assert preparation.done
    assert preparation.take() == ({}, [])
    assert preparation.left("a") == ["case-1", "case-2"]


def test_a_kernel_that_fails_late_is_told_once_what_came_before_it_is_taken(tmp_path: Path) -> None:
    manifest = base(a=waiting(1, 2))
    folder = RunFolder.create(tmp_path, manifest)

    def failing() -> Iterator[Outcome]:
        yield made(1)[0]
        raise KernelFolderError("kernels/doubling: reference failed")

    preparation = Preparation(folder, manifest, failing(), lambda: NOW)
    with pytest.raises(KernelFolderError, match="reference failed"):
        all_of(preparation)
    assert ids(folder.manifest()) == {"a": ["case-1"]}


def test_a_run_is_prepared_while_it_runs(tmp_path: Path, kernels: Kernels) -> None:
    folder, preparation = begin_run(
        plan({"phone-a": CASES[:3], "phone-b": CASES[:1]}), kernels, request(tmp_path)
    )
    farm = FakeFarm(workers={"phone-a": "w1", "phone-b": "w2"})
    done = carry_out(folder, farm, Patient(), tmp_path, preparation=preparation)
    assert {(t.device_id, t.case_id) for t in done.trials} == {
        ("phone-a", SMALL),
        ("phone-a", WIDE),
        ("phone-b", SMALL),
    }
    assert [(p.device_id, p.case_id, p.verdict) for p in done.pruned[1:]] == [
        ("phone-a", ZEROS, Verdict.INVALID)
    ]
    assert done.cases[SMALL].code_hash != ""
    assert done.run.finished_at


def test_a_run_that_was_killed_while_it_was_prepared_is_completed(tmp_path: Path, kernels: Kernels) -> None:
    folder, preparation = begin_run(plan({"phone-a": CASES[:3]}), kernels, request(tmp_path))
    preparation.stop()  # as if the process had ended: nothing was taken
    again = RunFolder(folder.path)
    rest = go_on_preparing(again, kernels, tmp_path / "spirv")
    assert rest is not None
    done = carry_out(again, FakeFarm(workers={"phone-a": "w1"}), Patient(), tmp_path, preparation=rest)
    assert {t.case_id for t in done.trials} == {SMALL, WIDE}
    assert done.run.finished_at


def test_other_kernels_complete_nothing(tmp_path: Path, kernels: Kernels) -> None:
    folder, preparation = begin_run(plan({"phone-a": CASES[:3]}), kernels, request(tmp_path))
    preparation.stop()
    template = kernels["doubling"].folder / "double.comp.j2"
    template.write_text(template.read_text().replace("2.0", "(1.0 + 1.0)"))
    assert go_on_preparing(folder, kernels, tmp_path / "spirv") is None
    done = carry_out(folder, FakeFarm(workers={"phone-a": "w1"}), Notes(), tmp_path)
    assert {m.why for m in done.missing if m.case_id} == {NOT_PREPARED}
    assert done.trials == []


def test_a_kernel_that_fails_while_others_run_ends_the_run(
    tmp_path: Path, kernels: Kernels, kernel: Doubling
) -> None:
    def reference(value: object) -> object:
        raise ZeroDivisionError("made up")

    kernel.changed["reference"] = reference
    folder, preparation = begin_run(plan({"phone-a": CASES[:2]}), kernels, request(tmp_path))
    with pytest.raises(KernelFolderError, match="made up"):
        carry_out(folder, FakeFarm(workers={"phone-a": "w1"}), Patient(), tmp_path, preparation=preparation)


def test_trials_of_refused_shaders_are_written_before_their_outcome(tmp_path: Path) -> None:
    manifest = base(a=waiting(1), b=waiting(1))
    facts = replace(info(case()), code_hash="bad0")
    folder = RunFolder.create(tmp_path, manifest)
    refused = Outcome("case-1", facts, refused="double.comp.j2:3: oops\nmore words")
    preparation = Preparation(folder, manifest, [refused], lambda: NOW)
    trials: list[Trial] = []
    while not preparation.done:
        trials += preparation.take()[1]
    assert [(t.device_id, t.verdict, t.reason, t.code_hash) for t in trials] == [
        (d, Verdict.COMPILE_FAILED, "double.comp.j2:3: oops", "bad0") for d in ("a", "b")
    ]
    assert list(folder.trials().values()) == trials
    assert folder.unfinished() == {"a": [], "b": []}

"""A Vulkan shader that the host's compiler refuses: a failed trial of its own, and the other cases run."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from orchestrator.cli.finish import finish_run
from orchestrator.domain.case import Case
from orchestrator.domain.errors import KernelFolderError
from orchestrator.domain.gate import Gate
from orchestrator.domain.results import Missing
from orchestrator.domain.settings import Settings
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.run import carry_out, start_run
from orchestrator.execution.run_folder import RunFolder
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.plan import Plan
from tests.unit.execution.fake_farm import FakeFarm, Notes
from tests.unit.execution.test_run import guarded, plan, request
from tests.unit.execution.toy_kernel import TEMPLATE, Doubling, load, point

BROKEN_WIDE = TEMPLATE.replace("2.0 *", "{{ 'two' if tile == '16' and api == 'vulkan' else '2.0' }} *")
GOOD_SHADER, BAD_SHADER = (point(5, api="vulkan", tile=tile) for tile in ("8", "16"))


@pytest.fixture
def kernels(tmp_path: Path) -> dict[str, LoadedKernel]:
    return {"doubling": load(tmp_path / "kernels", Doubling(), BROKEN_WIDE)}


def planned(jobs: Mapping[str, list[Case]]) -> Plan:
    return replace(plan(jobs), cases={c.case_id: c for c in (GOOD_SHADER, BAD_SHADER)}, pruned=[])


def beside_a_broken_one() -> Plan:
    """A good and a broken Vulkan variant on phone-a, the broken one alone on phone-b."""
    return planned({"phone-a": [BAD_SHADER, GOOD_SHADER], "phone-b": [BAD_SHADER]})


def test_a_shader_that_does_not_compile_is_a_failed_trial_and_the_rest_runs(
    tmp_path: Path, kernels: dict[str, LoadedKernel]
) -> None:
    folder = start_run(beside_a_broken_one(), kernels, request(tmp_path), lambda _: None)
    assert {t.device_id for t in folder.trials().values()} == {"phone-a", "phone-b"}, "before any dispatch"
    left = {d: [j.case_id for j in jobs] for d, jobs in folder.unfinished().items()}
    assert left == {"phone-a": [GOOD_SHADER.case_id], "phone-b": []}
    farm = FakeFarm(workers={"phone-a": "w1", "phone-b": "w2"})
    done = carry_out(RunFolder(folder.path), farm, Notes(), tmp_path)
    assert farm.attempts() == [(GOOD_SHADER.case_id, 1)]
    failed = [t for t in done.trials if t.verdict is Verdict.COMPILE_FAILED]
    assert {(t.device_id, t.case_id, t.attempt) for t in failed} == {
        ("phone-a", BAD_SHADER.case_id, 1),
        ("phone-b", BAD_SHADER.case_id, 1),
    }
    assert len(done.trials) == 3
    assert done.missing == [Missing("pixel", "", "unauthorized")]
    assert done.run.finished_at
    assert done.cases[BAD_SHADER.case_id].code_hash == failed[0].code_hash != ""
    reason = "kernels/doubling/double.comp.j2: glslang, line 5 of the rendered shader: 'two' : undeclared"
    assert failed[0].reason.startswith(reason)
    assert "\n" not in failed[0].reason
    assert "\n  5 | void main() {" in failed[0].log
    assert failed[0].started_at >= done.run.started_at
    report = finish_run(folder, done, Settings(out=tmp_path), date(2026, 12, 1), Gate())
    assert report.summary.exit_code == 1
    assert report.summary.counts.failed == 2
    assert (folder.path / "junit.xml").read_text().count("<failure") == 2
    again = FakeFarm(workers={"phone-a": "w3", "phone-b": "w4"})
    assert carry_out(RunFolder(folder.path), again, Notes(), tmp_path).trials == done.trials
    assert again.attempts() == [], "a resumed run has nothing left to do"


def test_a_run_of_broken_shaders_only_names_its_compiler(
    tmp_path: Path, kernels: dict[str, LoadedKernel]
) -> None:
    folder = start_run(planned({"phone-b": [BAD_SHADER]}), kernels, request(tmp_path), lambda _: None)
    assert folder.manifest().planned.run.compiler.startswith("glslang 11:13")


def test_a_canary_that_does_not_compile_ends_the_run(
    tmp_path: Path, kernels: dict[str, LoadedKernel]
) -> None:
    with pytest.raises(KernelFolderError, match=r"the canary does not compile: .*double\.comp\.j2: glslang"):
        start_run(guarded(BAD_SHADER), kernels, request(tmp_path), lambda _: None)
    assert not (tmp_path / "runs").exists()

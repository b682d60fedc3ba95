"""Two codes of a real GPU driver in turns: by hand, and as a run's second look.

A shared machine's software driver is too noisy to find anything against a history; here it is said what a
first look would have asked.
"""

import shutil
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.cli.confirm import OnTheFarm
from orchestrator.cli.fleet import Fleet, open_fleet
from orchestrator.cli.output import say
from orchestrator.domain.confirmation import Confirmation, Wanted
from orchestrator.domain.errors import UsageError
from orchestrator.domain.settings import Settings
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import from_json, to_json
from orchestrator.execution.run_folder import RunFolder, load_results
from orchestrator.verdicts import confirming
from orchestrator.verdicts.confirming import Questions
from orchestrator.verdicts.speed import Judged
from tests.farm import REPOSITORY, Farm

DEVICE = ("--device", "local:llvmpipe")
SUITE = """
version: 1
suites:
  nightly:
    repeats: 12
    blocks:
      - kernel: toil
        workloads: [{n: [20000], percent: [150]}]
        axes: {precision: [fp32], vector: [1]}
"""
PLAIN = "        o[i] = scaled(o[i]);\n"
TOIL = """        float burn = float(i);
        for (uint k = 0u; k < 500u; ++k) {
            burn = burn * 0.999 + 1.0;
        }
        o[i] = scaled(o[i]) + (burn < 0.0 ? 1.0 : 0.0);
"""
SAMPLES = 100_000
"""Of a night that pays for every look."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Farm:
    """A farm with a run of the plain kernel, and one since it was made slower."""
    made = Farm(tmp_path_factory.mktemp("shelf"))
    (made.folder / "matrix.yaml").write_text(SUITE)
    for line in (PLAIN, TOIL):
        kernel(made, line)
        made.run("run", *options(made))
    return made


def kernel(farm: Farm, line: str) -> None:
    home = farm.folder / "kernels" / "toil"
    shutil.copytree(REPOSITORY / "kernels" / "scale", home, dirs_exist_ok=True)
    code, template = home / "kernel.py", home / "scale.comp.j2"
    for file, old, new in ((code, 'name = "scale"', 'name = "toil"'), (template, PLAIN, line)):
        text = file.read_text()
        assert text.count(old) == 1
        file.write_text(text.replace(old, new))


def options(farm: Farm) -> list[str]:
    files = ["--matrix", str(farm.folder / "matrix.yaml"), "--kernels", str(farm.folder / "kernels")]
    return ["--suite", "nightly", *files, "--no-probes", *DEVICE]


def runs(farm: Farm) -> tuple[str, str]:
    """Ids of the plain one and of the slower one."""
    before, after, *_ = sorted(p.name for p in (farm.out / "runs").iterdir())
    return before, after


def questions(farm: Farm) -> list[Wanted]:
    """What a first look at the slower run would ask: both codes in turns, and the same once more."""
    before, after = runs(farm)
    (old,), (new,) = (load_results(farm.out / "runs" / run_id).trials for run_id in (before, after))
    assert (old.case_id, old.verdict, new.verdict) == (new.case_id, Verdict.PASS, Verdict.PASS)
    asked = Wanted(new.device_id, new.case_id, "turns", old.code_hash, new.code_hash, before, p=0.001)
    return [asked, replace(asked, how="again", code_before="", code_after="", baseline_run="")]


@pytest.fixture(scope="module")
def fleet(shelf: Farm, tmp_path_factory: pytest.TempPathFactory) -> Generator[Fleet]:
    """This machine's driver behind a private worker, and commands of this process in the shelf's folders."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in shelf.env().items():
            patch.setenv(name, value)
        with open_fleet(Settings(), DEVICE[1:], tmp_path_factory.mktemp("logs"), say) as opened:
            yield opened


def second_look(farm: Farm, fleet: Fleet, *wanted: Wanted) -> Confirmation:
    folder = RunFolder(farm.out / "runs" / runs(farm)[1])
    found = OnTheFarm(folder, fleet, Settings())(wanted, SAMPLES, 0)
    assert found is not None
    assert to_json(found) == to_json(on_disk(folder.path))
    return found


def on_disk(folder: Path) -> Confirmation:
    path = folder / "confirmation.json"
    return from_json(Confirmation, path.read_bytes(), str(path))


def duel(farm: Farm, *words: str) -> dict[str, Any]:
    return farm.json("duel", *words, *DEVICE, expect=1)


def test_by_hand_another_code_is_different_and_its_own_never(shelf: Farm) -> None:
    before, after = runs(shelf)
    case = questions(shelf)[0].case_id
    found = duel(shelf, before, after)
    (answer,) = found["duels"]
    assert (answer["answer"], found["exit_code"]) == ("different", 1)
    assert answer["effect"] > 0.3
    assert found["a"]["code_hash"] != found["b"]["code_hash"]
    assert duel(shelf, f"{after}:{case}", f"{before}:{case}")["duels"][0]["effect"] < -0.3
    log = shelf.folder / "alone.log"
    alone = shelf.start("duel", before, before, "--case", case, *DEVICE, log=log)
    assert alone.wait(300) in (0, 3), "this machine's noise decides whether that is known"
    assert "Both have the same code." in log.read_text()
    assert ": different:" not in log.read_text()


def test_wrong_words_are_answered_with_what_is_missing(shelf: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFARM_OUT", str(shelf.out))
    before, _ = runs(shelf)
    for words, said in (
        ((before, "nobody"), "'nobody' is neither a run nor a case of run"),
        ((before, "nobody:5d41"), "run 'nobody' is neither in"),
        ((before, f"{before}:5d41"), "has no job of case '5d41'"),
    ):
        found = CliRunner().invoke(app, ["duel", *words, *DEVICE])
        assert isinstance(found.exception, UsageError)
        assert said in str(found.exception)


def test_a_second_look_takes_turns_and_measures_once_more(shelf: Farm, fleet: Fleet) -> None:
    found = second_look(shelf, fleet, *questions(shelf))
    (one,) = found.duels
    assert (one.answer, one.why, found.why) == ("different", "", "")
    assert one.effect > 0.3
    (again,) = found.again
    assert (again.verdict, again.code_hash) == (Verdict.PASS, questions(shelf)[0].code_after)
    assert again.timing is not None
    assert len(again.timing.wall_ns) == 12
    assert found.samples == 12 + 2 * one.pairs
    kept = RunFolder(shelf.out / "runs" / runs(shelf)[1]).trials().values()
    assert len(kept) == 1, "no trial of the second look is one of the run's"


def test_a_baseline_whose_shader_is_gone_is_a_reason(shelf: Farm, fleet: Fleet) -> None:
    manifest = RunFolder(shelf.out / "runs" / runs(shelf)[0]).manifest()
    ((job,),) = manifest.jobs.values()
    digest = job.passes[0].shader
    blob = Path(manifest.blob_store.removeprefix("file://")) / digest[:2] / digest
    kept = blob.read_bytes()
    blob.unlink()
    try:
        (one,) = second_look(shelf, fleet, questions(shelf)[0]).duels
    finally:
        blob.write_bytes(kept)
    assert (one.answer, one.pairs) == ("unknown", 0)
    assert f"its shader {digest[:12]} is no longer in" in one.why


def test_a_worker_killed_in_a_duel_is_started_again_and_the_duel_repeated(
    shelf: Farm, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    (worker,) = fleet.workers
    first = worker.pid
    revive = fleet.revive
    killed: list[int] = []

    def strike(_fleet: Fleet) -> None:
        """Once, while the duel's runner is at work."""
        if not killed and (runner := _runner(first)) is not None:
            runner.suspend()  # it would be done too soon
            psutil.Process(first).kill()
            killed.append(first)
        revive()

    monkeypatch.setattr(Fleet, "revive", strike)
    (one,) = second_look(shelf, fleet, questions(shelf)[0]).duels
    assert killed == [first]
    assert worker.pid != first
    assert (one.answer, one.why) == ("different", "")


def _runner(pid: int) -> psutil.Process | None:
    children = psutil.Process(pid).children(recursive=True)
    return next((p for p in children if "runner" in p.name()), None)


def test_an_interruption_costs_the_answer_only(
    shelf: Farm, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_fleet: Fleet) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Fleet, "revive", interrupt)
    found = second_look(shelf, fleet, questions(shelf)[0])
    assert found.why.startswith("ended by Ctrl-C on ")
    assert found.wanted == [questions(shelf)[0]]


def test_a_run_has_its_second_look_at_its_end_and_once(shelf: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    """And --no-confirm leaves it out."""
    for name, value in shelf.env().items():
        monkeypatch.setenv(name, value)
    asked: list[Judged] = []

    def given(judged: Judged) -> Questions:
        asked.append(judged)
        return Questions(questions(shelf)[:1], 0, SAMPLES)

    monkeypatch.setattr(confirming, "questions", given)
    folders = {p.name for p in (shelf.out / "runs").iterdir()}
    command = CliRunner()
    assert command.invoke(app, ["run", *options(shelf), "--no-confirm"]).exit_code == 0
    assert not asked
    assert command.invoke(app, ["run", *options(shelf)]).exit_code == 0
    assert len(asked) == 1
    left_out, tonight = sorted({p.name for p in (shelf.out / "runs").iterdir()} - folders)
    assert not (shelf.out / "runs" / left_out / "confirmation.json").exists()
    found = on_disk(shelf.out / "runs" / tonight)
    assert [d.answer for d in found.duels] == ["different"]
    assert (shelf.out / "runs" / tonight / "index.html").is_file()
    assert command.invoke(app, ["run", "--resume", tonight]).exit_code == 0
    assert command.invoke(app, ["report", tonight]).exit_code == 0
    assert len(asked) == 1
    assert to_json(on_disk(shelf.out / "runs" / tonight)) == to_json(found)

"""The main job on this machine's own GPU: matrix in, report out, exit codes, comparison, resume."""

import json
import signal
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from orchestrator.domain.job import CaseJob
from orchestrator.domain.verdict import Verdict
from orchestrator.execution.run_folder import Manifest, RunFolder
from tests.farm import Farm, wait_for
from tests.phones import process_runs
from tests.results_fixture import case, device, results, run_info

MATRIX = """
version: 1
suites:
  smoke:
    repeats: 2
    blocks:
      - kernel: attention_flash
        workloads: [{seq: 40, head_dim: 8, heads: 2, causal: [false, true]}]
        axes: {precision: [fp32, fp16_storage], tile: [8x8, 16x16], vector: 4}
      - kernel: attention_naive
        workloads: [{seq: 40, head_dim: 8, heads: 2, causal: [false, true]}]
        axes: {precision: [fp32, fp16_storage], tile: 8x8, vector: 4}
"""


def small_matrix(folder: Path, text: str = MATRIX) -> str:
    path = folder / "matrix.yaml"
    path.write_text(text)
    return str(path)


def test_run_checks_every_case_and_writes_everything(farm: Farm) -> None:
    matrix = small_matrix(farm.folder)
    done = farm.run("run", "--matrix", matrix, "--device", "local:llvmpipe")
    results = farm.latest()
    assert len(results.trials) == 12
    assert {t.verdict for t in results.trials} == {Verdict.PASS}
    for trial in results.trials:
        assert trial.timing is not None
        assert len(trial.timing.wall_ns) == 2
        assert trial.outputs[0].count == 40 * 8 * 2
        assert trial.outputs[0].max_abs > 0
    assert results.run.finished_at
    latest = farm.out / "latest"
    document = json.loads((latest / "results.json").read_text(), parse_constant=pytest.fail)
    assert document["format"] == 1
    assert latest.is_symlink()
    names = {p.name for p in latest.iterdir()}
    assert {"results.json", "index.html", "junit.xml"} <= names
    assert any(n.startswith("soc-") and n.endswith(".html") for n in names)
    assert "index.html" in done.stdout
    suites = ET.parse(latest / "junit.xml").getroot()
    assert sum(1 for _ in suites.iter("testcase")) == 12

    second = farm.json("run", "--matrix", matrix, "--device", "local:llvmpipe")
    assert second["exit_code"] == 0
    again = farm.latest()
    assert again.previous_run == results.run.run_id
    assert {t.outputs[0].hash for t in again.trials} == {t.outputs[0].hash for t in results.trials}
    assert results.run.run_id in (farm.out / "latest" / "index.html").read_text()

    compared = farm.json("compare", results.run.run_id, "latest")
    assert len(compared["comparison"]["changes"]) == 12


def test_selection_set_and_case(farm: Farm) -> None:
    matrix = small_matrix(farm.folder)
    words = ("--matrix", matrix, "--device", "local:llvmpipe")
    plan = farm.json("plan", *words, "-k", "attention_flash and precision=fp32", "--set", "tile=16x16")
    (device,) = plan["devices"]
    assert len(device["cases"]) == 2
    assert all("tile=16x16" in c["label"] for c in device["cases"])
    case_id = device["cases"][0]["case_id"]
    farm.run("run", *words, "--case", case_id)
    assert [t.case_id for t in farm.latest().trials] == [case_id]


def test_matrix_errors_come_all_at_once_with_lines_and_exit_code_2(farm: Farm) -> None:
    bad = MATRIX.replace("tile: [8x8, 16x16]", "tyle: 8x8").replace(
        "kernel: attention_naive", "kernel: atention"
    )
    done = farm.run("run", "--matrix", small_matrix(farm.folder, bad), "--device", "local:llvmpipe", expect=2)
    assert "matrix.yaml:9:" in done.stderr
    assert 'Did you mean "tile"?' in done.stderr
    assert "matrix.yaml:10:" in done.stderr
    assert not farm.out.exists()


def test_unknown_device_is_missing_and_exit_code_3(farm: Farm) -> None:
    matrix = small_matrix(farm.folder)
    farm.environment["ANDROID_ADB_SERVER_PORT"] = "1"
    wanted = ("--device", "local:llvmpipe", "--device", "no-such-phone", "-k", "attention_naive")
    done = farm.run("run", "--matrix", matrix, *wanted, expect=3)
    assert "no-such-phone" in done.stderr
    assert [m.device_id for m in farm.latest().missing] == ["no-such-phone"]
    assert "no-such-phone" in (farm.out / "latest" / "index.html").read_text()


def test_a_wrong_kernel_is_exit_code_1_and_named_in_the_report(farm: Farm) -> None:
    broken = farm.folder / "kernels" / "attention_broken"
    broken.mkdir(parents=True)
    original = Path("kernels/attention_flash")
    for file in original.iterdir():
        if file.is_file():
            (broken / file.name).write_text(file.read_text().replace("attention_flash", "attention_broken"))
    shared = farm.folder / "kernels" / "_shared"
    shared.mkdir()
    for file in Path("kernels/_shared").iterdir():
        (shared / file.name).write_text(file.read_text())
    template = broken / "flash.comp.j2"
    text = template.read_text()
    assert "* inverse" in text
    template.write_text(text.replace("* inverse", "* 0.5"))
    matrix = small_matrix(farm.folder, MATRIX.replace("attention_flash", "attention_broken"))
    words = ("--matrix", matrix, "--kernels", str(farm.folder / "kernels"), "--device", "local:llvmpipe")
    farm.run("run", *words, expect=1)
    results = farm.latest()
    wrong = [t for t in results.trials if t.verdict is Verdict.MISMATCH]
    assert wrong
    assert {results.cases[t.case_id].case.kernel for t in wrong} == {"attention_broken"}
    assert all(t.recheck == "agreed" and t.tensors for t in wrong)
    page = next((farm.out / "latest").glob("soc-*.html")).read_text()
    assert wrong[0].case_id in page
    assert "mismatch" in page


LONG = """
version: 1
suites:
  smoke:
    repeats: 2
    idle_replays: 1
    idle_s: 0.2
    blocks:
      - kernel: scale
        workloads: [{n: [33, 40, 65, 1001], percent: [100, 150]}]
        axes: {precision: [fp32, fp16_storage], vector: [1, 4]}
"""
"""Quickly compiled; a rest makes every case last, so that the run is cut in its middle."""


def children(pid: int) -> list[int]:
    found: list[int] = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *children(int(child))]
    return found


def test_sigterm_ends_a_run_as_ctrl_c_does_and_latest_resumes_it(farm: Farm) -> None:
    quick = ("-k", "n=33 and percent=100")
    farm.run("run", "--matrix", small_matrix(farm.folder, LONG), "--device", "local:llvmpipe", *quick)
    complete = farm.latest().run.run_id
    temporary = farm.folder / "tmp"
    temporary.mkdir()
    farm.environment["TMPDIR"] = str(temporary)
    log = farm.folder / "run.log"
    words = ("--matrix", small_matrix(farm.folder, LONG), "--device", "local:llvmpipe")
    process = farm.start("run", *words, log=log)
    runs = farm.out / "runs"
    wait_for(lambda: any(complete not in str(p) for p in runs.glob("*/trials.jsonl")), "the first results")
    started = children(process.pid)
    assert len(started) >= 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 130, log.read_text()
    (cut,) = (p.name for p in runs.iterdir() if p.name != complete)
    said = log.read_text()
    assert said.splitlines()[0] == f"run {cut}"
    assert f"complete it with: tilefarm run --resume {cut}" in said
    assert not any(process_runs(pid) for pid in started)
    left = {p.name.rsplit("-", 1)[0] for p in temporary.iterdir() if p.name.startswith("tilefarm")}
    assert left <= {"tilefarm-locks"}  # lock files are for all processes and stay
    assert farm.latest().run.run_id == complete

    refused = farm.run("report", cut, expect=2)
    assert f"tilefarm run --resume {cut}" in refused.stderr
    farm.run("run", "--resume", "latest")
    assert farm.latest().run.run_id == cut
    assert len(farm.latest().trials) == 32
    farm.run("run", "--resume", complete)
    assert farm.latest().run.run_id == cut, "out/latest went back to an older run"


def test_resume_names_a_device_that_is_gone(farm: Farm) -> None:
    """And gives its cases up at once; nobody else could bring it back during this run."""
    farm.environment["ANDROID_ADB_SERVER_PORT"] = "1"
    point, gone = case(), device("phone-1", transport="adb", serial="GONE 1")
    planned = results(points=[point], devices=[gone], run=run_info(finished=False))
    job = CaseJob(point.case_id, 1, point.label, "gles", "c0de", [], [], [])
    RunFolder.create(farm.out, Manifest(planned, {"phone-1": [job]}, "memory://b", "ondemand"))
    done = farm.run("run", "--resume", "latest", expect=3)
    assert f"warning: {gone.serial}: no such device" in done.stderr
    assert [m.device_id for m in farm.latest().missing] == ["phone-1"]

"""A night from beat's message to its report: real Redis, Celery, orchestrator and worker."""

import signal
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.execution.night_folder import NightFolder
from orchestrator.execution.roll_call import Roll, Rolls
from orchestrator.execution.run_folder import load_results
from tests.farm import Farm, wait_for
from tests.results_fixture import device

MATRIX = """
version: 1
suites:
  tiny:
    repeats: 3
    blocks:
      - kernel: scale
        workloads: [{n: [33], percent: [100]}]
        axes: {precision: [fp32], vector: [1, 4]}
"""
GONE = device("adb-gone", name="a phone of yesterday", serial="R58N")


def test_beat_has_the_orchestrator_run_a_night_once(farm: Farm, broker: str, tmp_path: Path) -> None:
    """However often it says so. A phone of the night before that is not there is missing."""
    (tmp_path / "m.yaml").write_text(MATRIX)
    due = datetime.now(UTC) - timedelta(minutes=2)
    farm.environment |= {
        "TILEFARM_BROKER": broker,
        "TILEFARM_NIGHTS": f"tiny@{due:%H:%M}",
        "TILEFARM_NIGHT_OPTIONS": f"--matrix {tmp_path / 'm.yaml'} --no-probes --fail-on regressed",
        "TILEFARM_BEAT_S": "1",
    }
    folder = NightFolder(farm.out)
    Rolls(farm.out).put("tiny", Roll().after([GONE], "YESTERDAY", datetime.now(UTC).isoformat()))
    with ExitStack() as stack:
        worker = start(stack, farm, "worker", "--device", "local:llvmpipe")
        orchestrator = start(stack, farm, "orchestrator")
        wait_for(lambda: folder.kept() is not None, "the orchestrator's first look")
        wait_for(lambda: bool(farm.json("devices")["devices"]), "the worker")
        assert folder.all() == {}  # as a farm starts, nothing was missed
        kept = folder.kept()
        assert kept is not None
        earlier = (due - timedelta(minutes=1)).isoformat(timespec="seconds")
        folder.keep(replace(kept, set_at=earlier, looked_at=earlier))  # as if that had been yesterday
        beats = [start(stack, farm, "beat"), start(stack, farm, "beat")]
        wait_for(lambda: [r.state for r in folder.all().values()] == ["finished"], "the night's report")
        looked = looked_at(folder)
        wait_for(lambda: looked_at(folder) > looked, "beat's next message")
        for process in (*beats, orchestrator, worker):
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    (record,) = folder.all().values()
    assert record.night == f"{due:%Y-%m-%d}-tiny"
    assert record.starts == 1
    assert [p.name for p in (farm.out / "runs").iterdir()] == [record.run_id]
    found = load_results(farm.out / "runs" / record.run_id)
    assert (found.run.night, found.run.missed_nights, len(found.trials)) == (record.night, [], 2)
    assert found.run.fail_on == "regressed"
    assert [m.device_id for m in found.missing] == ["adb-gone"]
    assert "no agent knows of it" in found.missing[0].why
    assert record.exit_code == 3
    assert record.verdict.startswith("1 device did not take part. 2 of 2 measured trials passed")
    assert [n["state"] for n in farm.json("nights")["nights"]] == ["finished"]


def looked_at(folder: NightFolder) -> str:
    kept = folder.kept()
    assert kept is not None
    return kept.looked_at


def start(stack: ExitStack, farm: Farm, *words: str) -> "subprocess.Popen[bytes]":
    """Ended with the test, however that ends."""
    process = farm.start(*words, log=farm.folder / f"{words[0]}.log")

    def end() -> None:
        if process.poll() is None:
            process.kill()
        process.wait(20)

    stack.callback(end)
    return process

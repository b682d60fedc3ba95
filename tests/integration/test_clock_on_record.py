"""The GPU's clock on its way from NVML, through the runner and its stream, to what a trial keeps."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.trial import Sensors
from orchestrator.domain.verdict import Verdict
from tests.integration.fake_runner import PROGRAM, FakeRunner

NVML = PROGRAM.parent / "libfake_nvml.so"


def test_the_clock_stands_around_each_timed_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFARM_NVML", str(NVML))
    monkeypatch.setenv("FAKE_VENDOR", "NVIDIA Corporation")
    monkeypatch.setenv("FAKE_NVML_REASONS", "0x41")
    runner = FakeRunner(tmp_path)
    timed = replace(runner.case("warm", "double", api="gles"), warmup=1, warmup_ms=20, repeats=2)
    assert [v for v, _ in runner.run(timed)] == [Verdict.PASS]
    wanted = Sensors(gpu_hz=[1_980_000_000] * 3, temp_mc=[40_000] * 3, throttled=True)
    assert runner.records["warm"].end.sensors == wanted
    monkeypatch.setenv("FAKE_VENDOR", "Mesa")
    assert [v for v, _ in runner.run(timed)] == [Verdict.PASS]
    assert runner.records["warm"].end.sensors == Sensors(), "a software driver beside that GPU has no clock"

"""Field cases of failing devices, on the runner's real program with a fake GPU: from job.txt to the verdict.

What a driver does wrong is scripted; parent and child processes, records, proof and judgement are real.
"""

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.job import CaseJob
from orchestrator.domain.kernel import DType
from orchestrator.domain.verdict import Verdict
from tests.integration.fake_runner import FakeRunner
from tests.kernels.drivers import runner_path

SQUARE = (64, 64)


@pytest.fixture
def runner(tmp_path: Path) -> FakeRunner:
    return FakeRunner(tmp_path)


def test_g1_01_23_of_100_executions_wrong_in_a_block(runner: FakeRunner) -> None:
    """G1-01: the same pipeline 100 times; 23 times a block of 32 × 32 is wrong, each time otherwise."""
    racing = runner.case("racing", "double corrupt_block=32,0,63,31,64,100", shape=SQUARE)
    steady = runner.case("steady", "double", shape=SQUARE)
    (verdict, reason), clean = runner.run(replace(racing, replays=100), replace(steady, replays=60))
    assert verdict is Verdict.NONDETERMINISTIC
    assert reason == (
        "y: 24 different results, 23 of 100 unlike the commonest; 1024 elements differ, box [32..63, 0..31]"
    )
    assert clean == (Verdict.PASS, "")
    assert sum(runner.records["racing"].end.outputs[0].hashes.values()) == 100


def test_g1_02_wrong_only_after_a_rest(runner: FakeRunner) -> None:
    """G1-02: 50 replays in a row are right; of 50 that come after a rest 3 are not."""
    case = runner.case("sleepy", "double idle_corrupt=10,3/50")
    [(verdict, reason)] = runner.run(replace(case, replays=50, idle_replays=50, idle_ms=15))
    assert verdict is Verdict.NONDETERMINISTIC
    assert reason.startswith("y: 4 different results, unlike the commonest: idle 3 of 50, busy 0 of 50;")


@pytest.mark.parametrize(
    ("shader", "impose", "says"),
    [
        ("double group=32,2,32", "", "invocations 2048 > 1024"),
        ("double group=16,16,1", "invocations=128", "invocations 256 > 128"),
    ],
)
def test_g1_15_an_oversized_workgroup_is_never_dispatched(
    runner: FakeRunner, shader: str, impose: str, says: str
) -> None:
    """G1-15: the pre-flight names both numbers."""
    runner.impose = impose
    assert runner.run(runner.case("oversized", shader)) == [(Verdict.UNSUPPORTED, says)]


@pytest.mark.parametrize("dtype", ["f32", "f16", "u32"])
@pytest.mark.parametrize("keep", [False, True])
def test_g1_15_one_that_runs_anyway_and_writes_nothing_fails(
    runner: FakeRunner, dtype: DType, keep: bool
) -> None:
    """G1-15: the reference is mostly zeros and the tolerance forgives anything; or there is no reference."""
    case = runner.case("silent", "none", dtype=dtype)
    if keep:
        case = replace(case, checks=[], kept=("y",))
    else:
        case = runner.expecting(case, [0, 0, 0, 0, 0, 0, 0, 1e-3], tolerance=1e300)
    [(verdict, reason)] = runner.run(case)
    assert verdict is Verdict.MISMATCH
    assert "8 of 8 elements never written, first 0" in reason


@pytest.mark.parametrize(("how", "blamed"), [("now", [7]), ("free", [])])
def test_g1_17_a_lost_device_costs_one_variant(runner: FakeRunner, how: str, blamed: list[int]) -> None:
    """G1-17: variant 7 of 40 loses the device and everything after it in that process fails.

    With ``free`` the loss shows only when the next variant begins: nobody dispatched anything then.
    """
    cases = [runner.case(f"v{n}", f"double lost={how}" if n == 7 else "double") for n in range(40)]
    verdicts = runner.run(*cases)
    assert [n for n, (v, _) in enumerate(verdicts) if v is Verdict.CRASHED] == blamed
    assert sum(v is Verdict.PASS for v, _ in verdicts) == 40 - len(blamed)
    if blamed:
        assert verdicts[7][1] == "dispatch: fake: the device was lost"


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def kill_when_started(process: subprocess.Popen[bytes]) -> bytes:
    """SIGKILL once the first case has begun; its child dies with it. Gives what was still printed."""
    assert process.stdout is not None
    while b'"type":"start"' not in process.stdout.readline():
        pass
    os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate(timeout=30)  # ends when the child is gone, too
    return rest


def test_g1_19_a_runner_killed_while_it_compiles_leaves_nothing(runner: FakeRunner) -> None:
    """G1-19: the next run finds job and blobs as they were, and compiles cold."""
    cases = [runner.case("slow", "double slow_compile=900"), runner.case("next", "double")]
    job = runner.prepare(cases)
    before = files(runner.folder)
    rest = kill_when_started(runner.start(job))
    assert b'"type":"end"' not in rest  # it was compiling
    assert files(runner.folder) == before
    assert runner.finish(runner.start(job), cases) == [(Verdict.PASS, "")] * 2
    timing = runner.records["slow"].end.timing
    assert timing is not None
    assert timing.reused == 0
    assert timing.compile_ns[0] >= 900_000_000


def test_g1_19_no_driver_cache_is_left_behind(tmp_path: Path, runner: FakeRunner) -> None:
    """G1-19: the real runner on this machine's GLES driver, with a home of its own, killed and run again."""
    home = tmp_path / "home"
    home.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MESA_", "XDG_", "__GL_"))}
    shader = (
        "#version 310 es\nlayout(local_size_x = 8) in;\n"
        "layout(std430, binding = 0) readonly buffer X { float x[]; };\n"
        "layout(std430, binding = 1) writeonly buffer Y { float y[]; };\n"
        "void main() { y[gl_GlobalInvocationID.x] = 2.0 * x[gl_GlobalInvocationID.x]; }\n"
    )
    cases = [runner.case("real", shader, api="gles")]
    job = runner.prepare(cases)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [runner_path(), "run", job],
            env=env | {"HOME": str(home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )

    kill_when_started(start())
    assert runner.finish(start(), cases) == [(Verdict.PASS, "")]
    assert files(home) == {}


@pytest.mark.parametrize("enable", [("float16",), ("storage16",), ("float16", "storage16")])
def test_g1_23_each_capability_is_switched_on_by_itself(runner: FakeRunner, enable: tuple[str, ...]) -> None:
    """G1-23: arithmetic only, storage only, both: a device gets what was proven and nothing beside it."""
    runner.adapter, runner.enable = "fake-1", enable
    assert runner.run(runner.case("c", "double")) == [(Verdict.PASS, "")]
    assert runner.records["c"].driver == f"fake GPU 1; enabled: {','.join(enable)}"


def test_g1_23_a_compiler_that_aborts_costs_one_case(runner: FakeRunner) -> None:
    """G1-23, third device: it offers both, and its compiler aborts on a shader that uses them."""
    cases: list[CaseJob] = [
        runner.case("before", "double"),
        runner.case("aborts", "double crash=compile"),
        runner.case("after", "double"),
    ]
    before, aborts, after = runner.run(*cases)
    assert before == after == (Verdict.PASS, "")
    assert aborts == (Verdict.COMPILE_FAILED, "the driver died in compile: signal 6")
    assert runner.records["aborts"].end.log == "fake driver: assertion failed in compile\n"

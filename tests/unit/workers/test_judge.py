"""From the runner's end record to the verdict; the first lines of every failure that people read."""

import math
from typing import Any

import pytest

from orchestrator.domain.job import BufferJob, CaseJob, CheckJob
from orchestrator.domain.verdict import Verdict
from tests.unit.workers import streams
from workers.judge import judge
from workers.result_stream import EndRecord, ResultStream

CASE = CaseJob(
    case_id="case-a",
    attempt=1,
    label="toy",
    api="gles",
    code_hash="c0de",
    buffers=[BufferJob("x", "in", "f32", 9, "a" * 64), BufferJob("o", "out", "f32", 4)],
    passes=[],
    checks=[CheckJob("o", "b" * 64, 1e-6, 0.0, 1e-10)],
)


def ended(status: str, **fields: Any) -> EndRecord:
    """As it comes through the stream."""
    stream = ResultStream("test")
    for line in streams.whole(streams.end("case-a", 0, status, **fields)).splitlines(keepends=True):
        stream.feed(line)
    return stream.finish()[0].end


def judged(*outputs: dict[str, object], case: CaseJob = CASE) -> tuple[Verdict, str]:
    return judge(ended("ok", timing=streams.TIMING, outputs=list(outputs)), case)


def test_within_every_limit_is_a_pass_without_a_reason() -> None:
    assert judged(streams.output()) == (Verdict.PASS, "")
    assert judged(streams.output(nmse=1e-10))[0] is Verdict.PASS


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"failing": 3, "max_abs": 0.5}, "o: 3 of 4 elements outside tolerance, max error 0.5"),
        ({"nmse": 2e-10}, "NMSE 2e-10 > 1e-10"),
        ({"guard": "damaged"}, "wrote outside its buffer"),
        ({"unwritten": 2, "unwritten_first": 1}, "2 of 4 elements never written, first 1"),
        ({"nonfinite_mismatch": 1, "nan": 1}, "1 elements finite on one side only (1 NaN, 0 inf)"),
    ],
)
def test_each_fault_alone_is_a_mismatch_that_names_it(changes: dict[str, object], says: str) -> None:
    verdict, reason = judged(streams.output(**changes))
    assert verdict is Verdict.MISMATCH
    assert says in reason
    assert reason.startswith("o: ")


@pytest.mark.parametrize("nmse", [math.nan, math.inf])
def test_g4_01_an_error_that_is_not_a_number_fails(nmse: float) -> None:
    assert judged(streams.output(nmse=nmse))[0] is Verdict.MISMATCH


def test_g4_01_all_nan_against_all_nan_fails() -> None:
    """The runner's numbers for it: every mean is 0/0, nothing is finite, all elements fail."""
    all_nan = streams.output(
        nan=4,
        failing=4,
        nmse=math.nan,
        max_abs=math.nan,
        mean_abs=math.nan,
        cosine=math.nan,
        ref_absmax=math.nan,
    )
    verdict, reason = judged(all_nan)
    assert verdict is Verdict.MISMATCH
    assert "4 of 4 elements outside tolerance, max error nan" in reason


def test_g4_01_no_elements_at_all_are_no_pass() -> None:
    verdict, _ = judged(streams.output(count=0, nmse=math.nan))
    assert verdict is not Verdict.PASS


def test_g1_15_nothing_written_is_never_max_error_0() -> None:
    """A reference of zeros, a kernel that wrote nothing, and comparisons that happen to say 0."""
    silent = streams.output(unwritten=4, unwritten_first=0, max_abs=0.0, nmse=0.0, ref_absmax=0.0)
    verdict, reason = judged(silent)
    assert verdict is Verdict.MISMATCH
    assert reason == "o: 4 of 4 elements never written, first 0"


def bands() -> dict[str, object]:
    """23 of 100 executions wrong, each otherwise, in elements 32 to 1055."""
    hashes = {"good": 77} | {f"bad-{n}": 1 for n in range(23)}
    return streams.output(
        count=4096, hash="good", hashes=hashes, differs={"count": 1024, "first": 32, "last": 1055}
    )


def large(replays: int = 100) -> CaseJob:
    return CaseJob(
        case_id="case-a",
        attempt=1,
        label="toy",
        api="gles",
        code_hash="c0de",
        buffers=[BufferJob("o", "out", "f32", 4096)],
        passes=[],
        checks=[CheckJob("o", "b" * 64, 1e-6, 0.0, 1e-10)],
        replays=replays,
    )


def test_g1_01_77_right_and_23_wrong_is_nondeterministic() -> None:
    verdict, reason = judged(bands(), case=large())
    assert verdict is Verdict.NONDETERMINISTIC
    assert "24 different results in 100 executions, 23 unlike the commonest" in reason
    assert "1024 elements between 32 and 1055" in reason


def test_g1_01_nondeterministic_wins_when_the_first_execution_was_a_wrong_one() -> None:
    verdict, reason = judged(bands() | {"failing": 1024, "max_abs": 3.0, "nmse": 1.0}, case=large())
    assert verdict is Verdict.NONDETERMINISTIC
    assert "1024 of 4096 elements outside tolerance" in reason


def test_g1_01_fewer_executions_than_asked_for_prove_nothing() -> None:
    verdict, reason = judged(streams.output(count=4096, hashes={"good": 77}), case=large())
    assert verdict is Verdict.INFRA
    assert reason == "o: 77 executions were verified, 100 asked for"


def test_an_output_without_any_hash_is_no_verdict() -> None:
    assert judged(streams.output(hashes={}))[0] is Verdict.INFRA


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        [streams.output(buffer="p")],
        [streams.output(), streams.output()],
        [streams.output(), streams.output(buffer="p")],
        [streams.output(count=3)],
        [streams.output(dtype="f16")],
    ],
)
def test_other_outputs_than_the_job_asked_for_are_infrastructure(outputs: list[dict[str, object]]) -> None:
    verdict, reason = judged(*outputs)
    assert verdict is Verdict.INFRA
    assert "other buffers" in reason


def test_each_output_of_several_is_named() -> None:
    two = CaseJob(
        case_id="case-a", attempt=1, label="toy", api="gles", code_hash="c0de",
        buffers=[BufferJob("o", "out", "f32", 4), BufferJob("l", "out", "f32", 4)], passes=[],
        checks=[CheckJob("o", "b" * 64, 1e-6, 0.0, 1.0), CheckJob("l", "b" * 64, 1e-6, 0.0, 1.0)],
    )  # fmt: skip
    verdict, reason = judged(streams.output(failing=1), streams.output(buffer="l", guard="damaged"), case=two)
    assert verdict is Verdict.MISMATCH
    assert "o: 1 of 4" in reason
    assert "l: wrote outside" in reason
    assert judged(streams.output(buffer="l"), streams.output(), case=two) == (Verdict.PASS, "")


@pytest.mark.parametrize(
    ("status", "fields", "verdict", "says"),
    [
        ("compile_failed", {"stage": "link", "log": "…"}, Verdict.COMPILE_FAILED, "link failed"),
        ("unsupported", {"reason": "shared_bytes 36864 > 16384"}, Verdict.UNSUPPORTED, "36864 > 16384"),
        ("crashed", {"stage": "dispatch", "signal": 11}, Verdict.CRASHED, "died in dispatch: signal 11"),
        ("crashed", {"stage": "compile", "exit_code": 1}, Verdict.CRASHED, "died in compile: exit code 1"),
        (
            "crashed",
            {
                "stage": "dispatch",
                "reason": "the context was lost (GL_GUILTY_CONTEXT_RESET)",
                "exit_code": 77,
            },
            Verdict.CRASHED,
            "dispatch: the context was lost (GL_GUILTY_CONTEXT_RESET)",
        ),
        ("crashed", {"stage": "context", "signal": 6}, Verdict.INFRA, "context was opened (signal 6)"),
        ("hung", {"stage": "dispatch", "deadline_ms": 20000}, Verdict.HUNG, "in dispatch after 20000 ms"),
        ("hung", {"stage": "context", "deadline_ms": 20000}, Verdict.INFRA, "no context within 20000 ms"),
        (
            "error",
            {"stage": "buffers", "reason": "blob abc: no such file"},
            Verdict.INFRA,
            "buffers: blob abc",
        ),
    ],
)
def test_every_other_status(status: str, fields: dict[str, object], verdict: Verdict, says: str) -> None:
    got, reason = judge(ended(status, **fields), CASE)
    assert got is verdict
    assert says in reason
    assert "None" not in reason


def test_verdicts_of_the_runner_alone_blame_the_kernel_or_not() -> None:
    """Written out, so that a verdict that changes sides is noticed."""
    blamed = {v.value for v in Verdict if v.blames_kernel}
    assert blamed == {"mismatch", "nondeterministic", "compile_failed", "crashed", "hung"}

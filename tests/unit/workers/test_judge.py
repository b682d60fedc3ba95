"""From the runner's end record to the verdict; the first lines of every failure that people read."""

import math
from dataclasses import replace
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
    assert "o: 24 different results, 23 of 100 unlike the commonest" in reason
    assert "1024 elements between 32 and 1055 differ" in reason


def test_g1_01_the_box_is_told_in_coordinates() -> None:
    boxed = {"count": 1024, "first": 32, "last": 4063, "box": [[32, 63], [0, 31], [5, 5]]}
    _, reason = judged(bands() | {"differs": boxed}, case=large())
    assert reason.endswith("1024 elements differ, box [32..63, 0..31, 5]")


def test_g1_01_more_results_than_are_told_by_name() -> None:
    """What is told of all others together is no single result, however often it came."""
    hashes = {f"h{n}": 1 for n in range(64)} | {"others": 36}
    verdict, reason = judged(streams.output(count=4096, hash="h0", hashes=hashes), case=large())
    assert verdict is Verdict.NONDETERMINISTIC
    assert "o: more than 64 different results, 99 of 100 unlike the commonest" in reason


def test_g1_02_the_rate_is_told_for_each_power_state() -> None:
    """50 replays in a row and the timed block are right, 3 of 50 after a rest are not."""
    hashes = {"good": 98, "bad-1": 2, "bad-2": 1}
    output = streams.output(
        count=4096, hash="good", hashes=hashes, idle_hashes={"good": 47, "bad-1": 2, "bad-2": 1}
    )
    verdict, reason = judged(output, case=replace(large(50), idle_replays=50, idle_ms=60_000))
    assert verdict is Verdict.NONDETERMINISTIC
    assert reason == "o: 3 different results, unlike the commonest: idle 3 of 50, busy 0 of 51"


@pytest.mark.parametrize("rested", [{}, {"good": 49}, {"good": 51}])
def test_g1_02_other_rests_than_asked_for_prove_nothing(rested: dict[str, int]) -> None:
    output = streams.output(count=4096, hash="good", hashes={"good": 101}, idle_hashes=rested)
    verdict, reason = judged(output, case=replace(large(50), idle_replays=50, idle_ms=1))
    assert verdict is Verdict.INFRA
    assert "executions came after a rest, 50 asked for" in reason


def kept(**changes: object) -> dict[str, object]:
    """The record of an output without a reference; ``changes`` make it fail."""
    found: dict[str, object] = {
        "dtype": "u32", "count": 12, "hash": "h", "hashes": {"h": 1}, "guard": "ok", "unwritten": 0,
        "kept": True,
    }  # fmt: skip
    return found | changes


KEEPING = replace(CASE, buffers=[*CASE.buffers, BufferJob("raw", "out", "u32", 12)], kept=("raw",))


@pytest.mark.parametrize(
    ("changes", "verdict", "says"),
    [
        ({}, Verdict.PASS, ""),
        ({"hashes": {"h": 1, "g": 1}}, Verdict.NONDETERMINISTIC, "raw: 2 different results, 1 of 2"),
        ({"unwritten": 12, "unwritten_first": 0}, Verdict.MISMATCH, "raw: 12 of 12 elements never written"),
        ({"guard": "damaged"}, Verdict.MISMATCH, "raw: wrote outside its buffer"),
        ({"hashes": {}}, Verdict.INFRA, "raw: 0 executions were verified"),
    ],
)
def test_an_output_without_a_reference_is_judged_too(
    changes: dict[str, object], verdict: Verdict, says: str
) -> None:
    record = ended("ok", timing=streams.TIMING, outputs=[streams.output()], kept={"raw": kept(**changes)})
    assert judge(record, KEEPING)[0] is verdict
    assert says in judge(record, KEEPING)[1]


@pytest.mark.parametrize("found", [{}, {"other": kept()}, {"raw": kept(), "other": kept()}])
def test_other_kept_outputs_than_asked_for_are_infrastructure(found: dict[str, object]) -> None:
    record = ended("ok", timing=streams.TIMING, outputs=[streams.output()], kept=found)
    assert judge(record, KEEPING) == (
        Verdict.INFRA,
        "the runner kept other buffers than the job asked for",
    )


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
        (
            "crashed",
            {"stage": "compile", "signal": 6},
            Verdict.COMPILE_FAILED,
            "the driver died in compile: signal 6",
        ),
        (
            "crashed",
            {"stage": "link", "reason": "the device was lost", "exit_code": 72},
            Verdict.COMPILE_FAILED,
            "the driver died in link: the device was lost",
        ),
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

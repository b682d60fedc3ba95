"""Output counts when it is proven whole; cut, flipped or foreign output is infrastructure."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.domain.errors import InfraError, TruncatedOutput
from orchestrator.domain.trial import Difference
from tests.unit.domain.strategies import quick
from tests.unit.workers import streams
from workers.result_stream import MAX_LINE_BYTES, CaseRecord, Kept, ResultStream

LINES = [
    streams.hello(),
    streams.driver(),
    streams.start("case-a", 0),
    streams.line("beat", uptime_ms=1000),
    streams.ok("case-a", 0, [streams.output()]),
    streams.start("case-b", 1),
    streams.end("case-b", 1, "compile_failed", stage="compile", log="0:1: \u00ff error", log_truncated=True),
]
WHOLE = streams.whole(*LINES)


def read(text: bytes) -> list[CaseRecord]:
    """As a session does: whole lines as they come, then the proof."""
    stream = ResultStream("phone: run b1", "run-1")
    for line in text.splitlines(keepends=True):
        stream.feed(line)
    return stream.finish()


def test_a_whole_stream_gives_its_records_in_order() -> None:
    first, second = read(WHOLE)
    assert (first.end.case, first.end.status, first.driver) == ("case-a", "ok", streams.DRIVER)
    assert first.end.timing is not None
    assert first.end.timing.wall_ns == [1_000_000, 1_000_500]
    assert first.end.outputs[0].nmse == 1e-14
    assert (second.end.case, second.end.log, second.end.log_truncated) == ("case-b", "0:1: ÿ error", True)


def test_feed_tells_what_came_for_live_display() -> None:
    stream = ResultStream("phone")
    kinds = [stream.feed(line) for line in WHOLE.splitlines(keepends=True)]
    assert kinds[2:5] == [("start", "case-a"), ("beat", ""), ("end", "case-a")]
    assert kinds[-1] == ("final", "")


def test_each_record_names_the_driver_of_its_own_process() -> None:
    """After a crash a new child may load another driver."""
    other = streams.line("driver", renderer="Other", version="2")
    first, second = read(streams.whole(*LINES[:5], other, *LINES[5:]))
    assert (first.driver, second.driver) == (streams.DRIVER, "Other; 2")


@quick
@given(st.integers(0, len(WHOLE) - 1))
@example(0)
@example(len(WHOLE) - 1)
@example(WHOLE.rindex(b"{"))
def test_g2_01_output_cut_anywhere_gives_no_record(cut: int) -> None:
    with pytest.raises(TruncatedOutput, match=r"^phone: run b1: "):
        read(WHOLE[:cut])


def test_g2_01_every_cut_between_lines_gives_no_record() -> None:
    lines = WHOLE.splitlines(keepends=True)
    for kept in range(len(lines)):
        with pytest.raises(TruncatedOutput):
            read(b"".join(lines[:kept]))


@quick
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_g2_01_a_flipped_byte_gives_no_record(at: int, mask: int) -> None:
    damaged = bytearray(WHOLE)
    damaged[at] ^= mask
    with pytest.raises(InfraError):
        read(bytes(damaged))


@pytest.mark.parametrize("missing", range(len(LINES)))
def test_g2_01_a_lost_line_gives_no_record(missing: int) -> None:
    lines = LINES[:missing] + LINES[missing + 1 :]
    with pytest.raises(TruncatedOutput):
        read(b"".join(lines) + streams.final(LINES))


def test_a_doubled_line_gives_no_record() -> None:
    with pytest.raises(TruncatedOutput):
        read(b"".join([*LINES, LINES[-1]]) + streams.final(LINES))


@pytest.mark.parametrize(
    "lie", [{"cases": 1}, {"bytes": 1}, {"sha256": "0" * 64}, {"cases": "2"}, {"bytes": None}]
)
def test_a_final_record_that_says_otherwise_gives_no_record(lie: dict[str, object]) -> None:
    with pytest.raises(TruncatedOutput, match="the final record says"):
        read(b"".join(LINES) + streams.final(LINES, **lie))


@pytest.mark.parametrize("late", [LINES[3], LINES[4], b"\n", streams.final(LINES)])
def test_output_after_the_final_record_is_refused(late: bytes) -> None:
    with pytest.raises(TruncatedOutput, match="after the final record"):
        read(WHOLE + late)


def test_a_runner_of_another_format_is_named() -> None:
    with pytest.raises(TruncatedOutput, match="format 2, this host 1; rebuild"):
        ResultStream("phone").feed(streams.hello(number=2))


@pytest.mark.parametrize("lines", [[streams.hello("run-0"), *LINES[1:]], LINES[1:]])
def test_g2_01_output_of_another_run_is_refused(lines: list[bytes]) -> None:
    with pytest.raises(TruncatedOutput, match="run-1"):
        read(streams.whole(*lines))


def test_a_line_that_never_ends_is_refused() -> None:
    long = streams.end("case-a", 0, "error", reason="x" * MAX_LINE_BYTES)
    with pytest.raises(TruncatedOutput, match="a line was cut"):
        ResultStream("phone").feed(long)


@pytest.mark.parametrize(
    "text",
    [
        b"CANNOT LINK EXECUTABLE: library not found\n",
        b"[]\n",
        b'"start"\n',
        b"\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
        b'{"n":' + b"9" * 10_000 + b"}\n",
    ],
)
def test_what_is_not_a_record_is_infrastructure(text: bytes) -> None:
    """A linker's message, noise, and what would exhaust a parser."""
    with pytest.raises(TruncatedOutput, match="phone: not a record"):
        ResultStream("phone").feed(text)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "fine"},
        {"status": "ok", "outputs": [streams.output(guard="perhaps")]},
        {"status": "ok", "outputs": [streams.output(failing="many")]},
        {"status": "ok", "outputs": "all"},
        {
            "status": "ok",
            "outputs": [streams.output(differs={"count": 1, "first": 0, "last": 0, "box": [[0]]})],
        },
        {"status": "ok", "kept": {"raw": {"hash": "h"}}},
        {"status": "hung", "deadline_ms": "long"},
        {},
    ],
)
def test_an_end_record_of_another_shape_is_infrastructure(fields: dict[str, object]) -> None:
    with pytest.raises(TruncatedOutput, match="phone: bad end record"):
        ResultStream("phone").feed(streams.line("end", case="a", index=0, **fields))


def test_boxes_rests_and_kept_outputs_are_read() -> None:
    differs = {"count": 2, "first": 1, "last": 3, "box": [[0, 1], [1, 1]]}
    output = streams.output(hashes={"a": 3, "b": 1}, idle_hashes={"b": 1}, differs=differs)
    raw = {"hash": "h", "hashes": {"h": 4}, "kept": False, "keep_error": "No space left on device"}
    record = streams.end("a", 0, "ok", timing=streams.TIMING, outputs=[output], kept={"raw": raw})
    end = read(streams.whole(streams.hello(), record))[0].end
    assert end.outputs[0].differs == Difference(2, 1, 3, [(0, 1), (1, 1)])
    assert end.outputs[0].idle_hashes == {"b": 1}
    assert end.kept == {"raw": Kept("h", {"h": 4}, kept=False, keep_error="No space left on device")}


def test_fields_that_a_newer_runner_adds_are_passed_over() -> None:
    added = streams.end("a", 0, "error", reason="r", stage="buffers", novelty=1)
    assert read(streams.whole(streams.hello(), added))[0].end.reason == "r"

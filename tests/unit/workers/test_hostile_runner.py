"""Whatever a runner prints is records or an error of ours: it runs on a phone that may lie."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import InfraError, TruncatedOutput
from orchestrator.domain.limits import printable
from tests.unit.domain.strategies import quick
from tests.unit.workers import streams
from tests.unit.workers.fake_device import FakeDevice
from tests.unit.workers.test_bench import PROFILE, profile_line
from workers import result_stream
from workers.bench import probe
from workers.result_stream import CaseRecord, ResultStream
from workers.transports.base import CommandResult

KEPT = {"hash": "a" * 64, "hashes": {"a" * 64: 3}, "kept": True}
LINES = [
    streams.hello(),
    streams.driver(),
    streams.start("case-a", 0),
    streams.line("beat", uptime_ms=1000),
    streams.end(
        "case-a",
        0,
        "ok",
        timing=streams.TIMING,
        outputs=[streams.output(differs={"count": 1, "first": 2, "last": 2, "box": [[0, 1]]})],
        kept={"p": KEPT},
    ),
    streams.end("case-b", 1, "hung", stage="dispatch", deadline_ms=20000, log="x"),
]
WHOLE = streams.whole(*LINES)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def read(text: bytes) -> list[CaseRecord]:
    stream = ResultStream("phone: run", "run-1")
    for line in text.splitlines(keepends=True):
        stream.feed(line)
    return stream.finish()


def refused(text: bytes) -> bool:
    """Any other error than ours is the test's."""
    try:
        read(text)
    except TruncatedOutput as e:
        return str(e).startswith("phone: run: ") or pytest.fail(str(e))
    return False


@quick
@given(st.lists(st.binary(max_size=40) | st.sampled_from(LINES), max_size=6))
def test_any_bytes_are_refused(parts: list[bytes]) -> None:
    assert refused(b"\n".join(parts))


@quick
@given(st.sampled_from(range(len(LINES))), st.data())
def test_any_record_of_the_right_digest_is_taken_or_refused(at: int, data: st.DataObject) -> None:
    """A runner that lies well: whatever a field says, the stream is whole."""
    record = json.loads(LINES[at])
    place: Any = record
    key = data.draw(st.sampled_from(sorted(place)))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(json_values)
    line = json.dumps(record).encode() + b"\n"
    lines = [*LINES[:at], line, *LINES[at + 1 :]]
    text = b"".join(lines)
    ends = sum(json.loads(one).get("type") == "end" for one in lines)
    if not refused(text + streams.final(lines, cases=ends)):
        for record in read(text + streams.final(lines, cases=ends)):
            assert record.driver == printable(record.driver, 500)


@pytest.mark.parametrize(
    "line",
    [
        b"{" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
        b'{"type": "beat", "uptime_ms": ' + b"9" * 5000 + b"}\n",
        b'{"type": "beat", "uptime_ms": 9223372036854775808}\n',
        b'{"type": "beat", "uptime_ms": -9223372036854775809}\n',
        b'{"type": "beat\xff"}\n',
        b'["end"]\n',
        b"\n",
        streams.end("case-a", 0, "ok", timing=streams.TIMING | {"wall_ns": [1 << 64]}),
        streams.end("case-a", 0, "ok", outputs=[streams.output(count=10**30)]),
        streams.end("case-a", 0, "splendid"),
        streams.end("case-a", 0, "ok", outputs=[{"buffer": "o"}]),
        b'{"type": "end", "case": {"a": 1}, "index": 0, "status": "ok"}\n',
    ],
)
def test_records_that_would_break_what_computes_with_them_are_refused(line: bytes) -> None:
    lines = [LINES[0], line]
    assert refused(b"".join(lines) + streams.final(lines))


def test_of_two_values_under_one_name_the_last_one_counts_everywhere() -> None:
    """As Python's parser has it; nothing reads the line a second time with another one."""
    line = b'{"type":"end","case":"x","index":0,"status":"ok","case":"case-a"}\n'
    (record,) = read(streams.whole(LINES[0], line))
    assert record.end.case == "case-a"


def test_a_stream_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_stream, "MAX_STREAM_BYTES", 300)
    stream = ResultStream("phone: run")
    for _ in range(300 // len(LINES[3])):
        stream.feed(LINES[3])
    with pytest.raises(TruncatedOutput, match="more than 300 bytes"):
        stream.feed(LINES[3])


def test_a_drivers_name_is_one_line_for_people() -> None:
    named = streams.line("driver", renderer="\x1b[2J\nA" + "x" * 9000, version={"a": ["\u202e"]})
    (record,) = read(streams.whole(LINES[0], named, streams.end("case-a", 0, "ok")))
    assert len(record.driver) == 500
    assert record.driver == printable(record.driver, 500)


def probed(*lines: bytes) -> str:
    """Empty, or why the probe counts for nothing."""
    device = FakeDevice(probe_result=CommandResult(0, streams.whole(*lines)))
    try:
        profiles = probe(device, "/x/tilefarm-runner-1")
    except InfraError as e:
        return str(e)
    for profile in profiles:
        assert profile.renderer == printable(profile.renderer)
    return ""


@pytest.mark.parametrize(
    "lie",
    [
        {"adapter": "1\nend 0"},
        {"adapter": "a b"},
        {"adapter": "é"},
        {"adapter": "x" * 81},
        {"features": {"float16,evil": True}},
        {"features": {"a\nb": True}},
        {"features": {f"f{n}": True for n in range(201)}},
        {"limits": {"shared_bytes": -1}},
        {"limits": {"shared bytes": 1}},
        {"extensions": ["x"] * 4097},
        {"timer_bits": 65},
        {"timer_period_ns": float("nan")},
        {"subgroup": {"measured": -1}},
        {"api": "a b"},
    ],
)
def test_a_profile_that_would_change_a_job_file_or_fill_a_page_is_refused(lie: dict[str, object]) -> None:
    """Adapter and features become words of the next job."""
    assert "bad profile" in probed(profile_line(**lie))


def test_words_of_a_driver_are_made_fit_for_people() -> None:
    device = FakeDevice(
        probe_result=CommandResult(
            0,
            streams.whole(
                profile_line(renderer="Adreno\x1b[31m\n750", vendor="x" * 5000, extensions=["a\tb"])
            ),
        )
    )
    (profile,) = probe(device, "/x/tilefarm-runner-1")
    assert profile.renderer == "Adreno [31m 750"
    assert len(profile.vendor) == 1000
    assert profile.extensions == ["a b"]


@quick
@given(st.sampled_from(sorted(PROFILE)), json_values)
def test_any_profile_is_taken_or_refused(field: str, value: object) -> None:
    assert isinstance(probed(profile_line(**{field: value})), str)

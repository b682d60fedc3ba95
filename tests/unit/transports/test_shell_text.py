"""Taking the output of a phone's shell apart, however it was cut into pieces."""

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from workers.transports.adb_shell import Header, MarkerTail, NewlineFilter
from workers.transports.getprop import parse_properties
from workers.transports.lines import LineSplitter

NONCE = "0123456789abcdef"
OUTPUT = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b":", b"0", NONCE.encode(), NONCE[:5].encode(), b"\xff"])
).map(b"".join)


def feed(data: bytes, cuts: list[int], sink: Callable[[bytes], None]) -> None:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(places):
        sink(data[start:end])


CUTS = st.lists(st.integers(0, 80), max_size=12)


@given(OUTPUT, CUTS)
def test_a_terminals_line_ends_are_undone_exactly(output: bytes, cuts: list[int]):
    got = bytearray()
    newline = NewlineFilter(got.extend)
    feed(output.replace(b"\n", b"\r\n"), cuts, newline.feed)
    newline.close()
    assert bytes(got) == output


@given(OUTPUT, st.integers(0, 255), CUTS)
def test_a_marker_ends_any_output(output: bytes, status: int, cuts: list[int]):
    got = bytearray()
    tail = MarkerTail(NONCE, got.extend)
    feed(output + f"{NONCE}:{status}\n".encode(), cuts, tail.feed)
    assert tail.close() == status
    assert bytes(got) == output


@given(OUTPUT, st.integers(1, len(NONCE) + 4), CUTS)
def test_g2_01_a_cut_marker_is_no_marker(output: bytes, kept: int, cuts: list[int]):
    """``NONCE:1`` of ``NONCE:139`` is no exit status."""
    marker = f"{NONCE}:139\n".encode()[:kept]
    got = bytearray()
    tail = MarkerTail(NONCE, got.extend)
    feed(output + marker, cuts, tail.feed)
    assert tail.close() is None
    assert bytes(got) == output + marker


@given(OUTPUT)
def test_output_is_not_held_back_unless_it_may_be_the_marker(output: bytes):
    got = bytearray()
    MarkerTail(NONCE, got.extend).feed(output + b"line\n")
    assert bytes(got) == output + b"line\n"


@given(st.binary(max_size=40), st.booleans(), CUTS)
def test_the_header_tells_pid_and_line_end(output: bytes, crlf: bool, cuts: list[int]):
    got = bytearray()
    header = Header(NONCE, got.extend)
    text = f"{NONCE} 4711\n".encode() + output
    feed(text.replace(b"\n", b"\r\n") if crlf else text, cuts, header.feed)
    header.close()
    assert header.pid == 4711
    assert bytes(got) == output


@given(st.binary(max_size=60), CUTS)
def test_lines_are_whole_and_nothing_is_lost(data: bytes, cuts: list[int]):
    lines: list[bytes] = []
    splitter = LineSplitter(lines.append)
    feed(data, cuts, splitter.feed)
    splitter.close()
    assert b"".join(lines) == data
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines[:-1])
    assert all(lines)


def test_properties_with_line_ends_and_empty_values():
    output = b"[a.b]: [1]\n[empty]: []\n[blank]: [ ]\n[two]: [x\n[y]: z]\n[last]: [a]: [b]]\n"
    assert parse_properties(output) == {"a.b": "1", "two": "x\n[y]: z", "last": "a]: [b]"}


def test_properties_with_crlf():
    assert parse_properties(b"[a]: [1]\r\n[b]: [2]\r\n") == {"a": "1", "b": "2"}


@given(st.binary(max_size=200))
def test_any_bytes_are_tolerated_as_properties(output: bytes):
    assert all(value.strip() for value in parse_properties(output).values())

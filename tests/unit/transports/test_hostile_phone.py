"""Whatever a phone or an adb server sends is a value or an error of ours, in bounded room and time."""

import socket
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import InfraError, TransferFailed, TruncatedOutput
from orchestrator.domain.limits import printable
from tests.unit.domain.strategies import quick
from workers.health import snapshot
from workers.transports import adb_sync, lines
from workers.transports.adb import AdbServer
from workers.transports.adb_listing import parse_listing
from workers.transports.adb_shell import ShellCommand
from workers.transports.adb_sync import Sync
from workers.transports.deadline import Deadline, IdleWatch
from workers.transports.getprop import parse_properties
from workers.transports.lines import LineSplitter, Whole

REGULAR = 0o100644


class Scripted:
    """A link whose other end says just this, and hangs up."""

    def __init__(self, said: bytes) -> None:
        self.said = said
        self.asked = 0

    def recv(self, limit: int, left_s: float, /) -> bytes:
        assert left_s > 0
        self.asked = max(self.asked, limit)
        data, self.said = self.said[:limit], self.said[limit:]
        return data

    def send_all(self, data: bytes, left_s: float) -> None:
        del data, left_s

    def readable(self) -> bool:
        return False


def sync(said: bytes) -> Sync:
    return Sync(Scripted(said), Deadline.after(60, "phone: list"))


def entry(name: bytes, mode: int = REGULAR, size: int = 7, length: int | None = None) -> bytes:
    return b"DENT" + struct.pack("<IIII", mode, size, 0, len(name) if length is None else length) + name


END = b"DONE" + bytes(16)
STAT = b"STAT" + struct.pack("<III", REGULAR, 3, 0)
FILE = STAT + b"DATA" + struct.pack("<I", 3) + b"abc" + b"DONE" + bytes(4)


@given(
    st.dictionaries(
        st.binary(min_size=1, max_size=20).filter(lambda n: not {0, 47} & {*n}), st.integers(0, 9)
    )
)
def test_listed_names_are_what_the_phone_said(files: dict[bytes, int]) -> None:
    said = b"".join(entry(name, size=size) for name, size in files.items()) + entry(b"folder", 0o40755) + END
    expected = {name.decode("utf-8", "surrogateescape"): size for name, size in files.items()}
    assert sync(said).list_files("/x") == expected


@pytest.mark.parametrize("name", [b"../../etc/passwd", b"/abs", b"a/b", b"a\0b"])
def test_a_name_that_is_a_path_is_refused(name: bytes) -> None:
    """What is listed in our folder is removed by its name when room is needed."""
    with pytest.raises(TransferFailed, match="is no name of a file"):
        sync(entry(name) + END).list_files("/x")


def test_a_name_without_end_is_not_waited_for() -> None:
    with pytest.raises(TransferFailed, match="4294967295 bytes"):
        sync(entry(b"", length=0xFFFFFFFF)).list_files("/x")


def test_a_list_without_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb_sync, "_MOST_FILES", 3)
    with pytest.raises(TransferFailed, match="too many files"):
        sync(b"".join(entry(b"%d" % n) for n in range(5)) + END).list_files("/x")


def test_a_file_that_is_longer_than_wanted_is_left() -> None:
    assert sync(FILE).recv("/x", 3) == b"abc"
    with pytest.raises(TransferFailed, match="longer than the 2 bytes"):
        sync(FILE).recv("/x", 2)
    endless = STAT + b"DATA" + struct.pack("<I", 0xFFFFFFFF)
    with pytest.raises(TransferFailed, match="longer than the 1000 bytes"):
        sync(endless).recv("/x", 1000)


CALLS: list[Callable[[Sync], object]] = [
    lambda s: s.list_files("/x"),
    lambda s: s.recv("/x", 1000),
    lambda s: s.stat("/x"),
    lambda s: s.send("/x", b"data", 0),
]
answers = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from([FILE, STAT, END, entry(b"n"), b"DATA", b"FAIL\3\0\0\0bad", b"OKAY" + bytes(4)]),
    ),
    max_size=5,
).map(b"".join)


def problem(call: Callable[[], object]) -> str:
    """Empty, or the words of an error of ours; any other error is the test's."""
    try:
        call()
    except InfraError as e:
        return str(e)
    return ""


@quick
@given(answers, st.sampled_from(CALLS))
def test_any_answer_of_sync_is_a_value_or_an_error_of_ours(
    said: bytes, call: Callable[[Sync], object]
) -> None:
    link = Scripted(said)
    why = problem(lambda: call(Sync(link, Deadline.after(60, "phone: sync"))))
    assert why == "" or why.startswith("phone: sync")
    assert link.asked <= 1 << 20


@quick
@given(answers | st.binary(max_size=300), st.booleans(), st.booleans())
def test_any_answer_of_a_shell_is_a_status_or_an_error_of_ours(said: bytes, v2: bool, greets: bool) -> None:
    command = ShellCommand(["true"], None, Whole("phone: sh").feed)
    *_, nonce, _true = command.service(v2=True).split()
    link = Scripted((f"{nonce} 12\n".encode() if greets else b"") + said)
    watch = IdleWatch(Deadline.after(60, "phone: sh"), None)
    why = problem(lambda: (command.read_v2 if v2 else command.read_v1)(link, watch, "phone: sh"))
    assert why == "" or why.startswith("phone: sh")


def test_a_shell_that_only_talks_is_left() -> None:
    command = ShellCommand(["true"], None, lambda _: None)
    packet = struct.pack("<BI", 1, 1 << 15) + bytes(1 << 15)
    with pytest.raises(TruncatedOutput, match="did not start it"):
        command.read_v2(Scripted(packet * 3), IdleWatch(Deadline.after(60, "p"), None), "phone: sh")


def test_a_line_and_an_output_without_end_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    monkeypatch.setattr(lines, "MAX_OUTPUT_BYTES", 10)
    told: list[bytes] = []
    splitter, whole = LineSplitter(told.append, "phone: run"), Whole("phone: getprop")
    for _ in range(3):
        splitter.feed(b"12345678\n12")
    assert told == [b"12345678\n", b"1212345678\n", b"1212345678\n"]
    whole.feed(b"1234567890")
    with pytest.raises(TruncatedOutput, match="phone: run: 12 bytes without the end of a line"):
        splitter.feed(b"3456789012")
    with pytest.raises(TruncatedOutput, match="phone: getprop: more than 10 bytes"):
        whole.feed(b"1")


@pytest.mark.parametrize("text", [b"[a]: [\n", b"[a]: [x]\n", b"[a", b"\n[", b"]\n[a]: [", b"[\n"])
def test_no_getprop_takes_longer_than_it_is_long(text: bytes) -> None:
    """Each of these took minutes where an entry's end was looked for from each beginning (a MiB of it)."""
    parse_properties(text * ((1 << 20) // len(text)))


names = st.text(st.characters(exclude_characters="]\n\r", exclude_categories=["Cs"]), min_size=1, max_size=8)
values = st.text(st.characters(exclude_characters="]\r", exclude_categories=["Cs"]), max_size=12)


@given(st.dictionaries(names, values, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_properties_are_read_as_they_were_written(properties: dict[str, str], end: str) -> None:
    text = "".join(f"[{name}]: [{value}]{end}" for name, value in properties.items())
    assert parse_properties(text.encode()) == {n: v for n, v in properties.items() if v.strip()}


@given(st.text(max_size=80) | st.lists(st.sampled_from("\t \n*a(:é\x1b\u202e"), max_size=60).map("".join))
def test_any_list_of_adb_gives_rows_that_can_be_shown(text: str) -> None:
    for row in parse_listing(text):
        assert row.serial == printable(row.serial, 200)
        assert row.reason or row.usable


@pytest.mark.parametrize("serial", ["a\x1b[2J", "\u202eabc", "x" * 300, "a\x7fb"])
def test_a_serial_that_nobody_can_type_is_not_served(serial: str) -> None:
    (row,) = parse_listing(f"{serial}\tdevice\n")
    assert (row.state, row.usable) == ("unknown", False)
    assert "serial number" in row.reason


def test_a_command_that_adb_cannot_frame_is_not_sent() -> None:
    """Its length has four hex digits: a longer one would be read as a shorter one and another one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = AdbServer("127.0.0.1", listener.getsockname()[1])
        with pytest.raises(InfraError, match="70013 bytes are too long"):
            server.connect_phone("x" * 70_000)


@pytest.mark.parametrize("serial", ["a:kill", "10.0.0.1:22:x", "0c:98:38:aa:bb:cc", "usb:1-4"])
def test_no_piece_of_a_serial_becomes_a_question_to_the_server(serial: str) -> None:
    """``host-serial:SERIAL:QUESTION`` is split at colons."""
    with pytest.raises(InfraError, match="no HOST:PORT, so adb is not asked reconnect"):
        AdbServer("127.0.0.1", 1).reconnect_phone(serial)
    assert AdbServer("127.0.0.1", 1).over_network(serial) is False


def test_a_row_without_end_is_passed_over() -> None:
    assert parse_listing("a " * 50_000 + "\n" + "b" + " " * 100_000 + "x\nc  device\n") == parse_listing(
        "c\tdevice"
    )


@pytest.mark.parametrize(
    "text", [b"\n" * 65536, b" " * 65536, b"level: " * 9000, b"Temperature{mValue=" * 3400]
)
def test_no_dumpsys_takes_longer_than_it_is_long(text: bytes) -> None:
    assert snapshot(text, text, text) == {}

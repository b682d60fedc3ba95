"""Commands on any device: words, bytes, exit codes and deadlines."""

import itertools

import pytest

from orchestrator.domain.errors import DeadlineExceeded, UsageError
from workers.transports.base import Device

CALL_S = 60.0
SHORT_S = 0.4
ODD_WORDS = [
    "a b",
    "'",
    '"',
    "$(reboot)",
    "`id`",
    ";echo no",
    "two\nlines",
    "cr\rlf\r\nend",
    "tab\t",
    "*",
    "~",
    "-n",
    "\\n",
    "",
    "日本語 ø",
    "&& false",
    "!",
    "%s",
    "#x",
]
ALL_BYTES = bytes(range(256)) + b"\r\n\r\r\n\n\r" + bytes(range(255, -1, -1))


def shell(device: Device, script: str, *words: str, timeout_s: float = CALL_S):
    return device.run(["sh", "-c", script, "sh", *words], timeout_s=timeout_s)


@pytest.mark.parametrize("code", [0, 1, 2, 126, 127, 139, 255])
def test_exit_codes(device: Device, code: int):
    assert shell(device, f"exit {code}").exit_code == code


def test_a_signal_is_128_and_its_number(device: Device):
    assert shell(device, "kill -SEGV $$").exit_code == 139


def test_a_program_that_does_not_exist(device: Device):
    result = device.run(["no-such-program-at-all"], timeout_s=CALL_S)
    assert (result.exit_code, result.stdout) == (127, b"")


@pytest.mark.parametrize("word", ODD_WORDS)
def test_words_arrive_as_they_are(device: Device, word: str):
    assert device.run(["printf", "[%s]", word], timeout_s=CALL_S).stdout == b"[" + word.encode() + b"]"


def test_many_words_arrive_in_order(device: Device):
    result = device.run(["printf", "%s\\0", *ODD_WORDS], timeout_s=CALL_S)
    assert result.stdout.split(b"\0")[:-1] == [word.encode() for word in ODD_WORDS]


@pytest.mark.parametrize("value", ODD_WORDS)
def test_environment_values_arrive_as_they_are(device: Device, value: str):
    result = device.run(["sh", "-c", 'printf %s "$ODD_1"'], timeout_s=CALL_S, env={"ODD_1": value})
    assert result.stdout == value.encode()


@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B", "A;reboot"])
def test_environment_names_that_no_shell_takes_are_refused(device: Device, name: str):
    with pytest.raises(UsageError, match="environment variable"):
        device.run(["true"], timeout_s=CALL_S, env={name: "x"})


def test_output_without_line_end_is_whole(device: Device):
    assert shell(device, "printf 'a\\nb'").stdout == b"a\nb"


def test_no_output(device: Device):
    assert shell(device, ":").stdout == b""


def test_standard_error_stays_out(device: Device):
    assert shell(device, "echo out; echo err >&2").stdout == b"out\n"


def test_standard_input_is_empty(device: Device):
    assert device.run(["cat"], timeout_s=CALL_S).stdout == b""


def test_binary_output_is_not_touched(device: Device, folder: str):
    device.push(ALL_BYTES, f"{folder}/bytes", timeout_s=CALL_S)
    assert device.run(["cat", f"{folder}/bytes"], timeout_s=CALL_S).stdout == ALL_BYTES


def test_a_mebibyte_of_output(device: Device, folder: str):
    data = ALL_BYTES * (2**20 // len(ALL_BYTES) + 1)
    device.push(data, f"{folder}/much", timeout_s=CALL_S)
    assert device.run(["cat", f"{folder}/much"], timeout_s=CALL_S).stdout == data


def test_lines_in_order_and_the_last_without_its_end(device: Device):
    lines: list[bytes] = []
    code = device.stream(
        ["sh", "-c", "seq 1 2000; printf '\\n\\ntail'; exit 3"],
        lines.append,
        timeout_s=CALL_S,
        idle_timeout_s=CALL_S,
    )
    assert code == 3
    assert lines == [b"%d\n" % n for n in range(1, 2001)] + [b"\n", b"\n", b"tail"]


def test_a_line_comes_while_the_command_still_runs(device: Device, folder: str):
    """The command waits for a file that is pushed only when its first line has come."""
    lines: list[bytes] = []

    def on_line(line: bytes) -> None:
        lines.append(line)
        if line == b"ready\n":
            device.push(b"", f"{folder}/go", timeout_s=CALL_S)

    script = 'echo ready; while [ ! -e "$1/go" ]; do sleep 0.05; done; echo done'
    code = device.stream(["sh", "-c", script, "sh", folder], on_line, timeout_s=CALL_S, idle_timeout_s=CALL_S)
    assert (code, lines) == (0, [b"ready\n", b"done\n"])


STALL = "sleep 600"
DRIP = "while :; do printf x; sleep 0.05; done"
ENDLESS = "while :; do echo line; done"


@pytest.mark.parametrize("script", [STALL, DRIP, ENDLESS], ids=["stall", "drip", "endless"])
def test_run_ends_by_its_deadline_and_ends_the_command(device: Device, folder: str, script: str):
    device.push(b"", f"{folder}/pid", timeout_s=CALL_S)
    with pytest.raises(DeadlineExceeded, match="sh: not done after"):
        shell(device, f'echo $$ > "$1"; {script}', f"{folder}/pid", timeout_s=SHORT_S)
    assert_gone(device, f"{folder}/pid")


@pytest.mark.parametrize("script", [STALL, DRIP, ENDLESS], ids=["stall", "drip", "endless"])
def test_stream_ends_by_its_total_deadline(device: Device, folder: str, script: str):
    with pytest.raises(DeadlineExceeded, match="not done after"):
        start(device, folder, script, timeout_s=SHORT_S, idle_timeout_s=CALL_S)
    assert_gone(device, f"{folder}/pid")


def test_stream_ends_when_it_hears_nothing(device: Device, folder: str):
    with pytest.raises(DeadlineExceeded, match="silent"):
        start(device, folder, STALL, timeout_s=CALL_S, idle_timeout_s=SHORT_S)
    assert_gone(device, f"{folder}/pid")


def test_the_children_of_the_command_end_too(device: Device, folder: str):
    script = 'sleep 600 & echo $! > "$1/child"; wait'
    with pytest.raises(DeadlineExceeded):
        start(device, folder, script, timeout_s=SHORT_S, idle_timeout_s=CALL_S)
    assert_gone(device, f"{folder}/child")


def test_a_callback_that_raises_ends_the_command(device: Device, folder: str):
    count = itertools.count()

    def on_line(_line: bytes) -> None:
        if next(count) == 10:
            raise RuntimeError("enough")

    device.push(b"", f"{folder}/pid", timeout_s=CALL_S)
    argv = ["sh", "-c", f'echo $$ > "$1/pid"; {ENDLESS}', "sh", folder]
    with pytest.raises(RuntimeError, match="enough"):
        device.stream(argv, on_line, timeout_s=CALL_S, idle_timeout_s=CALL_S)
    assert_gone(device, f"{folder}/pid")


def test_the_device_works_on_after_a_deadline(device: Device):
    with pytest.raises(DeadlineExceeded):
        shell(device, STALL, timeout_s=SHORT_S)
    assert shell(device, "echo here").stdout == b"here\n"


def test_properties_are_text_without_empty_values(device: Device):
    found = device.properties(timeout_s=CALL_S)
    assert found["ro.build.fingerprint"]
    assert all(found.values())


def start(device: Device, folder: str, script: str, *, timeout_s: float, idle_timeout_s: float) -> None:
    device.push(b"", f"{folder}/pid", timeout_s=CALL_S)
    device.stream(
        ["sh", "-c", f'echo $$ > "$1/pid"; {script}', "sh", folder],
        lambda _line: None,
        timeout_s=timeout_s,
        idle_timeout_s=idle_timeout_s,
    )


def assert_gone(device: Device, pid_file: str) -> None:
    """The process whose id is in the file ends; a zombie that nobody has reaped yet counts as ended."""
    script = """
pid=$(cat "$1"); [ "$pid" ] || exit 3
while read -r line < "/proc/$pid/stat"; do
  case "${line##*) }" in Z*|X*) break ;; esac
  sleep 0.05
done
echo gone
"""
    assert shell(device, script, pid_file).stdout == b"gone\n"

"""What only commands on this machine tell: the words for people beside the output."""

from pathlib import Path

from workers.transports.local import LocalDevice


def test_standard_error_comes_back_by_its_end(tmp_path: Path) -> None:
    device = LocalDevice(tmp_path, "local:llvmpipe")
    script = "echo out; seq 10000 >&2; echo the last word >&2; exit 3"
    result = device.run(["sh", "-c", script], timeout_s=60)
    assert (result.exit_code, result.stdout) == (3, b"out\n")
    assert result.stderr.endswith(b"10000\nthe last word\n")
    assert len(result.stderr) <= 4096


def test_messages_name_the_gpu_that_they_are_about(tmp_path: Path) -> None:
    assert LocalDevice(tmp_path, "local:llvmpipe").serial == "local:llvmpipe"
    assert LocalDevice(tmp_path).serial

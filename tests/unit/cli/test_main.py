"""What the process itself guards against before any command is imported."""

import os
import subprocess

import pytest

from orchestrator.cli.main import check_adb_port
from orchestrator.domain.errors import UsageError
from tests.farm import COMMAND, REPOSITORY, Farm


@pytest.mark.parametrize("port", ["abc", "-1", "5037 ", "٥"])
def test_a_port_that_adbutils_would_stumble_over_is_named(port: str) -> None:
    with pytest.raises(UsageError, match="ANDROID_ADB_SERVER_PORT"):
        check_adb_port({"ANDROID_ADB_SERVER_PORT": port})


def test_a_number_is_left_to_whoever_uses_it() -> None:
    check_adb_port({"ANDROID_ADB_SERVER_PORT": "99999"})
    check_adb_port({})


def test_an_empty_port_is_as_good_as_none() -> None:
    environ = {"ANDROID_ADB_SERVER_PORT": "", "PATH": "/bin"}
    check_adb_port(environ)
    assert environ == {"PATH": "/bin"}


def test_no_traceback_for_a_port_that_is_no_number(farm: Farm) -> None:
    farm.environment["ANDROID_ADB_SERVER_PORT"] = "abc"
    done = farm.run("kernels", expect=2)
    assert "ANDROID_ADB_SERVER_PORT" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [("kernels",), ("kernels", "--json"), ("phone",)])
def test_a_reader_that_left_is_no_failure_of_ours(words: tuple[str, ...], farm: Farm) -> None:
    """``tilefarm kernels | head``: the exit code of SIGPIPE, never that of a wrong kernel."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=REPOSITORY,
            env=farm.env(),
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""


def test_a_folder_that_cannot_be_written_is_named(farm: Farm) -> None:
    done = farm.run("phone", "mid-mali", "--root", "/proc/nope", expect=2)
    assert "/proc/nope" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_setting_that_is_out_of_range_is_named(farm: Farm) -> None:
    farm.environment |= {"TILEFARM_NIGHT_DEADLINE_H": "99", "TILEFARM_BEAT_S": "soon"}
    done = farm.run("nights", expect=2)
    assert "TILEFARM_NIGHT_DEADLINE_H='99': Input should be less than or equal to 20" in done.stderr
    assert "TILEFARM_BEAT_S='soon': " in done.stderr
    assert "Traceback" not in done.stderr

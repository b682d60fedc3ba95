"""What the process itself guards against before any command is imported."""

import pytest

from orchestrator.cli.main import check_adb_port
from orchestrator.domain.errors import UsageError
from tests.farm import Farm


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

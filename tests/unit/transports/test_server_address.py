"""Where the adb server is, from adb's own variables."""

import pytest

from orchestrator.domain.errors import UsageError
from workers.transports.adb import AdbServer
from workers.transports.adb_server import server_address


@pytest.mark.parametrize(
    ("environ", "server"),
    [
        ({}, AdbServer("127.0.0.1", 5037)),
        ({"ANDROID_ADB_SERVER_PORT": "15037"}, AdbServer("127.0.0.1", 15037)),
        (
            {"ANDROID_ADB_SERVER_PORT": "15037", "ANDROID_ADB_SERVER_ADDRESS": "farm"},
            AdbServer("farm", 15037),
        ),
        ({"ADB_SERVER_SOCKET": "tcp:6000"}, AdbServer("127.0.0.1", 6000)),
        ({"ADB_SERVER_SOCKET": "tcp:farm:6000", "ANDROID_ADB_SERVER_PORT": "1"}, AdbServer("farm", 6000)),
        ({"ADB_SERVER_SOCKET": "", "ANDROID_ADB_SERVER_PORT": ""}, AdbServer("127.0.0.1", 5037)),
    ],
)
def test_addresses(environ: dict[str, str], server: AdbServer):
    assert server_address(environ) == server


@pytest.mark.parametrize(
    "environ",
    [
        {"ANDROID_ADB_SERVER_PORT": "x"},
        {"ANDROID_ADB_SERVER_PORT": "0"},
        {"ANDROID_ADB_SERVER_PORT": "65536"},
        {"ADB_SERVER_SOCKET": "localfilesystem:/tmp/adb"},
        {"ADB_SERVER_SOCKET": "tcp:farm:x"},
    ],
)
def test_values_that_cannot_be_used_are_named(environ: dict[str, str]):
    (name,) = environ
    with pytest.raises(UsageError, match=name):
        server_address(environ)

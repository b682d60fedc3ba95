"""Doctor names what is wrong as a row, whatever it is; nobody prints the broker's password."""

import json

import pytest

from orchestrator.domain.errors import BrokerUnavailable
from tests.unit.cli.conftest import Invoke

SECRET = "redis://farm:hunter2@127.0.0.1:1/0"


def test_every_fault_is_a_row(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEFARM_WORKDIR", "/proc/nope")
    monkeypatch.setenv("TILEFARM_OUT", "/proc/nope/out")
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "99999")
    done = invoke("doctor", "--json")
    assert done.exit_code == 3, done.exception
    rows = {c["what"]: c for c in json.loads(done.stdout)["checks"]}
    assert "ANDROID_ADB_SERVER_PORT" in rows["adb server"]["found"]
    assert "TILEFARM_WORKDIR" in rows["local GPU"]["fix"]
    assert "TILEFARM_BLOBS" in rows["blob store"]["fix"]
    assert {rows[w]["state"] for w in ("adb server", "local GPU", "blob store")} == {"fails"}


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--json"), ("worker", "--device", "local")])
def test_the_password_is_not_printed(
    words: tuple[str, ...], invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEFARM_BROKER", SECRET)
    monkeypatch.setenv("TILEFARM_WORKDIR", "/proc/nope")  # no GPU is probed
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "99999")
    done = invoke(*words)
    printed = f"{done.output} {done.exception}"
    assert "127.0.0.1:1/0" in printed
    assert "hunter2" not in printed
    if words[0] == "worker":
        assert isinstance(done.exception, BrokerUnavailable)
    assert ".. " not in printed

"""Virtual phones under the real adb command, as a person uses it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.phones import RunningPhone, StartPhone, own_adb_server
from workers.virtual.profile import shipped_profiles

CALL_S = 60.0
FORCE_TERMINAL = {"snapdragon-8-gen-3": ("-t", "-t")}
"""Standard input of a test is no terminal, so adb has to be told; it refuses that for old phones, which
always give one."""


def adb(phone: RunningPhone, *words: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("adb")
    assert program is not None
    return subprocess.run(
        [program, "-P", str(phone.server.port), "-s", phone.serial, *words],
        input=given,
        capture_output=True,
        timeout=CALL_S,
        check=False,
    )


@pytest.mark.parametrize("profile", sorted(shipped_profiles()))
def test_every_profile_answers_shell_and_properties(start_phone: StartPhone, profile: str):
    phone = start_phone(profile)
    said = adb(
        phone, "shell", "getprop ro.tilefarm.virtual; echo $TILEFARM_IMPOSE; dumpsys battery | head -1"
    )
    lines = said.stdout.decode().splitlines()
    assert lines == ["1", phone.phone.profile.gpu.impose(), "Current Battery Service state:"]


def test_exit_code_and_separate_streams(start_phone: StartPhone):
    done = adb(start_phone(), "shell", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_an_old_phone_has_neither(start_phone: StartPhone):
    done = adb(start_phone("old-android"), "shell", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\r\nerr\r\n", b"")


@pytest.mark.parametrize("profile", ["snapdragon-8-gen-3", "old-android"])
def test_standard_input_and_raw_output(start_phone: StartPhone, profile: str):
    done = adb(start_phone(profile), "exec-in", "cat > /sdcard/in", given=b"a\nb\r\n\0" * 10_000)
    assert done.returncode == 0
    phone = start_phone()
    assert adb(phone, "shell", "cat", given=b"through\n").stdout == b"through\n"
    assert adb(phone, "exec-out", "printf 'a\\nb'").stdout == b"a\nb"


@pytest.mark.parametrize("profile", ["snapdragon-8-gen-3", "old-android"])
def test_folders_go_there_and_back(start_phone: StartPhone, tmp_path: Path, profile: str):
    phone = start_phone(profile)
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "big").write_bytes(bytes(range(256)) * 4000)
    (source / "empty").write_bytes(b"")
    pushed = adb(phone, "push", str(source), "/data/local/tmp/there")
    assert pushed.returncode == 0, pushed.stderr
    pulled = adb(phone, "pull", "/data/local/tmp/there", str(tmp_path / "back"))
    assert pulled.returncode == 0, pulled.stderr
    assert (tmp_path / "back/sub/big").read_bytes() == bytes(range(256)) * 4000
    assert (tmp_path / "back/empty").read_bytes() == b""


@pytest.mark.parametrize("profile", ["snapdragon-8-gen-3", "old-android"])
def test_a_person_gets_a_shell_on_a_terminal(start_phone: StartPhone, profile: str):
    phone = start_phone(profile)
    typed = b"test -t 0 && echo on a $((6 * 7)) terminal\ngetprop ro.tilefarm.profile\nexit 3\n"
    done = adb(phone, "shell", *FORCE_TERMINAL.get(profile, ()), given=typed)
    assert b"on a 42 terminal\r\n" in done.stdout
    assert profile.encode() + b"\r\n" in done.stdout
    assert done.returncode == (0 if profile == "old-android" else 3)


def test_a_script_on_standard_input(start_phone: StartPhone):
    done = adb(start_phone(), "shell", given=b"echo one\necho two >&2\nexit 4\n")
    assert (done.returncode, done.stdout, done.stderr) == (4, b"one\n", b"two\n")


def test_settings_are_kept_and_calls_are_noted(start_phone: StartPhone):
    phone = start_phone()
    script = "settings put global x 1; settings get global x; settings get global none; svc power stayon true"
    assert adb(phone, "shell", script).stdout == b"1\nnull\n"
    assert "svc power stayon true" in (phone.phone.root.state / "calls.log").read_text()


def test_a_key_is_asked_for_once_a_host(start_phone: StartPhone, tmp_path: Path):
    """The signature over the token fits the stored key when the same host comes again."""
    phone = start_phone("tensor-g2")
    keys = phone.phone.root.state / "adb_keys"
    assert len(keys.read_bytes().splitlines()) == 1
    phone.connect()
    assert len(keys.read_bytes().splitlines()) == 1
    with own_adb_server(tmp_path / "other-host") as other:
        other.connect_phone(phone.serial)
        assert len(keys.read_bytes().splitlines()) == 2


def test_a_refused_phone_keeps_no_key(start_phone: StartPhone):
    phone = start_phone("tensor-g2", "unauthorized", connect=False)
    done = adb(phone, "connect", phone.serial)
    assert b"failed to authenticate" in done.stdout
    assert not (phone.phone.root.state / "adb_keys").exists()

"""Paths of a virtual phone."""

from pathlib import Path

import pytest

from orchestrator.domain.errors import UsageError
from workers.virtual.profile import load_profile
from workers.virtual.root import PhoneRoot


@pytest.fixture
def root(tmp_path: Path) -> PhoneRoot:
    return PhoneRoot(tmp_path / "phone")


@pytest.mark.parametrize(
    ("command", "replaced"),
    [
        ("ls /data/local/tmp", "ls {0}/data/local/tmp"),
        ("ls '/data/local/tmp/a b'", "ls '{0}/data/local/tmp/a b'"),
        ("X=/sdcard/x;cat </sdcard/y", "X={0}/sdcard/x;cat <{0}/sdcard/y"),
        ("cat /proc/sys/kernel/random/boot_id", "cat {0}/proc/sys/kernel/random/boot_id"),
        ("cat /proc/cpuinfo /system/data/local/tmp", "cat /proc/cpuinfo /system/data/local/tmp"),
        ("ls /sdcards /data/local/tmpfile", "ls /sdcards /data/local/tmpfile"),
    ],
)
def test_paths_in_commands(root: PhoneRoot, command: str, replaced: str):
    made = root.host_command(command)
    assert made == replaced.format(root.folder)
    assert root.host_command(made) == made


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/data/local/tmp/x", "data/local/tmp/x"),
        ("/../../etc/passwd", "etc/passwd"),
        ("/data/../..//x", "x"),
        ("relative", "relative"),
    ],
)
def test_paths_stay_in_the_root(root: PhoneRoot, path: str, inside: str):
    assert root.host_path(path) == root.folder / inside


def test_a_path_that_the_phone_itself_told_is_known(root: PhoneRoot):
    told = f"{root.folder}/data/local/tmp/x"
    assert root.host_path(told) == Path(told)


@pytest.mark.parametrize("name", ["with space", "quote'", "$HOME", "a;b"])
def test_a_root_that_could_not_stand_in_a_command_is_refused(tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="--root"):
        PhoneRoot(tmp_path / name)


def test_commands_see_the_phones_driver_and_none_of_the_hosts_settings(
    root: PhoneRoot, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TILEFARM_BROKER", "redis://farm")
    monkeypatch.setenv("TILEFARM_VALIDATE", "1")
    monkeypatch.setenv("VK_ADD_DRIVER_FILES", "/some/icd.json")
    made = root.environment(load_profile("old-android"))
    assert "TILEFARM_BROKER" not in made
    assert made["TILEFARM_VALIDATE"] == "1", "the runner's own check holds on phones, too"
    assert made["TILEFARM_IMPOSE"] == load_profile("old-android").gpu.impose()
    assert not Path(made["VK_DRIVER_FILES"]).exists()
    assert made["VK_ADD_DRIVER_FILES"] == ""

"""Files on any device: odd names, digests, modes, and what stays behind after a failure."""

import pytest

from orchestrator.domain.errors import TransferFailed, UsageError
from workers.transports.base import Device

CALL_S = 60.0
ODD_NAMES = [
    "plain",
    "with space",
    "quote'single",
    'quote"double',
    "$(reboot)",
    "`id`",
    "; rm -rf x",
    "new\nline",
    "日本語 ø",
    "back\\slash",
    "-rf",
    "*",
    "a,b",
    "#x",
    "~",
]


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 1_000_003])
def test_what_is_pushed_is_pulled(device: Device, folder: str, size: int):
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    device.push(data, f"{folder}/file", timeout_s=CALL_S)
    assert device.pull(f"{folder}/file", timeout_s=CALL_S) == data
    assert device.list_dir(folder, timeout_s=CALL_S) == {"file": size}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names(device: Device, folder: str, name: str):
    path = f"{folder}/{name}/{name}"
    device.push(b"data", path, timeout_s=CALL_S)
    assert device.list_dir(f"{folder}/{name}", timeout_s=CALL_S) == {name: 4}
    assert device.pull(path, timeout_s=CALL_S) == b"data"
    device.remove(path, timeout_s=CALL_S)
    assert device.list_dir(f"{folder}/{name}", timeout_s=CALL_S) == {}


def test_a_push_replaces_the_file(device: Device, folder: str):
    device.push(b"first, longer", f"{folder}/file", timeout_s=CALL_S)
    device.push(b"second", f"{folder}/file", timeout_s=CALL_S)
    assert device.pull(f"{folder}/file", timeout_s=CALL_S) == b"second"
    assert device.list_dir(folder, timeout_s=CALL_S) == {"file": 6}


def test_a_pushed_program_runs(device: Device, folder: str):
    device.push(b"#!/bin/sh\necho it runs\n", f"{folder}/my program", timeout_s=CALL_S, mode=0o755)
    assert device.run([f"{folder}/my program"], timeout_s=CALL_S).stdout == b"it runs\n"


def test_without_the_mode_it_does_not_run(device: Device, folder: str):
    device.push(b"#!/bin/sh\necho it runs\n", f"{folder}/file", timeout_s=CALL_S)
    assert device.run([f"{folder}/file"], timeout_s=CALL_S).exit_code == 126


def test_a_folder_in_the_way_of_a_push(device: Device, folder: str):
    device.push(b"x", f"{folder}/taken/file", timeout_s=CALL_S)
    with pytest.raises(TransferFailed, match="folder is in the way"):
        device.push(b"y", f"{folder}/taken", timeout_s=CALL_S)
    assert device.list_dir(folder, timeout_s=CALL_S) == {}
    assert device.list_dir(f"{folder}/taken", timeout_s=CALL_S) == {"file": 1}


def test_a_file_where_a_folder_is_needed(device: Device, folder: str):
    device.push(b"x", f"{folder}/file", timeout_s=CALL_S)
    with pytest.raises(TransferFailed, match=r"Not a directory|File exists"):
        device.push(b"y", f"{folder}/file/below", timeout_s=CALL_S)


@pytest.mark.parametrize("name", ["missing", "missing/deeper"])
def test_pulling_a_missing_file(device: Device, folder: str, name: str):
    with pytest.raises(TransferFailed, match=r"(?i)no such file"):
        device.pull(f"{folder}/{name}", timeout_s=CALL_S)


def test_pulling_a_folder(device: Device, folder: str):
    device.push(b"x", f"{folder}/file", timeout_s=CALL_S)
    with pytest.raises(TransferFailed, match=r"(?i)is a (folder|directory)"):
        device.pull(folder, timeout_s=CALL_S)


def test_only_plain_files_are_listed(device: Device, folder: str):
    device.push(b"12345", f"{folder}/file", timeout_s=CALL_S)
    device.push(b"x", f"{folder}/sub/other", timeout_s=CALL_S)
    device.run(["ln", "-s", f"{folder}/file", f"{folder}/link"], timeout_s=CALL_S)
    assert device.list_dir(folder, timeout_s=CALL_S) == {"file": 5}


def test_a_missing_folder_is_empty(device: Device, folder: str):
    assert device.list_dir(f"{folder}/none", timeout_s=CALL_S) == {}


def test_a_folder_is_removed_with_everything_in_it(device: Device, folder: str):
    device.push(b"x", f"{folder}/a/b/c", timeout_s=CALL_S)
    device.remove(f"{folder}/a", timeout_s=CALL_S)
    assert device.list_dir(f"{folder}/a/b", timeout_s=CALL_S) == {}
    device.remove(f"{folder}/a", timeout_s=CALL_S)


def test_a_link_is_removed_and_not_what_it_points_to(device: Device, folder: str):
    device.push(b"x", f"{folder}/kept/file", timeout_s=CALL_S)
    device.run(["ln", "-s", f"{folder}/kept", f"{folder}/link"], timeout_s=CALL_S)
    device.remove(f"{folder}/link", timeout_s=CALL_S)
    assert device.list_dir(f"{folder}/kept", timeout_s=CALL_S) == {"file": 1}


@pytest.mark.parametrize("path", ["{0}", "{0}/", "{0}/..", "{0}/../other", "{0}-not/x", "/", "/x", "x", ""])
def test_nothing_outside_the_workdir_is_removed(device: Device, path: str):
    with pytest.raises(UsageError):
        device.remove(path.format(device.workdir), timeout_s=CALL_S)


@pytest.mark.parametrize("path", ["relative", "", "/nul\0byte"])
def test_paths_that_are_no_absolute_paths_are_refused(device: Device, path: str):
    with pytest.raises(UsageError, match="absolute"):
        device.push(b"", path, timeout_s=CALL_S)
    with pytest.raises(UsageError, match="absolute"):
        device.pull(path, timeout_s=CALL_S)
    with pytest.raises(UsageError, match="absolute"):
        device.list_dir(path, timeout_s=CALL_S)

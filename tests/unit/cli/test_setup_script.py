"""scripts/setup in a checkout that was moved, with a cmake that only takes notes."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.farm import REPOSITORY

CMAKE = """#!/bin/sh
echo "$*" >> "$NOTES"
case "$1" in --preset) mkdir -p "build/$2" && : > "build/$2/build.ninja" ;; esac
"""


def checkout(tmp_path: Path, made_in: Path | None) -> Path:
    """A checkout with its .venv, whose Linux build was made in the given folder; None: in this one."""
    home = tmp_path / "checkout"
    (home / "scripts").mkdir(parents=True)
    shutil.copy(REPOSITORY / "scripts" / "setup", home / "scripts")
    build = home / "workers" / "runner" / "build" / "linux"
    build.mkdir(parents=True)
    (build / "build.ninja").touch()
    (build / "old").touch()
    cache = f"CMAKE_HOME_DIRECTORY:INTERNAL={made_in or home / 'workers' / 'runner'}\n"
    (build / "CMakeCache.txt").write_text(f"# a cache\n{cache}")
    pins = {"pyproject.toml": b"[project]\n", "constraints.txt": b"numpy==2.4.6\n"}
    for name, text in pins.items():
        (home / name).write_bytes(text)
    (home / ".venv").mkdir()
    digest = hashlib.sha256(b"".join(pins.values())).hexdigest()
    (home / ".venv" / ".installed").write_text(f"{digest}  -\n")  # as sha256sum prints it
    return home


def set_up(home: Path) -> list[str]:
    """How cmake was called by ``setup runner``."""
    tools = home / "tools"
    tools.mkdir()
    (tools / "cmake").write_text(CMAKE)
    (tools / "cmake").chmod(0o755)
    notes = home / "notes"
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NOTES": str(notes)}
    subprocess.run([home / "scripts" / "setup", "runner"], env=environment, check=True, timeout=60)
    return notes.read_text().splitlines()


def test_a_build_of_another_folder_is_made_anew(tmp_path: Path) -> None:
    home = checkout(tmp_path, made_in=tmp_path / "before" / "workers" / "runner")
    assert set_up(home) == ["--preset linux", "--build build/linux"]
    assert not (home / "workers" / "runner" / "build" / "linux" / "old").exists()


def test_a_build_of_this_folder_is_kept(tmp_path: Path) -> None:
    home = checkout(tmp_path, made_in=None)
    assert set_up(home) == ["--build build/linux"]
    assert (home / "workers" / "runner" / "build" / "linux" / "old").exists()

"""Documented commands run: every ``sh`` block of README and docs, and every make target that they name.

Blocks without a language are not run: output, diagrams, `make run` and `make test` themselves, and a minute
of fuzzing.
"""

import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from orchestrator.cli.app import app
from tests.farm import REPOSITORY, Farm
from tests.phones import own_adb_server

PAGES = sorted(
    [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").glob("*.md")]
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = {command.callback.__name__ for command in app.registered_commands if command.callback}


def blocks(page: Path, language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(page.read_text()) if found == language]


def scripts() -> list[tuple[str, str]]:
    """(page, script) of every block that is run as it stands."""
    return [
        (f"{page.name}-{number}", text)
        for page in PAGES
        if page.name != "add-a-kernel.md"
        for number, text in enumerate(blocks(page, "sh"), start=1)
    ]


@pytest.fixture
def adb_port(tmp_path: Path) -> Generator[int]:
    with own_adb_server(tmp_path / "adb") as server:
        yield server.port


@pytest.mark.parametrize(("name", "script"), scripts(), ids=lambda text: text if "\n" not in text else "")
def test_block_runs(name: str, script: str, farm: Farm, adb_port: int) -> None:
    run_script(script, farm, REPOSITORY, {"ANDROID_ADB_SERVER_PORT": str(adb_port)})


def run_script(script: str, farm: Farm, folder: Path, more: dict[str, str]) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=farm.env() | {"PATH": path} | more,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_example_kernel_runs(farm: Farm) -> None:
    page = REPOSITORY / "docs" / "add-a-kernel.md"
    kernel = farm.folder / "my-kernels" / "brighten"
    kernel.mkdir(parents=True)
    (kernel / "brighten.comp.j2").write_text(blocks(page, "glsl")[0])
    (kernel / "kernel.py").write_text(blocks(page, "python")[0])
    (farm.folder / "my-matrix.yaml").write_text(blocks(page, "yaml")[0])
    printed = run_script(blocks(page, "sh")[0], farm, farm.folder, {})
    assert "24 of 24 measured trials passed" in printed


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_named_commands_and_targets_exist(page: Path) -> None:
    text = page.read_text()
    targets = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE))
    known = set(re.findall(r"^([a-z][a-z-]*):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert targets <= known
    named = set(re.findall(r"(?:^|`|\$ |&& )tilefarm ([a-z]+)", text, re.MULTILINE))
    assert named <= COMMANDS


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_every_command_has_help_with_an_example() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        help_text = command.callback.__doc__ or ""
        assert "Example: " in help_text, command.callback.__name__
        assert f"tilefarm {command.callback.__name__}" in help_text

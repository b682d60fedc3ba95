"""Documented commands run: every ``sh`` block of README and docs, and every make target that they name.

Blocks without a language are not run: output, diagrams, `make run` and `make test` themselves, and a minute
of fuzzing. The runner's own tests are run by `make ctest` (scripts/ctest).
"""

import re
from collections.abc import Generator
from pathlib import Path

import pytest

from orchestrator.cli.app import app
from tests.docs.pages import PAGES, blocks, run_script
from tests.farm import REPOSITORY, Farm, small_probes
from tests.phones import own_adb_server

COMMANDS = {command.callback.__name__ for command in app.registered_commands if command.callback}
GROUPS = {group.name: group.typer_instance for group in app.registered_groups if group.name}


def words_of(group: str) -> set[str]:
    typer = GROUPS[group]
    commands = typer.registered_commands if typer is not None else []
    return {command.callback.__name__ for command in commands if command.callback}


def scripts() -> list[tuple[str, str]]:
    """(page, script) of every block that is run as it stands; add-a-kernel.md has a test of its own."""
    return [
        (f"{page.name}-{number}", text)
        for page in PAGES
        if page.name != "add-a-kernel.md"
        for number, text in enumerate(blocks(page, "sh"), start=1)
        if "ctest --preset" not in text
    ]


@pytest.fixture
def adb_port(tmp_path: Path) -> Generator[int]:
    with own_adb_server(tmp_path / "adb") as server:
        yield server.port


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The repository as ``tilefarm`` sees it, with a matrix that is quick on software drivers."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "kernels").symlink_to(REPOSITORY / "kernels")
    small_probes(folder)
    return folder


@pytest.mark.parametrize(("name", "script"), scripts(), ids=lambda text: text if "\n" not in text else "")
def test_block_runs(name: str, script: str, farm: Farm, adb_port: int, checkout: Path) -> None:
    folder = checkout if "tilefarm " in script else REPOSITORY
    run_script(script, farm, folder, {"ANDROID_ADB_SERVER_PORT": str(adb_port)})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_named_commands_and_targets_exist(page: Path) -> None:
    text = page.read_text()
    targets = set(re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE))
    known = set(re.findall(r"^([a-z][a-z-]*):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert targets <= known
    named = set(re.findall(r"(?:^|`|\$ |&& )tilefarm ([a-z]+)", text, re.MULTILINE))
    assert named <= COMMANDS | GROUPS.keys()
    for group, words in re.findall(r"(?:^|`|\$ |&& )tilefarm ([a-z]+) ([a-z]+)", text, re.MULTILINE):
        assert group not in GROUPS or words in words_of(group), f"tilefarm {group} {words}"


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


@pytest.mark.parametrize("group", GROUPS)
def test_every_word_of_a_group_has_help_with_an_example(group: str) -> None:
    typer = GROUPS[group]
    assert typer is not None
    for command in typer.registered_commands:
        assert command.callback is not None
        assert f"Example: tilefarm {group} {command.callback.__name__}" in (command.callback.__doc__ or "")

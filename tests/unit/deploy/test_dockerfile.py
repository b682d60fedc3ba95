"""The Dockerfile: no complaint of hadolint, and what it copies and starts is there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from orchestrator.cli.app import app
from tests.farm import REPOSITORY

DOCKERFILE = REPOSITORY / "Dockerfile"
TEXT = re.sub(r"\\\n", " ", DOCKERFILE.read_text())
COMMANDS = {c.callback.__name__ for c in app.registered_commands if c.callback}


def of(instruction: str) -> list[str]:
    """What follows each of these instructions, in order."""
    return re.findall(rf"^{instruction} (.*)$", TEXT, re.MULTILINE)


def hadolint(file: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "--no-color", file],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_hadolint_has_no_complaint_and_sees_a_fault(tmp_path: Path) -> None:
    done = hadolint(DOCKERFILE)
    assert done.returncode == 0, done.stdout
    broken = tmp_path / "Dockerfile"
    broken.write_text(DOCKERFILE.read_text().replace("USER 10001:10001", "USER root").replace(":12-slim", ""))
    assert {"DL3002", "DL3006"} <= set(re.findall(r"DL\d+", hadolint(broken).stdout))


def test_it_runs_as_nobody_in_particular_under_an_init() -> None:
    assert of("USER") == ["10001:10001"]
    assert of("ENTRYPOINT") == ['["/usr/bin/tini", "--"]']
    assert "tini" in of("RUN")[-1]


def test_sources_exist_and_reach_the_build() -> None:
    allowed = [
        line[1:] for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.startswith("!")
    ]
    copied = [words.split()[:-1] for words in of("COPY") if not words.startswith("--from")]
    sources = [source for words in copied for source in words]
    assert {"kernels", "matrix.yaml", "constraints.txt"} <= set(sources)
    for source in sources:
        assert (REPOSITORY / source).exists(), source
        assert source.split("/")[0] in allowed, f"{source}: .dockerignore leaves it out"


def test_its_commands_are_ours() -> None:
    for line in (of("CMD")[-1], of("HEALTHCHECK")[-1].partition("CMD ")[2]):
        name, command = (word.strip(",[]") for word in shlex.split(line)[:2])
        assert name == "tilefarm"
        assert command in COMMANDS | {"--help"}


def test_what_is_installed_is_pinned_and_no_secret_is_left_in_a_layer() -> None:
    installs = [part for run in of("RUN") for part in run.split("&&") if "pip install" in part]
    assert installs
    assert all("-c constraints.txt" in part for part in installs)
    assert not of("ADD")
    assert not re.search(r"(?i)(password|token|secret)\s*=", TEXT)


def test_the_image_has_no_adb() -> None:
    """On the host's network a server of its own would take the port of the host's, and have no phones."""
    assert not [run for run in of("RUN") if re.search(r"\badb\b", run)]

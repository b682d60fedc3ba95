"""The documentation's pages, their fenced blocks, and their scripts run as a person would."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.farm import REPOSITORY, Farm

PAGES = sorted(
    [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").glob("*.md")]
)
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """Contents of the page's blocks of a language, in order."""
    return blocks_of(page.read_text(), language)


def blocks_of(text: str, language: str) -> list[str]:
    """The same of a part of a page."""
    return [content for found, content in _BLOCK.findall(text) if found == language]


def run_script(script: str, farm: Farm, folder: Path, more: Mapping[str, str] | None = None) -> str:
    """What a script prints; it has to succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=farm.env() | {"PATH": path} | dict(more or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout

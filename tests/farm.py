"""The ``tilefarm`` command in a folder of its own, for tests of the whole path."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.domain.results import RunResults
from orchestrator.execution.run_folder import load_results

REPOSITORY = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "orchestrator.cli.main"]
WAIT_S = 600.0
ONE_CASE = """
version: 1
suites:
  smoke:
    repeats: 1
    blocks:
      - kernel: scale
        workloads: [{n: 33}]
        axes: {precision: fp32}
"""
"""A matrix, quickly compiled."""


@dataclass(slots=True)
class Farm:
    """Runs commands with their own output, blobs and device folder; nothing of the user's is touched."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def env(self) -> dict[str, str]:
        """Nothing of the caller's farm; Vulkan runs under validation unless the test says otherwise."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("TILEFARM_")}
        own = {
            "TILEFARM_OUT": str(self.out),
            "TILEFARM_WORKDIR": str(self.folder / "work"),
            "TILEFARM_VALIDATE": "1",
        }
        return clean | own | self.environment

    def start(self, *words: str, log: Path | None = None) -> "subprocess.Popen[bytes]":
        """Start a command in the background; the caller ends it by its id."""
        with (log or self.folder / "background.log").open("ab") as output:
            return subprocess.Popen(
                [*COMMAND, *words],
                cwd=REPOSITORY,
                env=self.env(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def run(self, *words: str, expect: int = 0, wait_s: float = WAIT_S) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end and check its exit code."""
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=REPOSITORY,
            env=self.env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=wait_s,
            check=False,
        )
        assert done.returncode == expect, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *words: str, expect: int = 0) -> dict[str, Any]:
        """A command's ``--json`` document."""
        document: dict[str, Any] = json.loads(self.run(*words, "--json", expect=expect).stdout)
        return document

    def latest(self) -> RunResults:
        return load_results(self.out / "latest")


def small_probes(folder: Path) -> Path:
    """A matrix.yaml there: the shipped one, whose probes of a device's speed take minutes on three software
    drivers; with less work they give the same verdicts."""
    text = (REPOSITORY / "matrix.yaml").read_text("utf-8")
    head, probes = re.split(r"^(?=probes:)", text, flags=re.MULTILINE)
    for shipped, small in ((r"bytes: \[.*?\]", "bytes: [16384, 262144]"), (r"groups: \d+", "groups: 16")):
        probes, count = re.subn(shipped, small, probes)
        assert count == 1, f"matrix.yaml: {count} times {shipped}"
    path = folder / "matrix.yaml"
    path.write_text(head + probes, "utf-8")
    return path


def wait_for(true: Callable[[], bool], what: str, seconds: float = WAIT_S) -> None:
    """Poll until something holds; fails with ``what`` at the deadline."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.05)  # another process changes it; the deadline bounds the wait

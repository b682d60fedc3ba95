"""Virtual phones with a simulated runner, and what they have noted of its executions."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.phones import RunningPhone
from workers.virtual.profile import PhoneProfile, load_profile

_PROGRAM = Path(__file__).with_name("simulated_runner.py")
_PROFILES = ("snapdragon-8-gen-3", "old-android", "tensor-g2", "mid-mali")


def install_runner(folder: Path) -> Path:
    """A folder for ``TILEFARM_RUNNER_DIR`` whose build for this machine is the simulated runner."""
    program = folder / "linux" / "tilefarm-runner"
    program.parent.mkdir(parents=True)
    # Isolated and without site: an execution starts in a fifth of the time.
    program.write_text(f"#!{sys.executable} -IS\n{_PROGRAM.read_text('utf-8')}", "utf-8")
    return folder


def profile_of(number: int, case_ms: int) -> PhoneProfile:
    """Two phones of each kind, with a serial and a GPU of their own, cool and charged."""
    base = load_profile(_PROFILES[number // 2 % len(_PROFILES)])
    settings = {"chaos/case_ms": str(case_ms), "chaos/renderer": f"Simulated GPU {number}"}
    return base.model_copy(update={"serial": f"TFCHAOS{number}", "settings": base.settings | settings})


@dataclass(frozen=True, slots=True)
class Execution:
    """One start of the runner on a phone."""

    number: int
    """Monotonic time at which it began; ``slope_ns`` of each of its results."""
    run_id: str
    cases: tuple[str, ...]
    ended: bool
    """False: it was killed, or its host went away."""


@dataclass(frozen=True, slots=True)
class Notes:
    executions: dict[int, Execution] = field(default_factory=dict[int, Execution])
    overlaps: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Executions that ran at the same time: (later, earlier)."""


def notes(phone: RunningPhone) -> Notes:
    return notes_in(phone.phone.root.state)


def notes_in(folder: Path) -> Notes:
    """What a phone has noted; a record that a kill cut off is left out."""
    file = folder / "executions.jsonl"
    lines = file.read_bytes().splitlines(keepends=True) if file.is_file() else []
    records = [json.loads(line) for line in lines if line.endswith(b"\n")]
    ended = {r["id"] for r in records if r["event"] == "end"}
    begun = [r for r in records if r["event"] == "begin"]
    return Notes(
        {r["id"]: Execution(r["id"], r["run"], tuple(r["cases"]), r["id"] in ended) for r in begun},
        [(r["id"], r["other"]) for r in records if r["event"] == "overlap"],
    )

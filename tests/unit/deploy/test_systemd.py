"""The units in deploy/systemd: systemd accepts them, they are hardened, and what they start is there."""

import re
import subprocess
from pathlib import Path

import pytest

from orchestrator.cli.app import app
from tests.farm import REPOSITORY

UNITS = sorted((REPOSITORY / "deploy" / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
COMMANDS = {c.callback.__name__ for c in app.registered_commands if c.callback}
HOME = "/opt/tilefarm"


def analyze(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, timeout=120, check=False
    )


def placed(unit: Path, folder: Path) -> Path:
    """As installed on a host; only the checkout lies elsewhere here."""
    here = folder / unit.name
    tilefarm = folder / "tilefarm"
    tilefarm.write_text("#!/bin/sh\n")
    tilefarm.chmod(0o755)
    here.write_text(unit.read_text().replace(f"{HOME}/.venv/bin/tilefarm", str(tilefarm)))
    return here


def test_systemd_accepts_every_unit_and_sees_a_fault(tmp_path: Path) -> None:
    units = [placed(unit, tmp_path) for unit in UNITS]
    done = analyze("verify", "--man=no", "--recursive-errors=no", *units)
    assert (done.returncode, done.stderr) == (0, "")
    broken = units[0]
    broken.write_text(broken.read_text().replace("NoNewPrivileges", "NoNewPrivilege"))
    assert "NoNewPrivilege" in analyze("verify", "--man=no", "--recursive-errors=no", broken).stderr


@pytest.mark.parametrize("unit", SERVICES, ids=lambda u: u.name)
def test_every_service_is_hardened(unit: Path) -> None:
    """By systemd's own measure: 0 is closed, 10 is open; a bare unit has 9.6."""
    done = analyze("security", "--offline=yes", "--threshold=30", "--no-pager", unit)
    assert done.returncode == 0, done.stdout[-2000:]
    text = unit.read_text()
    assert "User=tilefarm\n" in text
    assert "NoNewPrivileges=yes\n" in text


@pytest.mark.parametrize("unit", SERVICES, ids=lambda u: u.name)
def test_services_start_our_commands_and_get_the_password_as_a_file(unit: Path) -> None:
    text = unit.read_text()
    (start,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, *words = start.split()
    if unit.stem == "tilefarm-adb":
        assert program == "/usr/bin/adb"
        return
    assert program == f"{HOME}/.venv/bin/tilefarm"
    assert words[0] in COMMANDS
    assert "LoadCredential=broker_password:" in text
    assert "TILEFARM_BROKER_PASSWORD_FILE=%d/broker_password" in text


def test_an_agents_batches_may_end_and_its_adb_server_outlives_it() -> None:
    agent = (REPOSITORY / "deploy/systemd/tilefarm-agent.service").read_text()
    assert "KillMode=mixed\n" in agent, "SIGTERM is for the agent, which ends its workers"
    assert "TimeoutStopSec=16min\n" in agent
    assert "Wants=tilefarm-adb.service" in agent
    assert "adb" not in re.findall(r"^ExecStart=(.*)$", agent, re.MULTILINE)[0]

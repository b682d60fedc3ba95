"""Every setting is told to people, and reaches the service that reads it."""

import re

import pytest

from orchestrator.domain.settings import Settings
from tests.compose import COMPOSE, load
from tests.farm import REPOSITORY

NAMES = sorted(f"TILEFARM_{field.upper()}" for field in Settings.model_fields)
READERS = {
    "TILEFARM_NIGHTS": {"orchestrator"},
    "TILEFARM_NIGHT_OPTIONS": {"orchestrator"},
    "TILEFARM_NIGHT_DEADLINE_H": {"orchestrator"},
    "TILEFARM_NIGHT_LATE_H": {"orchestrator"},
    "TILEFARM_RUNS_AT_ONCE": {"orchestrator"},
    "TILEFARM_DATABASE": {"orchestrator"},
    "TILEFARM_TRIAGE": {"orchestrator"},
    "TILEFARM_REPORT_URL": {"orchestrator"},
    "TILEFARM_BEAT_S": {"beat"},
    "TILEFARM_POWER_CYCLE": {"agent"},
    "TILEFARM_BLOB_QUOTA": {"agent"},
}
"""Services of docker-compose.yml to which ``.env`` may say it; all others are the file's own, or people's."""


def test_the_table_of_settings_has_a_row_for_each_and_no_other() -> None:
    rows = (REPOSITORY / "docs" / "first-run.md").read_text().splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| `TILEFARM_")]
    assert sorted(name for cell in cells for name in re.findall(r"`(TILEFARM_\w+)`", cell)) == NAMES


@pytest.mark.parametrize("name", READERS)
def test_what_env_says_reaches_the_service_that_reads_it(name: str) -> None:
    services = load(COMPOSE, variables={name: "told"})["services"]
    assert {s for s, found in services.items() if found["environment"].get(name) == "told"} == READERS[name]

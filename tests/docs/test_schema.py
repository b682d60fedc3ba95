"""The documented schemas of a run's JSON files are the ones that the program writes and reads."""

import json
from typing import Any

import pytest

from orchestrator.domain.best import BEST_FORMAT, Best
from orchestrator.domain.confirmation import CONFIRMATION_FORMAT, Confirmation
from orchestrator.domain.finding import FINDINGS_FORMAT, Findings
from orchestrator.domain.results import RESULTS_FORMAT, RunResults
from orchestrator.domain.tuning import TUNING_FORMAT, Tuning
from orchestrator.domain.wire import adapter
from tests.farm import REPOSITORY

FILES: dict[str, tuple[type, int]] = {
    "results": (RunResults, RESULTS_FORMAT),
    "findings": (Findings, FINDINGS_FORMAT),
    "confirmation": (Confirmation, CONFIRMATION_FORMAT),
    "best": (Best, BEST_FORMAT),
    "tuning": (Tuning, TUNING_FORMAT),
}


def current(name: str) -> dict[str, Any]:
    kind, number = FILES[name]
    return adapter(kind).json_schema(mode="serialization") | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Tilefarm {name}.json, format {number}",
    }


def text(name: str) -> str:
    return (REPOSITORY / "docs" / f"{name}.schema.json").read_text()


@pytest.mark.parametrize("name", FILES)
def test_schema_file_is_current(name: str) -> None:
    """Write them again with: python -m tests.docs.test_schema"""
    assert json.loads(text(name)) == current(name)


@pytest.mark.parametrize("name", FILES)
def test_the_page_of_formats_leads_to_it(name: str) -> None:
    page = (REPOSITORY / "docs" / "wire-formats.md").read_text()
    assert f"`{name}.json`" in page
    assert f"({name}.schema.json)" in page


if __name__ == "__main__":
    for each in FILES:
        (REPOSITORY / "docs" / f"{each}.schema.json").write_text(
            json.dumps(current(each), indent=1, sort_keys=True) + "\n"
        )

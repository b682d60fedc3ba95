"""The documented schema of results.json is the one that the program writes and reads."""

import json
from typing import Any

from orchestrator.domain.results import RunResults
from orchestrator.domain.wire import adapter
from tests.farm import REPOSITORY

SCHEMA = REPOSITORY / "docs" / "results.schema.json"


def current() -> dict[str, Any]:
    return adapter(RunResults).json_schema(mode="serialization") | {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tilefarm results.json, format 1",
    }


def test_schema_file_is_current() -> None:
    """Write it again with: python -m tests.docs.test_schema"""
    assert json.loads(SCHEMA.read_text()) == current()


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(current(), indent=1, sort_keys=True) + "\n")

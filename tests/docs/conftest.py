"""A farm in a temporary folder for documented commands."""

from pathlib import Path

import pytest

from tests.farm import Farm


@pytest.fixture
def farm(tmp_path: Path) -> Farm:
    return Farm(tmp_path)

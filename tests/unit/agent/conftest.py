"""Fixtures of this folder."""

import pytest

from tests.unit.agent.made_up_host import Host


@pytest.fixture
def host() -> Host:
    return Host()

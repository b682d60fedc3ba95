"""Fixtures of this folder."""

from pathlib import Path

import pytest

from orchestrator.storage.blobs import BlobStore
from tests.unit.execution.redis_fixture import client, redis_url
from tests.unit.workers.fake_device import FakeDevice
from tests.unit.workers.jobs import Stock

__all__ = ["client", "redis_url"]


@pytest.fixture
def stock(tmp_path: Path) -> Stock:
    return Stock(BlobStore((tmp_path / "store").as_uri()))


@pytest.fixture
def phone() -> FakeDevice:
    return FakeDevice()

"""Fixtures of this folder."""

from tests.unit.execution.redis_fixture import client, redis_url

__all__ = ["client", "redis_url"]

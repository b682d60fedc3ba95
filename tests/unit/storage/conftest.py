"""Fixtures of this folder."""

from tests.unit.execution.redis_fixture import client, raw, redis_url, url

__all__ = ["client", "raw", "redis_url", "url"]

"""Fixtures of this folder."""

from tests.unit.execution.redis_fixture import board, client, raw, redis_url, url

__all__ = ["board", "client", "raw", "redis_url", "url"]

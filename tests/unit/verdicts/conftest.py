"""Fixtures of this folder."""

from tests.unit.history.conftest import history

__all__ = ["history"]

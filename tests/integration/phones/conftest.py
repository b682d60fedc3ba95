"""Fixtures for tests with virtual phones on a real adb server."""

from tests.phones import adb_server as adb_server
from tests.phones import start_phone as start_phone

"""Who gives a command, as others read it: ``user@host``."""

import getpass
import os

from orchestrator.domain.settings import Settings
from workers.discovery import host_name


def person() -> str:
    """``TILEFARM_USER``, or else who this process belongs to; in a container the user id may have no name."""
    if named := Settings().user:
        return named
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid-{os.getuid()}"
    return f"{user}@{host_name()}"

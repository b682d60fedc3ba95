"""Who gives a command, as others read it: ``user@host``."""

import getpass
import os

from workers.discovery import host_name


def person() -> str:
    """In a container the user id may have no name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid-{os.getuid()}"
    return f"{user}@{host_name()}"

"""Checks on paths and environment names before they reach a device."""

import posixpath
import re

from orchestrator.domain.errors import UsageError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def absolute(path: str) -> str:
    """The path itself.

    Raises:
        UsageError: relative, or with a NUL byte, which no device can store.
    """
    if not path.startswith("/") or "\0" in path:
        raise UsageError(f"{path!r}: not an absolute path on the device. Join it with Device.workdir.")
    return path


def below(workdir: str, path: str) -> str:
    """The normalised path when it lies strictly below ``workdir``.

    Raises:
        UsageError: it does not, so removing it could hit something that is not ours.
    """
    clean = posixpath.normpath(absolute(path))
    if not clean.startswith(posixpath.normpath(workdir) + "/"):
        raise UsageError(f"{path!r}: not below {workdir}; only files of Tilefarm are removed.")
    return clean


def environment_name(name: str) -> str:
    """The name itself when a shell accepts it as the name of a variable."""
    if not _NAME.match(name):
        raise UsageError(f"{name!r}: not a name of an environment variable ([A-Za-z_][A-Za-z0-9_]*).")
    return name

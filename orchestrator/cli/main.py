"""Entry point of the ``tilefarm`` command: turns our errors and signals into messages and exit codes."""

import os
import signal
import sys
from collections.abc import MutableMapping
from types import FrameType

import structlog
from pydantic import ValidationError

from orchestrator.cli.output import say
from orchestrator.domain.errors import TilefarmError, UsageError

EXIT_INFRA = 3
ADB_PORT = "ANDROID_ADB_SERVER_PORT"


def main() -> None:
    """Run a command; an error of ours is its message on stderr and its exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    # What goes wrong meanwhile is news: stdout is the command's answer, which scripts read.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    try:
        check_adb_port(os.environ)
        # Only now: adbutils reads the variable when it is imported, and fails with a bare ValueError.
        from orchestrator.cli.app import app

        app()
    except TilefarmError as e:
        say(f"tilefarm: {e}")
        sys.exit(e.exit_code)
    except ValidationError as e:
        if e.title != "Settings":
            raise
        for problem in e.errors(include_url=False):
            # Without a place the input is all of the settings, secrets among them.
            given = (
                f"TILEFARM_{str(problem['loc'][0]).upper()}={problem['input']!r}: " if problem["loc"] else ""
            )
            say(f"tilefarm: {given}{problem['msg']}")
        sys.exit(UsageError.exit_code)
    except OSError as e:
        if e.filename is None:
            raise
        say(f"tilefarm: {e.filename}: {e.strerror}. Correct the path or its rights, or choose another place")
        sys.exit(EXIT_INFRA)


def check_adb_port(environ: MutableMapping[str, str]) -> None:
    """An empty ``ANDROID_ADB_SERVER_PORT`` counts as unset, for adb and for us; adbutils needs it gone.

    Raises:
        UsageError: ``ANDROID_ADB_SERVER_PORT`` is no number. (One out of range concerns phones only.)
    """
    port = environ.get(ADB_PORT)
    if port == "":
        del environ[ADB_PORT]
    elif port is not None and not (port.isascii() and port.isdigit()):
        raise UsageError(f"{ADB_PORT}={port!r}: expected a port number; correct or unset it")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a command as Ctrl-C does: with clean-up, and exit code 130."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not cut the clean-up short
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()

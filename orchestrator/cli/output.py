"""What commands print: results on stdout (JSON or for people), news on stderr."""

import json
import os
import sys
from collections.abc import Mapping
from typing import NoReturn

from rich.console import Console

EXIT_BROKEN_PIPE = 141
"""128 + SIGPIPE: what a shell shows for any program whose reader left, as in ``tilefarm plan | head``."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        _reader_left()


news = _Console(stderr=True, highlight=False)
"""Progress and warnings; never part of the result."""

result = _Console(highlight=False, width=None if sys.stdout.isatty() else 160)
"""The command's answer for people; in a log, which has no width of its own, wide enough for every table."""


def print_json(document: Mapping[str, object]) -> None:
    """One document on stdout, valid JSON (no NaN or Infinity literals)."""
    try:
        sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _reader_left()


def say(text: str) -> None:
    """News in one line; text from phones and files is shown literally."""
    news.print(text, markup=False, soft_wrap=True)


def duration_text(seconds: float) -> str:
    """For people: ``42 s``, ``12 min``, ``3 h 05 min``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def _reader_left() -> NoReturn:
    """End quietly; what Python still flushes at its own end goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    raise SystemExit(EXIT_BROKEN_PIPE)

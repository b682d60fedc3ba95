"""What commands print: results on stdout (JSON or for people), news on stderr."""

import json
import sys
from collections.abc import Mapping

from rich.console import Console

news = Console(stderr=True, highlight=False)
"""Progress and warnings; never part of the result."""

result = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
"""The command's answer for people; in a log, which has no width of its own, wide enough for every table."""


def print_json(document: Mapping[str, object]) -> None:
    """One document on stdout, valid JSON (no NaN or Infinity literals)."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def say(text: str) -> None:
    """News in one line; text from phones and files is shown literally."""
    news.print(text, markup=False, soft_wrap=True)

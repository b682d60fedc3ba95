"""Text from phones and matrices as C: names, literals and comments that stay what they are.

Everything is ASCII, so that no compiler's idea of a source file's encoding matters.
"""

import re
from collections.abc import Iterable

from reports.text import visible

MAX_BYTES = 1000
"""Of one string: C99 promises 4095 in a literal, and each may take four characters."""
WIDTH = 96


def literal(text: str) -> str:
    """A string literal of the text's UTF-8 bytes, without trigraphs; cut after ``MAX_BYTES``.

    Three octal digits each, so that a digit behind them is no part of the escape.
    """
    data = text.encode("utf-8", "surrogateescape" if _escaped_bytes(text) else "replace")[:MAX_BYTES]
    return '"' + "".join(_BYTES[byte] for byte in data) + '"'


def _escaped_bytes(text: str) -> bool:
    """Whether each lone surrogate stands for a byte that was no UTF-8."""
    return all(0xDC80 <= ord(c) <= 0xDCFF for c in text if 0xD800 <= ord(c) <= 0xDFFF)


_PLAIN = {ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}
_BYTES = [_PLAIN.get(b, chr(b) if 0x20 <= b < 0x7F else f"\\{b:03o}") for b in range(256)]


def comment(lines: Iterable[str]) -> str:
    """A block comment; nothing in it ends it, opens another one or continues a line. Lines are broken at
    ``WIDTH``, but commands, which begin with ``$``.
    """
    return (
        "/*\n" + "".join(f" * {part}".rstrip() + "\n" for line in lines for part in _wrapped(line)) + " */\n"
    )


def plain(text: str) -> str:
    """One line of printable ASCII that is safe in a comment."""
    shown = visible(text).encode("ascii", "backslashreplace").decode()
    shown = re.sub(r"\?(?=\?)", "? ", shown)
    return re.sub(r"\*(?=/)|/(?=\*)", lambda found: found[0] + " ", shown)


def _wrapped(line: str) -> list[str]:
    """Broken between words; further lines are indented. No line ends in a backslash."""
    text = plain(line)
    if text.startswith("$"):
        return [text + "." if text.endswith("\\") else text]
    parts: list[str] = []
    while len(text) > WIDTH and (at := text.rfind(" ", 4, WIDTH)) > 0:
        parts.append(text[:at])
        text = "  " + text[at + 1 :].lstrip()
    return [p + "." if p.endswith("\\") else p for p in [*parts, text]]


class Names:
    """Identifiers with a prefix, each once."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._taken: set[str] = set()

    def of(self, text: str) -> str:
        stem = self._prefix + (re.sub(r"[^A-Za-z0-9_]", "_", text)[:40] or "_")
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

"""Texts from phones, matrices and drivers made harmless and visible, for HTML, terminals and XML.

Escaping is for reading: the output names every hidden character but is not meant to be parsed back
(a backslash that is already there stays as it is).
"""

import re
import shlex
import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories that are shown as escapes: controls, format characters (bidi overrides and
isolates, zero-width ones), unassigned, private use, lone surrogates, line and paragraph separators."""

MAX_TEXT = 4_000
"""Longest single text in a report; what is longer is cut and says so."""


_SUSPECT = re.compile(r"[^ -~]")
_SUSPECT_IN_BLOCK = re.compile(r"[^ -~\n]")


def visible(text: str, limit: int = MAX_TEXT) -> str:
    """One line without hidden characters: U+202E becomes ``\\u202e``, ESC ``\\u001b``, LF ``\\u000a``."""
    head = _SUSPECT.sub(_escaped, text[:limit])
    return head if len(text) <= limit else f"{head}… ({len(text) - limit} more characters)"


def visible_block(text: str, limit: int = MAX_TEXT) -> str:
    """As :func:`visible`, but line feeds stay and tabs become four spaces."""
    head = text[:limit].replace("\r\n", "\n").replace("\t", "    ")
    head = _SUSPECT_IN_BLOCK.sub(_escaped, head)
    return head if len(text) <= limit else f"{head}… ({len(text) - limit} more characters)"


def shell_word(text: str) -> str:
    """One word for bash that can be copied from a page: ``$'…'`` where it holds hidden characters."""
    if visible(text, len(text)) == text:
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(_shown(c) for c in escaped) + "'"


def file_stem(text: str, digest: str) -> str:
    """A file name's stem that is safe everywhere; ``digest`` is added where characters were replaced."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:80].strip(".-")
    return stem if stem and stem == text else f"{stem}-{digest}".lstrip("-")


def _escaped(found: re.Match[str]) -> str:
    return _shown(found[0])


def _shown(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

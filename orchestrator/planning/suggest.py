"""Text for messages: what was probably meant, and foreign text made safe to print."""

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 60
_LISTED = 12


def shown(text: str) -> str:
    """``"text"`` in one line of printable characters: no ESC, no bidi controls, at most 60 characters."""
    short = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    return f'"{printable(short)}"'


def printable(text: str) -> str:
    """The text with every character that is no visible one or a blank spelt as ``\\uXXXX``."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """The end of a message: a close match, else the list of known words when it is short, else nothing."""
    words = sorted(set(known))
    folded = {word.casefold(): word for word in words}
    close = get_close_matches(wrong[:_SHOWN].casefold(), list(folded), n=1, cutoff=0.6)
    if close:
        return f" Did you mean {shown(folded[close[0]])}?"
    if 0 < len(words) <= _LISTED:
        return f" Known: {', '.join(words)}."
    return ""

"""Texts as Markdown that shows them and does nothing else: no markup, no mention, no link of their own."""

from urllib.parse import quote

from reports.text import visible

_BREAK = "<!-- -->"
"""Renders to nothing; what stands around it is no mention, reference or address any more."""


def code(text: str, limit: int = 4_000) -> str:
    """A code span; backticks, pipes and angle brackets cannot leave it."""
    shown = visible(text, limit).replace("`", "'").replace("|", "¦")
    return f"`{shown}`" if shown.strip() else "–"


def plain(text: str, limit: int = 4_000) -> str:
    """Running text: HTML and Markdown characters are escaped, ``@somebody`` calls nobody."""
    shown = visible(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = "".join(f"\\{c}" if c in "\\`*[]|#!~_" else c for c in shown)
    return shown.replace("@", f"@{_BREAK}").replace("://", f":{_BREAK}//").replace("www.", f"www{_BREAK}.")


def link(label: str, base: str, page: str, anchor: str = "") -> str:
    """To a page of the run; without ``base`` its file's name.

    Args:
        base: URL of the run's folder; empty: nobody serves it.
    """
    if not base:
        return code(page)
    where = f"{base}/{quote(page)}" + (f"#{quote(anchor)}" if anchor else "")
    return f"[{plain(label)}]({where})"

"""Output of Android's ``getprop``: ``[name]: [value]`` lines; a value may hold line ends."""

import re

_START = re.compile(r"\[([^\]\n]+)\]: \[")


def parse_properties(output: bytes) -> dict[str, str]:
    """Name → value; empty values are left out, since they may be filled in later (early in a boot).

    A value ends with the first ``]`` at the end of a line after which an entry, or nothing, follows. The time
    is in proportion to the output, whatever that is.
    """
    found: dict[str, str] = {}
    name, parts = "", list[str]()
    first, *others = output.decode("utf-8", "replace").removesuffix("\n").split("\n[")
    for lines in (first, *(f"[{other}" for other in others)):
        if not parts:
            start = _start(lines)
            if start is None:
                continue
            name, rest = start
            parts.append(rest)
        else:
            parts.append(lines)
        end = parts[-1].removesuffix("\r")
        if end.endswith("]"):
            value = "\n".join([*parts[:-1], end[:-1]])
            parts.clear()
            if value.strip():
                found[name] = value
    return found


def _start(line: str) -> tuple[str, str] | None:
    """Name and the rest of the first entry that begins in these lines."""
    for begun in re.finditer(r"^\[", line, re.MULTILINE):
        if (match := _START.match(line, begun.start())) is not None:
            return match[1], line[match.end() :]
    return None

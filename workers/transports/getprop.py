"""Output of Android's ``getprop``: ``[name]: [value]`` lines; a value may hold line ends."""

import re

_ENTRY = re.compile(r"^\[([^\]\n]+)\]: \[(.*?)\]\r?$(?=\n\[|\n?\Z)", re.MULTILINE | re.DOTALL)


def parse_properties(output: bytes) -> dict[str, str]:
    """Name → value; empty values are left out, since they may be filled in later (early in a boot)."""
    text = output.decode("utf-8", "replace")
    return {name: value for name, value in _ENTRY.findall(text) if value.strip()}

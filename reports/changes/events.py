"""What happened to a series besides being measured: other code, driver or phone, nights without it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from reports.changes.evidence import Night, phones

MAX_TEXT = 90
"""Characters of one side of a change."""
EventKind = Literal["code", "driver", "phone", "missing"]


@dataclass(frozen=True, slots=True)
class Event:
    at: int
    """Index of the first run that shows it."""
    kind: EventKind
    text: str


def events(found: Sequence[Night], runs: Sequence[str], names: dict[str, str]) -> tuple[Event, ...]:
    """In the order of the runs; the same change on several phones in one night is one event.

    Args:
        runs: run ids of the time axis, oldest first.
        names: device id → name.
    """
    at = {run: i for i, run in enumerate(runs)}
    seen: dict[tuple[int, EventKind, str], list[str]] = {}
    for device in phones(found):
        own = [n for n in found if n.device_id == device and n.run_id in at]
        for before, after in pairwise(own):
            index = at[after.run_id]
            if before.code_hash != after.code_hash:
                text = f"code {before.code_hash[:10] or 'unknown'} → {after.code_hash[:10] or 'unknown'}"
                seen.setdefault((index, "code", text), []).append(device)
            if before.environment != after.environment:
                text = " → ".join(_cut(side) for side in differences(before.environment, after.environment))
                seen.setdefault((index, "driver", text), []).append(device)
    changed = [
        Event(index, kind, text if kind == "code" else f"{text} on {_list(devices, names)}")
        for (index, kind, text), devices in seen.items()
    ]
    return tuple(
        sorted([*changed, *_swaps(found, at, names), *_missing(found, runs)], key=lambda e: (e.at, e.kind))
    )


def _swaps(found: Sequence[Night], at: dict[str, int], names: dict[str, str]) -> list[Event]:
    """Phones that came or went while others stayed on the axis: each starts a series of its own."""
    known = [n for n in found if n.run_id in at]
    if not known:
        return []
    first, last = min(at[n.run_id] for n in known), max(at[n.run_id] for n in known)
    made: list[Event] = []
    for device in phones(known):
        own = [at[n.run_id] for n in known if n.device_id == device]
        if min(own) > first:
            made.append(
                Event(min(own), "phone", f"{names.get(device, device)} is new here: a series of its own")
            )
        if max(own) < last:
            made.append(Event(max(own) + 1, "phone", f"{names.get(device, device)} is not measured any more"))
    return made


def _missing(found: Sequence[Night], runs: Sequence[str]) -> list[Event]:
    """Runs in which no phone measured it."""
    there = {n.run_id for n in found}
    return [Event(i, "missing", "not measured") for i, run in enumerate(runs) if run not in there]


def _list(devices: Sequence[str], names: dict[str, str]) -> str:
    shown = [names.get(d, d) for d in devices[:3]]
    return ", ".join(shown) + (f" and {len(devices) - 3} more" if len(devices) > 3 else "")


def differences(before: str, after: str) -> tuple[str, str]:
    """What two environments do not share, ``OpenGL ES 3.2 V@0740.0`` and ``OpenGL ES 3.2 V@0744.1``; in full
    where one side would be empty."""
    old, new = (re.split(r"[;,] ", text) for text in (before, after))
    gone, came = ([w for w in a if w not in b] for a, b in ((old, new), (new, old)))
    return ("; ".join(gone), "; ".join(came)) if gone and came else (before, after)


def _cut(text: str) -> str:
    if not text:
        return "unknown"
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"

"""What happens to a farm, and when: a pure function of the seed, in words that a person can read."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal[
    "worker", "agent", "adb", "redis", "dispatcher", "drop", "drip", "reboot", "full disk", "corruption"
]
KINDS: tuple[Kind, ...] = (
    "worker", "agent", "adb", "redis", "dispatcher", "drop", "drip", "reboot", "full disk", "corruption"
)  # fmt: skip
_WORDS: dict[Kind, str] = {
    "worker": "kill -9 of the worker of phone {}",
    "agent": "kill -9 of the agent of shelf {}, which is started again",
    "adb": "kill -9 of the adb server of shelf {}",
    "redis": "kill -9 of Redis, which is started again with its data",
    "dispatcher": "kill -9 of `tilefarm run`, then `run --resume`",
    "drop": "the link of phone {} drops in its next batch",
    "drip": "the link of phone {} drips for its next batch",
    "reboot": "phone {} restarts in its next batch",
    "full disk": "phone {} has no room for its next two files",
    "corruption": "phone {} keeps the next file with a wrong byte",
}
_FIRST, _LAST = 0.05, 0.8
"""Shares of the cases between which things happen: the run must still have something to lose."""


@dataclass(frozen=True, slots=True, order=True)
class Event:
    after: int
    """So many results were accepted."""
    kind: Kind
    target: int
    """Which phone or shelf; 0 where there is one of them."""

    def __str__(self) -> str:
        return f"after {self.after} results: {_WORDS[self.kind].format(self.target)}"


def story(seed: int, *, cases: int, phones: int, shelves: int, events: int) -> list[Event]:
    """So many events over a run of so many cases, on all phones together; each kind as often as any other."""
    draw = np.random.default_rng(seed)
    kinds: list[Kind] = []
    while len(kinds) < events:
        kinds += [KINDS[n] for n in draw.permutation(len(KINDS))]
    times = sorted(draw.integers(round(_FIRST * cases), round(_LAST * cases), events, endpoint=True))
    told: list[Event] = []
    for after, kind in zip(times, kinds[:events], strict=True):
        targets = {"agent": shelves, "adb": shelves, "redis": 1, "dispatcher": 1}.get(kind, phones)
        told.append(Event(int(after), kind, int(draw.integers(targets))))
    return told


def counted(events: Sequence[Event]) -> dict[Kind, int]:
    found = Counter(e.kind for e in events)
    return {kind: found[kind] for kind in KINDS}

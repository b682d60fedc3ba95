"""Words that findings and groups share: dates, sizes, places."""

from collections.abc import Sequence
from datetime import date

from orchestrator.verdicts.speed import Judged

FEW_SOCS = 2
"""That are called by their names."""


def day(judged: Judged, night: int) -> str:
    """``22 Nov``, with its year where that is not tonight's."""
    when, tonight = (date.fromisoformat(judged.nights.dates[n]) for n in (night, -1))
    year = "" if when.year == tonight.year else f" {when.year}"
    return f"{when.day} {when:%b}{year}"


def places(socs: Sequence[str], of: int) -> str:
    """``SM8650``, ``A and B``, ``3 of 5 SoCs``, ``all 5 SoCs``.

    Args:
        of: SoCs of the night.
    """
    if len(socs) <= FEW_SOCS:
        return " and ".join(socs)
    return f"all {of} SoCs" if len(socs) == of else f"{len(socs)} of {of} SoCs"

"""What an app takes on a SoC that nobody measured: the variant that loses least where it loses most.

It passed on every measured SoC of a group (a vendor's, or all). Nothing is invented: the loss is one that was
measured, and a group of one SoC gives no fallback.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEAST_SOCS = 2


@dataclass(frozen=True, slots=True)
class Fallback:
    case_id: str
    loss: float
    """Largest log ratio to the fastest of its SoC."""
    socs: tuple[str, ...]


def fallback(ratios: Mapping[str, Mapping[str, float]]) -> Fallback | None:
    """None: fewer than two SoCs, or no variant passed on all of them.

    Args:
        ratios: SoC → case id → log ratio to the fastest there, of the variants to choose from.
    """
    socs = tuple(sorted(ratios))
    if len(socs) < LEAST_SOCS:
        return None
    everywhere = [c for c in sorted(ratios[socs[0]]) if all(c in ratios[soc] for soc in socs)]
    if not everywhere:
        return None
    case_id = min(everywhere, key=lambda c: (max(ratios[soc][c] for soc in socs), _total(ratios, socs, c), c))
    return Fallback(case_id, max(ratios[soc][case_id] for soc in socs), socs)


def _total(ratios: Mapping[str, Mapping[str, float]], socs: Sequence[str], case_id: str) -> float:
    return sum(ratios[soc][case_id] for soc in socs)

"""Points of an API that a device does not have: no tests of that device, and no limit that it misses."""

from collections.abc import Iterable, Sequence

from orchestrator.domain.results import Pruned

_LACKS_API = "lacks api "
"""How planning says it (orchestrator/planning/prune.py)."""


def of_other_api(pruned: Pruned) -> bool:
    return any(reason.startswith(_LACKS_API) for reason in pruned.reasons)


def other_apis(pruned: Iterable[Pruned]) -> Sequence[str]:
    """Names of the APIs, in order seen."""
    lacking = (r for p in pruned for r in p.reasons if r.startswith(_LACKS_API))
    return tuple(dict.fromkeys(r.removeprefix(_LACKS_API) for r in lacking))

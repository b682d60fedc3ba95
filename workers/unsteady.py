"""Executions that should all be the same and are not, in words."""

from orchestrator.domain.trial import Difference, Numerics
from workers.result_stream import OTHERS, Kept

Output = Numerics | Kept


def unsteadiness(o: Output) -> str:
    """How many different results, how often which, and where: told for each power state by itself, because
    a rate that depends on it says nothing when pooled (field case G1-02)."""
    common = max((h for h in o.hashes if h != OTHERS), key=lambda h: o.hashes[h], default="")
    results = f"more than {len(o.hashes) - 1}" if OTHERS in o.hashes else str(len(o.hashes))
    runs = sum(o.hashes.values())
    odd = runs - o.hashes.get(common, 0)
    if o.idle_hashes:
        idle_runs = sum(o.idle_hashes.values())
        idle_odd = idle_runs - o.idle_hashes.get(common, 0)
        busy = f"busy {odd - idle_odd} of {runs - idle_runs}"
        rate = f"unlike the commonest: idle {idle_odd} of {idle_runs}, {busy}"
    else:
        rate = f"{odd} of {runs} unlike the commonest"
    where = f"; {_where(o.differs)}" if o.differs else ""
    return f"{results} different results, {rate}{where}"


def _where(d: Difference) -> str:
    if d.box:
        return f"{d.count} elements differ, box [{', '.join(_span(low, high) for low, high in d.box)}]"
    return f"{d.count} elements between {d.first} and {d.last} differ"


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}..{high}"

"""Words about phones and cases that are compared with nothing because their clock is another one tonight."""

from collections.abc import Sequence

import numpy as np

from orchestrator.analysis.clocks import CLOCK_FLOOR
from orchestrator.analysis.speed.night import Basis
from orchestrator.analysis.speed.rule import RULE
from orchestrator.analysis.speed.verdicts import SPEEDS, Speed
from orchestrator.analysis.words import plural
from orchestrator.verdicts.speed import Judged


def of_phone(judged: Judged, device: int) -> str:
    """``its GPU ran at 700 MHz, in its 11 accepted nights at 800: 10 cases are compared with nothing``; empty
    unless that holds for most of a phone's cases that had a baseline."""
    own, found = judged.matrix.device == device, judged.elsewhere
    blind = np.flatnonzero(own & (found.nights > 0))
    if len(blind) <= np.count_nonzero(own & np.isfinite(judged.night.deltas.delta)):
        return ""
    nights = plural(int(found.nights[blind].max()), "accepted night")
    table, clocked = judged.nights.table, np.isfinite(found.clock_hz[blind])
    if 2 * clocked.sum() > len(blind):
        now = float(np.median(table.clock_hz[blind[clocked], -1]))
        before = float(np.median(found.clock_hz[blind[clocked]]))
        seen = f"its GPU ran at {now / 1e6:.0f} MHz, in its {nights} at {before / 1e6:.0f}"
    elif _shown(judged, blind.tolist()):
        seen = f"its GPU showed its clock, in its {nights} it did not"
    else:
        seen = f"its GPU showed no clock, in its {nights} it did"
    left = f"{plural(len(blind), 'case is', 'cases are')} compared with nothing"
    here = int(found.here[blind].max())
    return f"{seen}: {left}" + (f" ({here} of {RULE.min_nights} nights so far)" if here else "")


def step(judged: Judged, device: int) -> str:
    """``clock 800 → 700 MHz``, of a phone that is compared as a whole with nights at another clock; else
    empty."""
    if not judged.left_clock[device]:
        return ""
    table = judged.nights.table
    hz = table.clock_hz[judged.matrix.device == device]
    past = hz[:, :-1]
    past = past[np.abs(past / np.nanmedian(hz[:, -1]) - 1) > CLOCK_FLOOR]
    known = [float(np.median(v[np.isfinite(v)])) for v in (past, hz[:, -1]) if np.isfinite(v).any()]
    return "clock " + " → ".join(f"{v / 1e6:.0f}" for v in known) + " MHz" if len(known) > 1 else ""


def of_case(judged: Judged, series: Sequence[int]) -> str:
    """Of a case without a verdict: ``at another clock than its 11 accepted nights; 0 of 7 at this one``;
    empty where that is not why."""
    found = judged.elsewhere
    blind = [s for s in series if found.nights[s] > 0]
    if not blind:
        return ""
    nights = plural(int(found.nights[blind].max()), "accepted night")
    here = f"{int(found.here[blind].max())} of {RULE.min_nights}"
    if np.isfinite(found.clock_hz[blind]).any():
        return f"at another clock than its {nights}; {here} at this one"
    return f"{'with' if _shown(judged, blind) else 'without'} a clock, unlike its {nights}; {here} like this"


def cases(judged: Judged) -> int:
    """Cases on SoCs that are new for that reason."""
    new = judged.verdicts.tests == SPEEDS.index(Speed.NEW)
    blind = np.bincount(judged.matrix.test[judged.elsewhere.nights > 0], minlength=len(new)) > 0
    return int(np.count_nonzero(new & blind))


def _shown(judged: Judged, series: Sequence[int]) -> bool:
    """Most of the series show their clock tonight."""
    basis = judged.nights.table.basis[list(series), -1]
    return bool(2 * np.count_nonzero(basis == Basis.CLOCK_STATE) > len(basis))

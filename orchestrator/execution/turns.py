"""Whose turn is it: a fair share of each target between people, decided by each run's dispatcher alone.

Every dispatcher keeps no more than two batches a target in the farm's queues and reads what the others say
of their runs. Runs of different people so take turns batch by batch; runs of one person follow each other in
the order in which they were started. Work on demand goes before nightly work, but for one batch now and then
(decision 0034).
"""

from collections.abc import Iterable

from orchestrator.domain.names import Lane
from orchestrator.domain.run_state import ENDED, RunState, Target
from orchestrator.planning.plan import BATCH_S

ONDEMAND_SHARE = 0.8
"""Of a busy device's time that nightly work never gets."""
AGE_S = BATCH_S / (1 - ONDEMAND_SHARE)
"""A nightly run that had no turn for so long sends one batch into the on-demand lane."""


def competes(mine: Target, other: Target) -> bool:
    """Are both served by the same queue?"""
    if mine.device_id or other.device_id:
        return mine.device_id == other.device_id
    return mine.soc == other.soc


def earlier_own(me: RunState, target: Target, runs: Iterable[RunState]) -> RunState | None:
    """A living run of the same person and lane that was started before and still wants the target: it has the
    turn. None: it is ours."""
    for other in runs:
        ours = other.user == me.user and other.lane == me.lane and other.run_id != me.run_id
        before = (other.started_at, other.run_id) < (me.started_at, me.run_id)
        if not (ours and before and other.live) or other.phase in ENDED:
            continue
        if any(competes(target, t) and t.left for t in other.targets):
            return other
    return None


def moves_of_others(
    me: RunState, target: Target, runs: Iterable[RunState]
) -> frozenset[tuple[str, int, str]]:
    """What other runs got done on a target so far: while this changes, the target's worker is not stalled."""
    return frozenset(
        (other.run_id, t.done, t.waiting_since)
        for other in runs
        if other.run_id != me.run_id and other.live
        for t in other.targets
        if shares_phones(target, t)
    )


def shares_phones(mine: Target, other: Target) -> bool:
    return not set(mine.devices).isdisjoint(other.devices)


def too_old(lane: Lane, waited_s: float) -> bool:
    """May nightly work have one turn among the runs on demand?"""
    return lane == "nightly" and waited_s > AGE_S

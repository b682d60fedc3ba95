"""The pick of one workload, with what speaks for it and what must be known before it is shipped."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, isfinite, nan

import numpy as np

from orchestrator.analysis.best.levels import Levels
from orchestrator.analysis.best.pick import NEAR, Candidate, Picked, choose
from orchestrator.analysis.best.shares import shares
from orchestrator.analysis.speed.rows import Floats
from orchestrator.analysis.speed.rule import RULE
from orchestrator.domain.best import Margin, Measured, PhoneShare, Pick, Scope, Variant, WorkloadBest

DIGITS = 6
"""Of log ratios: further ones differ between processors."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Variants of one workload on the phones of one SoC."""

    phones: Sequence[Measured]
    log_ns: Floats
    """(variants, phones, nights)"""
    found: Levels
    candidates: Sequence[Candidate]
    clocked: Sequence[bool]
    """Of each variant: its phones show their GPU clock."""


def pick_of(setting: Setting, workload: WorkloadBest, scope: Scope, among: Sequence[int]) -> Pick:
    """``among``: variants of the scope that may be chosen, at least one."""
    picked = choose(setting.log_ns, setting.found, setting.candidates, among)
    ids = [c.case_id for c in setting.candidates]
    phones = _phones(setting, picked.pick, among)
    used = setting.found.used[picked.pick]
    return Pick(
        api=scope,
        case_id=ids[picked.pick],
        fastest=ids[picked.fastest],
        runner_up=_margin(picked, ids),
        tied=[ids[v] for v in picked.tied],
        why=picked.why,
        phones=phones,
        nights=int(used.any(axis=0).sum()),
        warnings=_warnings(setting, workload.variant(ids[picked.pick]), picked, phones),
    )


def _margin(picked: Picked, ids: Sequence[str]) -> Margin | None:
    other, against = picked.runner_up, picked.against
    if other is None:
        return None
    return Margin(
        case_id=ids[other],
        log_ratio=_rounded(against.estimate[other]),
        low=_rounded(against.low[other]),
        high=_rounded(against.high[other]),
        worst=_rounded(against.worst[other]),
        pairs=int(against.pairs[other]),
    )


def _phones(setting: Setting, variant: int, among: Sequence[int]) -> list[PhoneShare]:
    found = shares(setting.log_ns, setting.found, variant, among)
    return [
        PhoneShare(
            device_id=phone.device_id,
            nights=int(found.nights[n]),
            won=int(found.won[n]),
            near=int(found.near[n]),
            loss=_rounded(found.loss[n]),
        )
        for n, phone in enumerate(setting.phones)
        if found.nights[n]
    ]


def _warnings(setting: Setting, variant: Variant, picked: Picked, shown: Sequence[PhoneShare]) -> list[str]:
    """The gravest first."""
    said: list[str] = []
    if variant.phones == 1:
        said.append(f"rests on one phone, {shown[0].device_id}")
    if variant.nights < RULE.min_nights:
        nights = "one night" if variant.nights == 1 else f"{variant.nights} nights"
        said.append(f"rests on {nights}, and {RULE.min_nights} are needed")
    if picked.runner_up is not None and not isfinite(float(picked.against.low[picked.runner_up])):
        said.append("the margin has no interval: no phone has two nights of both")
    if variant.clock != "gpu":
        said.append(
            "timed by the wall clock" if variant.clock == "wall" else "timed by the wall clock in some nights"
        )
    if not setting.clocked[picked.pick]:
        said.append("its phones do not show their GPU clock: times are 20th percentiles")
    for share in shown:
        if share.loss > NEAR:
            said.append(f"on {share.device_id} another variant is {expm1(share.loss):.1%} faster")
    return said


def _rounded(value: np.float64 | float) -> float:
    number = round(float(value), DIGITS)
    return (number or 0.0) if isfinite(number) else nan

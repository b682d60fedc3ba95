"""The sample's findings by cause, duels of changed code, and how far it is from a release."""

import math
from statistics import median

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.finding import Cause, Drift, Finding, Group, InTurns
from tests.unit.reports.sample_nights import NIGHTS, TONIGHT


def groups(found: list[Finding]) -> list[Group]:
    """One of them on two SoCs, and one SoC that moved as a whole."""
    speed = [f for f in found if f.kind == "speed"]

    def of(cause: Cause, *, slower: bool) -> list[Finding]:
        return [f for f in speed if f.cause == cause and (f.effect > 0) == slower]

    made = [
        _group(
            "all fp16_storage variants of attention_flash on SM8650 since driver 762",
            of("driver", slower=True),
            changed="driver 762",
        ),
        _group(
            "layout=column variants of attention_tiled_sgemm on SM8650 since driver 762",
            of("driver", slower=False),
            changed="driver 762",
        ),
        _group(f"attention_flash layout=row on Tensor-G4 since {TONIGHT}", of("code", slower=False)),
        _group(f"attention_tiled_sgemm tile=128x32 on 2 SoCs since {TONIGHT}", of("code", slower=True)),
        _group("attention_flash tile=64x32 on Tensor-G4", of("environment", slower=True)),
    ]
    together = Group(
        "together", "all variants of Tensor-G4 together", "environment", "regressed", "Tensor-G4",
        socs=["Tensor-G4"], since=NIGHTS[-2], effect=0.031,
    )  # fmt: skip
    return [g for g in made if g.findings] + [together]


def _group(sentence: str, found: list[Finding], changed: str = "") -> Group:
    ordered = sorted(found, key=lambda f: -abs(f.effect))
    socs = sorted({f.soc for f in found})
    return Group(
        sha256_hex(sentence.encode())[:8],
        sentence,
        found[0].cause if found else "code",
        "regressed" if found and found[0].effect > 0 else "improved",
        socs[0] if len(socs) == 1 else "",
        socs=socs,
        since=min((f.since for f in found), default=""),
        changed=changed,
        effect=median(f.effect for f in found) if found else 0.0,
        named=len(found),
        findings=[f.finding_id for f in ordered],
    )


def in_turns(device_id: str, effect: float) -> list[InTurns]:
    """One that answers, and one whose phone went."""
    return [
        InTurns(device_id, "different", effect, effect - 0.004, effect + 0.004, 3e-6, 20, 20),
        InTurns("adb-p9-2", "unknown", math.nan, math.nan, math.nan, math.nan, 0, 0, "the phone went"),
    ]


def drift() -> list[Drift]:
    return [
        Drift("release-2.1", NIGHTS[0], "SM8650", "", 0.024, 3, 48, "since release-2.1: 2.4 % slower"),
        Drift("release-2.1", NIGHTS[0], "Tensor-G4", "", -0.05, 2, 48, "since release-2.1: 4.9 % faster"),
    ]

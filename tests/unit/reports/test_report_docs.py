"""docs/report.md names the numbers that the code uses."""

from pathlib import Path

import pytest

from orchestrator.analysis.canaries import CANARY_REASON
from orchestrator.analysis.clocks import CLOCK_FLOOR, MIN_CLEARANCE, MIN_SHARE, MIN_STEP, PACE_FLOOR
from orchestrator.analysis.compare import MOVED_FLOOR
from orchestrator.analysis.hints import NOISE_FLOOR
from orchestrator.analysis.outcome import Outcome
from orchestrator.analysis.stats import NOISY_SPREAD
from reports.findings import INLINE_LOG, MAX_DETAILED
from reports.junit import MAX_BAD, MAX_CALM, MAX_LOGS
from reports.machines.junit_changes import MAX_CARDS
from reports.numbers import HEAT_STEPS
from reports.roofline import MAX_MARKS, SAME_RATE
from reports.text import MAX_TEXT

TEXT = " ".join((Path(__file__).parents[3] / "docs" / "report.md").read_text("utf-8").split())


@pytest.mark.parametrize(
    "phrase",
    [
        f"Above {NOISY_SPREAD:.0%} it is marked *noisy*".replace("%", " %"),
        f"a ratio beyond both spreads and {MOVED_FLOOR:.0%}".replace("%", " %"),
        f"(at least {NOISE_FLOOR:.0%})".replace("%", " %"),
        f"within {SAME_RATE:.0%} share a line".replace("%", " %"),
        f"at most {MAX_MARKS};",
        f"starts with `{CANARY_REASON.strip()}`",
        "(≤ " + ", ".join(str(s) for s in HEAT_STEPS) + ", above)",
        f"one text is cut after {MAX_TEXT:,} characters",
        f"shown up to {INLINE_LOG:,} characters",
        f"at least {MIN_SHARE:.0%} (and two samples)".replace("%", " %"),
        f"differ by at least {MIN_STEP:.0%}, and the gap is above {MIN_CLEARANCE:g} ×".replace("%", " %"),
        f"lie more than {CLOCK_FLOOR:.0%} apart".replace("%", " %"),
        f"lie more than ×{PACE_FLOOR} apart",
        f"{MAX_DETAILED} findings of a kind and device",
        f"Beyond {MAX_BAD:,} failed or missing points, {MAX_CALM:,} others, {MAX_CARDS} causes and "
        f"{MAX_LOGS // 10**6} MB of logs",
    ],
)
def test_constants(phrase: str) -> None:
    assert phrase in TEXT


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_is_explained(outcome: Outcome) -> None:
    assert f"| {outcome.value} |" in TEXT

"""Numerics against the pinned baseline."""

import math
from dataclasses import replace

import pytest

from orchestrator.analysis.speed.numeric_trend import (
    NumericFlag,
    NumericNight,
    executions_needed,
    numeric_flags,
)

PINNED = NumericNight("a", nmse=1e-9, limit=1e-7, failing=0, nonfinite=0, executions=12, other=0)
F = NumericFlag


@pytest.mark.parametrize(
    ("pinned", "tonight", "expected"),
    [
        ({}, {}, []),
        ({}, {"hash": "b"}, [F.HASH_CHANGED]),
        ({"other": 1}, {"hash": "b"}, []),
        ({}, {"hash": "b", "other": 1}, [F.NONDETERMINISTIC]),
        ({}, {"hash": ""}, []),
        ({}, {"nmse": 1.99e-9}, []),
        ({}, {"nmse": 2e-9}, [F.NMSE_DOUBLED]),
        ({}, {"nmse": 2e-7}, [F.NMSE_DOUBLED, F.LIMIT_CROSSED]),
        ({}, {"failing": 3}, [F.LIMIT_CROSSED]),
        ({}, {"nmse": math.nan, "nonfinite": 1}, [F.NMSE_DOUBLED, F.LIMIT_CROSSED]),
        ({}, {"nmse": math.inf}, [F.NMSE_DOUBLED, F.LIMIT_CROSSED]),
        ({}, {"other": 2}, [F.NONDETERMINISTIC]),
        ({}, {"nmse": 5e-10}, [F.IMPROVED]),
        ({"nmse": 0.0}, {"nmse": 0.0}, []),
        ({"nmse": 0.0}, {"nmse": 1e-20}, [F.NMSE_DOUBLED]),
        ({"failing": 3}, {}, [F.IMPROVED]),
        ({"failing": 3}, {"failing": 2, "nmse": 1e-12}, []),
        ({"nmse": math.nan}, {}, [F.IMPROVED]),
        ({"other": 3}, {"executions": 12}, [F.IMPROVED]),
        ({"other": 1}, {"executions": 12}, []),
    ],
    ids=str,
)
def test_flags(pinned: dict[str, float], tonight: dict[str, float], expected: list[NumericFlag]) -> None:
    found = numeric_flags(replace(PINNED, **pinned), replace(PINNED, **tonight))
    assert list(found) == expected


def test_g4_01_nan_is_never_right() -> None:
    """G4-01: NaN > tolerance is false, and so must be NaN ≤ limit."""
    assert not replace(PINNED, nmse=math.nan).right
    assert not replace(PINNED, nonfinite=1).right


def test_executions_that_show_a_flake() -> None:
    """statistics.md: 12 replays find a 23 % flake rate with 95 % probability, 59 find 5 %."""
    assert [executions_needed(r) for r in (0.23, 0.05, 1.0)] == [12, 59, 1]
    with pytest.raises(ValueError, match="rate 0"):
        executions_needed(0)

import math
from dataclasses import replace

from orchestrator.analysis.replays import box, executions, range_words, replays
from orchestrator.domain.kernel import Tolerance
from orchestrator.domain.trial import Difference
from tests.results_fixture import numerics

RIGHT = numerics(64, bits="right")
TOLERANCE = Tolerance(atol=2e-6, rtol=0.0, nmse=1e-10)


def test_g1_01_wrong_runs_are_counted_and_never_outvoted() -> None:
    """G1-01: 23 of 100 executions give other bits, each its own."""
    hashes = {RIGHT.hash: 77, **{f"bad{i}": 1 for i in range(23)}}
    found = replays(replace(RIGHT, hashes=hashes), TOLERANCE)
    assert (found.executions, found.distinct, found.other) == (100, 24, 23)
    assert found.sentence == (
        "24 distinct outputs in 100 executions: 23 unlike the compared one, which is within its tolerance"
    )
    mostly_wrong = replays(replace(RIGHT, hashes={RIGHT.hash: 1, "bad": 99}), TOLERANCE)
    assert mostly_wrong.other == 99


def test_g1_01_box_of_differing_elements() -> None:
    """G1-01: the box names the 32 rows that a broken work-group shape damages."""
    found = box(Difference(1_024, 64, 12_287, box=[(0, 0), (32, 63), (0, 31)]))
    assert found is not None
    assert (found.low, found.high) == ((0, 32, 0), (0, 63, 31))
    assert found.extent == (1, 32, 32)
    assert box(Difference(3, 1, 9)) is None
    assert box(None) is None


def test_g1_02_rates_are_told_per_power_state() -> None:
    """G1-02: 0 of 50 hot, 3 of 50 after a rest; one pooled rate would say 3 %."""
    bad = {f"bad{i}": 1 for i in range(3)}
    output = replace(RIGHT, hashes={RIGHT.hash: 97, **bad}, idle_hashes={RIGHT.hash: 47, **bad})
    busy, idle = replays(output, TOLERANCE).rates
    assert (busy.state, busy.executions, busy.other, busy.share, busy.distinct) == (
        "back to back", 50, 0, 0.0, 1,
    )  # fmt: skip
    assert (idle.state, idle.executions, idle.other, idle.share) == ("after a rest", 50, 3, 0.06)


def test_without_a_rest_there_is_one_state() -> None:
    assert [r.state for r in replays(RIGHT, TOLERANCE).rates] == ["back to back"]
    only_idle = replays(replace(RIGHT, hashes={RIGHT.hash: 4}, idle_hashes={RIGHT.hash: 4}), TOLERANCE)
    assert [(r.executions, r.share) for r in only_idle.rates] == [(0, None), (4, 0.0)]


def test_a_compared_output_that_is_wrong_is_called_so() -> None:
    for wrong in (
        replace(RIGHT, failing=3),
        replace(RIGHT, guard="damaged"),
        replace(RIGHT, unwritten=1),
        replace(RIGHT, nonfinite_mismatch=1),
        replace(RIGHT, nmse=2e-10),
        replace(RIGHT, nmse=math.nan),
    ):
        assert not replays(wrong, TOLERANCE).compared_right
        assert replays(wrong, TOLERANCE).sentence.endswith("which is wrong itself")


def test_without_a_tolerance_the_nmse_says_nothing() -> None:
    assert replays(replace(RIGHT, nmse=2e-10), None).compared_right


def test_executions() -> None:
    assert executions([RIGHT, replace(RIGHT, hashes={"x": 59})]) == 59
    assert executions([]) == 0
    assert [range_words(c) for c in ([], [0], [12, 12], [12, 0, 59])] == ["", "", "12", "12 to 59"]

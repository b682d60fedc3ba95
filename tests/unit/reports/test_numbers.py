import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analysis.numerics import ToleranceUse
from orchestrator.analysis.stats import TimingStats, timing_stats
from reports import numbers
from tests.results_fixture import timing


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1.00"), (12.345, "12.3"), (99.96, "100"), (123456.0, "123456"),
        (0.00123, "0.00123"), (4.1e-7, "4.10e-7"), (9.999e-7, "1.00e-6"), (1e6, "1.00e6"),
        (-2.5, "-2.50"), (math.inf, "∞"), (-math.inf, "−∞"), (math.nan, "NaN"), (None, "–"),
    ],
)  # fmt: skip
def test_significant(value: float | None, text: str) -> None:
    assert numbers.significant(value) == text


@given(st.floats(1e-30, 1e30))
def test_significant_is_within_half_a_percent(value: float) -> None:
    assert float(numbers.significant(value)) == pytest.approx(value, rel=5.1e-3)


@pytest.mark.parametrize(
    ("ns", "text"),
    [(812.0, "812 ns"), (79_100.0, "79.1 µs"), (16_300_000.0, "16.3 ms"), (2.1e9, "2.10 s"), (None, "–")],
)
def test_duration(ns: float | None, text: str) -> None:
    assert numbers.duration(ns) == text


@pytest.mark.parametrize(
    ("low_ns", "decimals"), [(105e6, 0), (12e6, 1), (1.34e6, 2), (79_100, 4), (1.0, 6), (0.0, 3)]
)
def test_columns_show_three_digits_of_their_smallest_time(low_ns: float, decimals: int) -> None:
    assert numbers.decimals_for(low_ns) == decimals


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (ToleranceUse(0.213, True, "element"), "21 %"),
        (ToleranceUse(0.213, False, "element"), "≥ 21 %"),
        (ToleranceUse(0.5, True, "nmse"), "50 % nmse"),
        (ToleranceUse(745.0, True, "element"), "×745"),
        (ToleranceUse(math.inf, True, "element"), "∞"),
        (None, "–"),
    ],
)
def test_tolerance_share(use: ToleranceUse | None, text: str) -> None:
    assert numbers.tolerance_share(use) == text


def test_ulps_are_whole_when_they_are() -> None:
    assert [numbers.units(v) for v in (9.0, 0.5, 4e9, math.nan, math.inf)] == [
        "9",
        "0.500",
        "4.00e9",
        "NaN",
        "∞",
    ]


def test_position_falls_back_to_the_flat_index() -> None:
    assert numbers.position((0, 17, 12), 1100) == "[0, 17, 12]"
    assert numbers.position(None, 1100) == "#1100"
    assert numbers.position(None) == "–"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("battery_temp_mc", "33400", ("battery temp", "33.4 °C")),
        ("battery_temp_mc", "-1500", ("battery temp", "-1.5 °C")),
        ("battery_percent", "41", ("battery", "41 %")),
        ("battery_temp_mc", "unknown", ("battery temp mc", "unknown")),
        ("wakefulness", "dozing", ("wakefulness", "dozing")),
    ],
)
def test_health_readings_have_units(name: str, value: str, shown: tuple[str, str]) -> None:
    assert numbers.fact(name, value) == shown


def _stats(ms: float) -> TimingStats:
    stats = timing_stats(timing(round(ms * 1e6)))
    assert stats is not None
    return stats


def test_bar_is_logarithmic_and_stays_inside() -> None:
    low, middle, high = (_stats(ms) for ms in (1, 10, 100))
    ends = low.min_ns, high.max_ns
    first, second, third = (numbers.bar(s, *ends) for s in (low, middle, high))
    assert first[0] == 1
    assert third[-1] == 89
    assert second[2] == pytest.approx(45, abs=0.5)
    assert list(second) == sorted(second)


def test_bar_of_equal_times_is_centred() -> None:
    stats = _stats(5)
    assert numbers.bar(stats, 7.0, 7.0) == (45.0,) * 5


@pytest.mark.parametrize(("ratio", "step"), [(1.0, 0), (1.05, 0), (1.06, 1), (1.5, 3), (2.5, 4), (2.6, 5)])
def test_heat_steps(ratio: float, step: int) -> None:
    assert numbers.heat_step(ratio) == step

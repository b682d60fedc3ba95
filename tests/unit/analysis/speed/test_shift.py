"""What all variants of a phone share, and what must not vanish in it."""

import numpy as np

from orchestrator.analysis.speed.rows import Floats
from orchestrator.analysis.speed.shift import SentinelCandidate, choose_sentinels, shifts

VARIANTS, NIGHTS = 200, 15


def phone(seed: int = 1) -> tuple[Floats, Floats]:
    """(series, nights) log times, and the (nights,) shift in them."""
    rng = np.random.default_rng(seed)
    shift = rng.normal(0, 0.03, NIGHTS)
    return rng.normal(15, 1, (VARIANTS, 1)) + rng.normal(0, 0.01, (VARIANTS, NIGHTS)) + shift, shift


ONE = np.zeros(VARIANTS, np.int64)
FROZEN = np.arange(VARIANTS) < 8


def test_the_common_shift_is_found_and_taken_off() -> None:
    values, shift = phone()
    found = shifts(values, ONE, 1)
    # Levels take the median night, so only differences between nights are known.
    off = found.all[0] - shift
    assert np.ptp(off) < 0.006
    flat = values - found.taken_off[ONE]
    assert np.median(flat.std(axis=1)) < 0.012


def test_a_driver_that_slows_everything_shows_in_the_shift() -> None:
    values, _ = phone()
    before = shifts(values, ONE, 1, FROZEN)
    values[:, -1] += 0.05
    after = shifts(values, ONE, 1, FROZEN)
    assert np.isclose(after.all[0, -1] - before.all[0, -1], 0.05)
    assert np.isclose(after.sentinels[0, -1] - before.sentinels[0, -1], 0.05)
    assert not after.diverged[0]


def test_code_that_slows_most_variants_is_no_shift_of_the_phone() -> None:
    values, _ = phone()
    before = shifts(values, ONE, 1, FROZEN).taken_off[0, -1]
    values[50:, -1] += 0.06
    found = shifts(values, ONE, 1, FROZEN)
    assert found.diverged[0]
    assert abs(found.taken_off[0, -1] - before) < 0.015
    assert found.all[0, -1] - before > 0.04


def test_few_variants_make_no_shift() -> None:
    """It would be their own change, and would hide it."""
    values, _ = phone()
    found = shifts(values[:9], ONE[:9], 1)
    assert np.isnan(found.all).all()
    assert (found.taken_off == 0).all()
    assert found.series[0, 0] == 9


def test_phones_have_shifts_of_their_own() -> None:
    (one, _), (two, _) = phone(1), phone(2)
    both = shifts(np.concatenate([one, two]), np.repeat([0, 1], VARIANTS), 2)
    np.testing.assert_allclose(both.all[0], shifts(one, ONE, 1).all[0])
    np.testing.assert_allclose(both.all[1], shifts(two, ONE, 1).all[0])


def test_sentinels_come_from_all_kernels_whatever_the_order() -> None:
    candidates = [
        SentinelCandidate(f"{kernel}{i}", kernel, nights=14, median_ns=1e6, variance=0.001 * (i + 1))
        for kernel in ("attention", "blur", "sgemm")
        for i in range(5)
    ]
    candidates += [
        SentinelCandidate("short", "scale", nights=14, median_ns=2e4, variance=1e-9),
        SentinelCandidate("new", "scale", nights=3, median_ns=1e6, variance=1e-9),
    ]
    chosen = choose_sentinels(candidates)
    assert chosen == ("attention0", "blur0", "sgemm0", "attention1", "blur1", "sgemm1", "attention2", "blur2")
    assert choose_sentinels(candidates[::-1]) == chosen
    assert choose_sentinels(sorted(candidates, key=lambda c: c.case_id[-1])) == chosen

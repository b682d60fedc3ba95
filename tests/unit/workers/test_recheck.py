"""The host's second opinion follows the runner's rule (compare.c) element by element."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.job import CheckJob
from orchestrator.domain.kernel import NOT_FINITE_BITS
from orchestrator.domain.trial import Numerics
from tests.results_fixture import numerics
from tests.unit.domain.strategies import quick
from workers.recheck import recheck, within

NAN, INF = math.nan, math.inf
NOT_FINITE = float(np.array([NOT_FINITE_BITS], "<u8").view("<f8")[0])
CHECK = CheckJob("o", "b" * 64, 1e-6, 0.0, 1e-10)


def seen(tensor: bytes, count: int, *, failing: int = 0, dtype: str = "f32") -> Numerics:
    """What a runner says that saw this tensor."""
    return replace(numerics(count), hash=sha256_hex(tensor), failing=failing, dtype=dtype)


def doubles(*values: float) -> bytes:
    return np.array(values, "<f8").tobytes()


def floats(*values: float) -> bytes:
    return np.array(values, "<f4").tobytes()


def runners_rule(got: float, ref: float, atol: float, rtol: float) -> bool:
    """element_passes() of workers/runner/src/compare.c, line by line."""
    if np.array([ref], "<f8").view("<u8")[0] == NOT_FINITE_BITS:
        return not math.isfinite(got)
    if not math.isfinite(ref):
        return got == ref
    return abs(got - ref) <= atol + rtol * abs(ref)


odd = st.sampled_from([0.0, -0.0, 1.0, 1.5, -1.0, 1e300, INF, -INF, NAN, NOT_FINITE])


@quick
@given(
    st.lists(st.tuples(odd | st.floats(), odd | st.floats()), min_size=1), st.sampled_from([0.0, 1e-6, 0.5])
)
def test_g4_01_the_rule_is_the_runners(pairs: list[tuple[float, float]], rtol: float) -> None:
    got, ref = (np.array([p[i] for p in pairs], "<f8") for i in (0, 1))
    assert within(got, ref, 1e-3, rtol).tolist() == [runners_rule(g, r, 1e-3, rtol) for g, r in pairs]


@pytest.mark.parametrize(
    ("got", "ref", "passes"),
    [
        (1.0, 1.0, True),
        (NAN, 1.0, False),
        (INF, 1.0, False),
        (1.0, NAN, False),
        (NAN, NAN, False),
        (INF, INF, True),
        (-INF, INF, False),
        (NAN, INF, False),
        (3e38, INF, False),
        (NAN, NOT_FINITE, True),
        (-INF, NOT_FINITE, True),
        (0.0, NOT_FINITE, False),
    ],
)
def test_g4_01_what_is_not_a_number_passes_only_where_demanded(got: float, ref: float, passes: bool) -> None:
    assert within(np.array([got]), np.array([ref]), 1e-6, 1e-6).tolist() == [passes]


def test_agreement_has_nothing_to_say() -> None:
    tensor = floats(1.0, 2.0, 3.5)
    assert recheck(tensor, doubles(1.0, 2.0, 3.5), seen(tensor, 3), CHECK) == ""
    assert recheck(tensor, doubles(1.0, 2.0, 3.0), seen(tensor, 3, failing=1), CHECK) == ""


@pytest.mark.parametrize("claimed", [0, 2])
def test_another_count_of_failures_is_named(claimed: int) -> None:
    tensor = floats(1.0, 2.0, 3.5)
    doubt = recheck(tensor, doubles(1.0, 2.0, 3.0), seen(tensor, 3, failing=claimed), CHECK)
    assert doubt == f"o: host counts 1 failing elements, the runner {claimed}"


def test_a_flipped_bit_shows_even_where_the_comparison_does_not() -> None:
    tensor = floats(1.0, 2.0)
    damaged = floats(1.0, np.nextafter(np.float32(2.0), np.float32(3.0)))
    doubt = recheck(damaged, doubles(1.0, 2.0), seen(tensor, 2), replace(CHECK, atol=1.0))
    assert "pulled tensor has hash" in doubt


def test_a_short_tensor_is_named() -> None:
    tensor = floats(1.0, 2.0)
    assert recheck(tensor[:7], doubles(1.0, 2.0), seen(tensor, 2), CHECK) == "o: pulled 7 bytes of 8"


def test_f16_is_read_as_f16_and_its_padding_is_left_out() -> None:
    """Three halves are six bytes; the device's buffer has eight."""
    halves = np.array([1.0, 65504.0, 2.0**-24], "<f2").tobytes()
    reference = doubles(1.0, 65504.0, 2.0**-24)
    claim = seen(halves, 3, dtype="f16")
    exact = CheckJob("o", "b" * 64, 0.0, 0.0, 0.0)
    assert recheck(halves, reference, claim, exact) == ""
    assert recheck(halves + b"\x5a\x7e", reference, claim, exact) == ""


def test_u32_counts_whole_numbers() -> None:
    tensor = np.array([0, 2**32 - 1], "<u4").tobytes()
    exact = CheckJob("o", "b" * 64, 0.0, 0.0, 0.0)
    assert recheck(tensor, doubles(0.0, 2.0**32 - 1), seen(tensor, 2, dtype="u32"), exact) == ""
    assert recheck(tensor, doubles(0.0, 2.0**32), seen(tensor, 2, failing=1, dtype="u32"), exact) == ""


def test_nan_in_the_tensor_counts_as_failing() -> None:
    tensor = floats(1.0, NAN)
    assert "host counts 1" in recheck(tensor, doubles(1.0, 2.0), seen(tensor, 2), CHECK)


def test_a_reference_of_another_length_is_named() -> None:
    tensor = floats(1.0, 2.0)
    assert "reference has 3 elements" in recheck(tensor, doubles(1, 2, 3), seen(tensor, 2), CHECK)

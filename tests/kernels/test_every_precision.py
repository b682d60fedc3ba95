"""The scripts that run every kernel leave no precision out without a word."""

import pytest

from tests.kernels import every_input, false_alarms
from tests.kernels.drivers import DRIVERS, driver

KERNELS = false_alarms.kernels()
SEED = range(1, 2)


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_precision_runs_or_the_table_says_why_not(kernel: str, name: str) -> None:
    loaded, on = KERNELS[kernel], driver(name)
    for cases in (false_alarms.cases_of(loaded, name, SEED), every_input.cases_of(loaded, name)):
        every = list(cases)
        runs = {c.axes["precision"] for c in every if on.refuses(loaded.kernel, c) is None}
        absent = false_alarms.absent(on, loaded.kernel, every)
        assert runs | set(absent) == set(false_alarms.precisions_of(loaded.kernel))
        assert not runs & set(absent)
        assert all(row.absent for row in absent.values())


@pytest.mark.parametrize("kernel", KERNELS)
def test_lavapipe_runs_every_precision(kernel: str) -> None:
    """Pairs of halves too, which need a subgroup."""
    loaded = KERNELS[kernel]
    cases = false_alarms.cases_of(loaded, "lavapipe", SEED)
    assert false_alarms.absent(driver("lavapipe"), loaded.kernel, cases) == {}

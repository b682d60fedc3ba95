"""True kernels pass on seeds that nobody chose, and the script that counts false alarms would count one.

The short form of ``python -m tests.kernels.false_alarms``: fp32 of each kernel on one driver in turn.
"""

from collections.abc import Mapping

import pytest

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Array, Kernel, Tolerance
from tests.kernels import false_alarms
from tests.kernels.drivers import DRIVERS
from tests.kernels.harness import KERNELS

SEEDS = range(101, 109)
NAMES = sorted(false_alarms.kernels())


@pytest.mark.parametrize("kernel", NAMES)
def test_no_alarm_about_a_kernel_that_is_right(kernel: str) -> None:
    loaded = false_alarms.kernels()[kernel]
    name = DRIVERS[NAMES.index(kernel) % len(DRIVERS)]
    (row,) = false_alarms.run(name, loaded, SEEDS, ["fp32"]).values()
    assert (row.cases, row.alarms) == (len(SEEDS), 0)
    assert 1.0 <= row.closest < 1000.0


def test_a_budget_that_is_a_thousand_times_too_narrow_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = false_alarms.kernels()["sgemm"]
    right = type(loaded.kernel).tolerance

    def narrow(self: Kernel, case: Case, inputs: Mapping[str, Array]) -> Mapping[str, Tolerance]:
        return {
            name: Tolerance(t.atol / 1000, t.rtol / 1000, t.nmse / 1000)
            for name, t in right(self, case, inputs).items()
        }

    monkeypatch.setattr(type(loaded.kernel), "tolerance", narrow)
    (row,) = false_alarms.run("swiftshader", loaded, SEEDS[:3], ["fp32"]).values()
    assert (row.cases, row.alarms) == (3, 3)


def test_every_kernel_takes_part() -> None:
    """All that compute for users, but the one that no software driver runs; each on a driver."""
    folders = {path.parent.name for path in KERNELS.glob("*/kernel.py")}
    probes = {"canary", "copy", "fma", "precision_probe"}
    assert set(NAMES) == folders - probes - {false_alarms.MATRIX_UNITS}

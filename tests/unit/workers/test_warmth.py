"""A trial tells how warm its phone's battery was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from orchestrator.domain.errors import DeviceLost, LeaseLost
from orchestrator.domain.health import Vitals
from orchestrator.domain.trial import Sensors
from tests.results_fixture import case, passing, timing
from tests.unit.workers.fake_device import FakeDevice
from workers.transports.base import CommandResult
from workers.warmth import Warmth

TIMED = replace(passing(case(), "phone"), timing=timing(), sensors=Sensors(temp_mc=[61_000]))


def ours() -> None: ...


@dataclass(slots=True)
class Warm(FakeDevice):
    tenths: int = 0
    asked: int = 0
    lost: bool = False

    def run(
        self, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        del timeout_s, env
        self.asked += 1
        if self.lost:
            raise DeviceLost("phone: gone")
        return CommandResult(
            0, f"temperature: {self.tenths}\n".encode() * ("dumpsys battery" in " ".join(argv))
        )


@pytest.mark.parametrize(("after", "said"), [(410, 41_000), (290, 34_500)])
def test_g4_05_the_warmer_of_before_and_after_is_told(after: int, said: int) -> None:
    """G4-05: a phone that was cool at the gate and got hot in the batch is not taken for a cool one."""
    (told,) = Warmth(Warm(tenths=after), Vitals(0.0, battery_c=34.5)).told([TIMED], ours)
    assert told.sensors == Sensors(temp_mc=[61_000], battery_mc=said)


def test_a_phone_that_left_has_what_it_said_before() -> None:
    (told,) = Warmth(Warm(lost=True), Vitals(0.0, battery_c=34.5)).told([TIMED], ours)
    assert told.sensors is not None
    assert told.sensors.battery_mc == 34_500


def test_nobody_is_asked_for_what_was_not_timed() -> None:
    phone, untimed = Warm(), replace(TIMED, timing=None)
    assert Warmth(phone, Vitals(0.0, battery_c=34.5)).told([untimed], ours) == [untimed]
    assert Warmth().told([TIMED], ours) == [TIMED]
    assert phone.asked == 0


def test_a_phone_that_is_somebody_elses_by_now_is_not_asked() -> None:
    def lost() -> None:
        raise LeaseLost("phone: the lease was lost")

    phone = Warm(tenths=410)
    (told,) = Warmth(phone, Vitals(0.0, battery_c=34.5)).told([TIMED], lost)
    assert told.sensors is not None
    assert (phone.asked, told.sensors.battery_mc) == (0, 34_500)

"""How warm a phone was while it measured: asked before a batch and again after it, since a gate before it
misses what the batch itself heats (G4-05)."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from orchestrator.domain.errors import InfraError, LeaseLost
from orchestrator.domain.health import Vitals
from orchestrator.domain.trial import Sensors, Trial
from workers.bench import CALL_TIMEOUT_S
from workers.health import read_vitals
from workers.transports.base import Device


@dataclass(frozen=True, slots=True)
class Warmth:
    """Of one phone; of any other device nothing is told."""

    device: Device | None = None
    before: Vitals | None = None

    def told(self, trials: Sequence[Trial], still_ours: Callable[[], None]) -> list[Trial]:
        """The trials of a group that has just ended, with the battery's temperature.

        Args:
            still_ours: raises LeaseLost once the phone is somebody else's: it is not asked then.
        """
        if self.device is None or self.before is None or not any(t.timing for t in trials):
            return list(trials)
        readings = [self.before]
        with suppress(InfraError, LeaseLost):  # it is gone, or not ours any more: what it measured stays
            still_ours()
            readings.append(read_vitals(self.device, self.before.at, CALL_TIMEOUT_S))
        known = [v.battery_c for v in readings if v.battery_c is not None]
        return [_with(t, round(max(known) * 1000)) if t.timing and known else t for t in trials]


def _with(trial: Trial, battery_mc: int) -> Trial:
    return replace(trial, sensors=replace(trial.sensors or Sensors(), battery_mc=battery_mc))

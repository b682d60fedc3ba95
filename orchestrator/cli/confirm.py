"""The end of a run on a farm that is still open: what its first judgement found is measured once more."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import expm1, isfinite, isinf

import structlog

from orchestrator.cli.ending import last_known
from orchestrator.cli.fleet import Fleet
from orchestrator.cli.judged import CONFIRMATION
from orchestrator.cli.output import say
from orchestrator.domain.confirmation import Confirmation, Duel, Wanted
from orchestrator.domain.errors import BrokerUnavailable, TilefarmError
from orchestrator.domain.moment import utc_now
from orchestrator.domain.run_state import RunState
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.dispatch import FARM_OUTAGE_S, TELL_EVERY_S
from orchestrator.execution.duel_jobs import Manifests
from orchestrator.execution.errands import ErrandLimits, Errands
from orchestrator.execution.run_folder import RunFolder, write_atomically
from workers.discovery import host_name

FARM_LIMITS = ErrandLimits(gone_s=120.0, outage_s=FARM_OUTAGE_S)
BEYOND = "all findings are beyond the budget of a confirmation: too few samples were taken in this run"
log = structlog.get_logger()


class OnTheFarm:
    """A run's second look (``judged.SecondLook``). Whatever ends it, what is known by then stands: a report
    waits for it and never fails for it."""

    def __init__(self, folder: RunFolder, fleet: Fleet, settings: Settings) -> None:
        self._folder = folder
        self._fleet = fleet
        self._settings = settings

    def __call__(self, wanted: Sequence[Wanted], samples: int, unpaid: int) -> Confirmation | None:
        run_id = self._folder.path.name
        if not wanted:
            return self._kept(Confirmation(run_id, unpaid=unpaid, why=BEYOND)) if unpaid else None
        # Loaded only here: its libraries take half a second, and each command loads this file.
        from orchestrator.execution.confirm import CONFIRM_LANE, Confirming

        devices = len({w.device_id for w in wanted})
        say(f"confirming: {len(wanted)} questions to {devices} devices (--no-confirm leaves this out)")
        errands = Errands(
            self._fleet.broker,
            run_id,
            CONFIRM_LANE,
            limits=FARM_LIMITS if self._settings.broker else None,
            on_tick=Ticker(self._folder, self._fleet),
        )
        confirming = Confirming(run_id, Manifests(self._settings.out), errands, self._kept)
        try:
            return self._told(confirming.carry_out(wanted, samples, unpaid))
        except KeyboardInterrupt:
            why = f"ended by Ctrl-C on {host_name()}"
        except TilefarmError as e:
            why = str(e)
        except Exception as e:  # a fault of ours: it must not cost the report of a whole night
            log.exception("unexpected", run=run_id)
            why = f"{type(e).__name__}: {e}"
        say(f"warning: not all was confirmed: {why}")
        return self._told(self._kept(confirming.so_far(why)))

    def _told(self, confirmation: Confirmation) -> Confirmation:
        names = {d.device_id: d.name for d in self._fleet.devices}
        for duel in confirmation.duels:
            say(duel_line(duel, f"{names.get(duel.wanted.device_id, '')} {duel.wanted.case_id}".strip()))
        return confirmation

    def _kept(self, confirmation: Confirmation) -> Confirmation:
        write_atomically(self._folder.path / CONFIRMATION, to_json(confirmation))
        return confirmation


class Ticker:
    """Called while the second look waits: private workers that died are started again, and the farm hears
    that the run is still carried out."""

    def __init__(self, folder: RunFolder, fleet: Fleet, now: Callable[[], float] = time.monotonic) -> None:
        self._fleet = fleet
        self._now = now
        self._tell_at = now()
        self._state: RunState | None = None
        with suppress(BrokerUnavailable):
            self._state = last_known(fleet.broker, folder.manifest())

    def __call__(self) -> None:
        self._fleet.revive()
        if self._state is None or self._now() < self._tell_at:
            return
        self._tell_at = self._now() + TELL_EVERY_S
        with suppress(BrokerUnavailable):
            self._fleet.broker.publish(replace(self._state, updated_at=utc_now()))


def duel_line(duel: Duel, device: str) -> str:
    """``phone-1: different: +5.2 % (+4.1 % to +6.3 %), 16 of 16 pairs, GPU clock``"""
    if not duel.pairs:
        return f"{device}: unknown: {duel.why}"
    interval = f"{_change(duel.low)} to {_change(duel.high)}"
    clock = {"gpu": "GPU timer", "wall": "wall clock", "": "no clock"}[duel.clock]
    why = f"; {duel.why}" if duel.why else ""
    return (
        f"{device}: {duel.answer}: {_change(duel.effect)} ({interval}), p = {duel.p:.2g}, "
        f"{duel.valid} of {duel.pairs} pairs count, {clock}{why}"
    )


def _change(effect: float) -> str:
    """Of a log ratio: per cent, and a factor from twice as slow on."""
    if not isfinite(effect):
        return "no limit" if isinf(effect) else "no effect known"
    more = expm1(min(effect, 700.0))
    return f"×{1 + more:.3g}" if more > 1 else f"{more:+.1%}"

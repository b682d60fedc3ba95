"""From a run's folder to its report: dispatch what is left with live progress; used by run and resume."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import typer
from rich.console import Console

from orchestrator.cli.confirm import OnTheFarm
from orchestrator.cli.ending import EXIT_INTERRUPTED, tell_end, tell_interrupted
from orchestrator.cli.finish import Finished, finish_run
from orchestrator.cli.fleet import Fleet
from orchestrator.cli.live import LiveProgress
from orchestrator.cli.output import news, say
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import BrokerUnavailable, KernelFolderError
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.execution.dispatch import FARM_GONE_S, FARM_OUTAGE_S, DispatchLimits
from orchestrator.execution.preparation import Preparation
from orchestrator.execution.run import carry_out
from orchestrator.execution.run_folder import RunFolder
from orchestrator.storage.redis_client import shown
from workers.discovery import host_name


def dispatch(
    folder: RunFolder,
    fleet: Fleet,
    settings: Settings,
    planned_s: Mapping[str, float],
    gate: Gate,
    preparation: Preparation | None = None,
    *,
    unattended: bool = False,
) -> Finished:
    """Carry the run out and write its report.

    Args:
        planned_s: device id → estimated seconds, as far as known.
        preparation: of what the folder has no jobs for yet.
        unattended: whoever ends this command does not mean to end the run.

    Raises:
        BrokerUnavailable: Redis went away; says how to complete the run.
        KernelFolderError: a kernel's own code failed in the preparation; the run is ended everywhere.
        typer.Exit: Ctrl-C or SIGTERM, after saying the same.
    """
    run_id = folder.path.name
    manifest = folder.manifest()
    planned = manifest.planned.devices
    names = {d.device_id: f"{d.name} ({d.soc.name})" for d in planned}
    names |= {i: f"any of {len(pool.devices)} {pool.soc}" for i, pool in manifest.pools.items()}
    later = {i: len(preparation.left(i)) if preparation else 0 for i in manifest.wanted}
    counts = {i: len(jobs) + later[i] for i, jobs in folder.unfinished().items()}
    devices = {i: (names[i], count, planned_s.get(i, 0.0)) for i, count in counts.items() if count}
    # A private worker is started again by this command, so that one which stays away is noticed soon.
    farm = DispatchLimits(gone_s=FARM_GONE_S, outage_s=FARM_OUTAGE_S)
    limits = farm if settings.broker else DispatchLimits()
    absent = {} if settings.broker else absent_devices(planned, fleet)
    try:
        # A service's log is read by nobody while it grows; `tilefarm status` and `watch` tell how far it is.
        console = Console(quiet=True) if unattended else news
        with LiveProgress(console, devices, fleet.revive) as watcher:
            results = carry_out(folder, fleet.broker, watcher, settings.out, absent, limits, preparation)
    except KernelFolderError as e:
        with suppress(BrokerUnavailable):
            fleet.broker.cancel(run_id, f"its kernels failed: {str(e).partition(chr(10))[0]}")
        raise
    except KeyboardInterrupt:
        if settings.broker and not unattended:  # private workers end with this command
            why = f"cancelled by Ctrl-C on {host_name()}"
            with suppress(BrokerUnavailable):  # what is queued there runs for nobody, and --resume finds it
                fleet.broker.cancel(run_id, why)
                tell_interrupted(fleet.broker, manifest, why)
        say(f"interrupted; complete it with: tilefarm run --resume {run_id}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BrokerUnavailable as e:
        cause = str(e.__cause__ or e).rstrip(".")
        what = "start Redis again and complete" if settings.broker else "complete"
        raise BrokerUnavailable(
            f"broker {shown(fleet.broker.url)}: {cause}. Results so far are on disk: {what} the run with "
            f"`tilefarm run --resume {run_id}`"
        ) from e
    second_look = OnTheFarm(folder, fleet, settings) if results.run.confirm else None
    finished = finish_run(folder, results, settings, datetime.now(UTC).date(), gate, second_look=second_look)
    if settings.broker:
        with suppress(BrokerUnavailable):  # the report is on disk all the same
            tell_end(fleet.broker, finished)
    return finished


def absent_devices(planned: Sequence[DeviceRecord], fleet: Fleet) -> dict[str, str]:
    """Planned devices without a private worker: nobody else will start one while this command runs."""
    there = {d.device_id for d in fleet.devices}
    reasons = {m.device_id: m.why for m in fleet.missing}
    return {
        d.device_id: reasons.get(d.serial, "not reachable now; connect it and resume again")
        for d in planned
        if d.device_id not in there
    }

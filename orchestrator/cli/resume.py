"""``tilefarm run --resume``: complete a run that was cut off, with what it was started with."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import typer

from orchestrator.cli.dispatch import dispatch
from orchestrator.cli.ending import tell_end
from orchestrator.cli.finish import Finished, finish_run
from orchestrator.cli.fleet import log_folder, open_fleet
from orchestrator.cli.live import LiveProgress
from orchestrator.cli.options import load_all_kernels
from orchestrator.cli.output import news, say
from orchestrator.domain.errors import BrokerUnavailable, UsageError
from orchestrator.domain.event import Progress, Registration
from orchestrator.domain.gate import Gate
from orchestrator.domain.job import Batch
from orchestrator.domain.names import Lane
from orchestrator.domain.results import RunResults
from orchestrator.domain.run_state import RunState
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.execution.broker import Broker
from orchestrator.execution.preparation import Preparation
from orchestrator.execution.run import carry_out, go_on_preparing
from orchestrator.execution.run_folder import RunFolder, find_run, load_results
from orchestrator.execution.spirv import cache_folder

FIXED = {
    "suite": "--suite",
    "matrix": "--matrix",
    "kernels": "--kernels",
    "select": "-k",
    "case": "--case",
    "device": "--device",
    "set_": "--set",
    "probes": "--no-probes",
    "confirm": "--no-confirm",
    "phones": "--phones",
    "nightly": "--nightly",
}
"""Parameters of ``tilefarm run`` that a resumed run has already."""


def refuse_fixed(context: typer.Context) -> None:
    """
    Raises:
        UsageError: an option was given that a resumed run would ignore.
    """
    given = [
        option
        for name, option in FIXED.items()
        if (source := context.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
    ]
    if given:
        raise UsageError(
            f"--resume completes a run as it was planned: leave out {', '.join(given)}, or start a new run"
        )


def resumable(out: Path, name: str) -> RunFolder:
    """The run to complete; ``latest`` is the newest that was started, whether or not it ended."""
    if name != "latest":
        return RunFolder(find_run(out, name))
    started = sorted(p.parent for p in (out / "runs").glob("*/manifest.json"))
    if not started:
        raise UsageError(f"--resume latest: no run was started in {out / 'runs'}")
    return RunFolder(started[-1].resolve())


def resume_run(settings: Settings, name: str, gate: Gate, *, unattended: bool = False) -> Finished:
    """Dispatch what has no verdict yet, on the devices that it was planned for; then the report.

    With nothing left the report is written again, and an ended run's results stay as they are.

    Args:
        unattended: nobody decided to go on with it after it was cancelled, or to wait for a device again.
    """
    folder = resumable(settings.out, name)
    manifest = folder.manifest()
    preparation = _preparation(folder, settings)
    later = {t: len(preparation.left(t)) if preparation else 0 for t in manifest.wanted}
    counts = {target: len(jobs) + later[target] for target, jobs in folder.unfinished().items()}
    left = {target: count for target, count in counts.items() if count}
    say(f"run {folder.path.name}: {sum(left.values())} trials left")
    if not left:
        return _ended(folder, settings, gate)
    pools = manifest.pools
    needed = {i for target in left for i in (pools[target].devices if target in pools else [target])}
    wanted = [d.serial for d in manifest.planned.devices if d.device_id in needed]
    with ExitStack() as stack:
        if preparation is not None:
            stack.callback(preparation.stop)
        logs = log_folder(settings, folder.path.name)
        fleet = stack.enter_context(open_fleet(settings, wanted, logs, say))
        if not unattended:
            fleet.broker.go_on(folder.path.name)
        for lost in fleet.missing:
            say(f"warning: {lost.device_id}: {lost.why}")
        return dispatch(folder, fleet, settings, {}, gate, preparation, unattended=unattended)


def _preparation(folder: RunFolder, settings: Settings) -> Preparation | None:
    """Of what was not prepared when the run was cut off, where its kernels are still the same."""
    manifest = folder.manifest()
    unprepared = sum(len(waiting) for waiting in manifest.unprepared.values())
    if not unprepared:
        return None
    loaded = load_all_kernels([Path(k) for k in manifest.planned.run.kernels])
    preparation = go_on_preparing(folder, loaded, cache_folder(settings))
    if preparation is None:
        say(f"warning: {unprepared} cases stay missing: the kernels are others than when the run was begun")
    return preparation


def _ended(folder: RunFolder, settings: Settings, gate: Gate) -> Finished:
    """Report of a run with all its trials; results.json is written when a crash came just before."""
    results = load_results(folder.path) if folder.results_json.is_file() else None
    if results is None or not results.run.finished_at:
        return close_run(folder, settings, gate)
    return _reported(folder, results, settings, gate)


def close_run(folder: RunFolder, settings: Settings, gate: Gate, why: str = "") -> Finished:
    """The report of what is on disk, without a farm; what has no result is missing, because of ``why``."""
    given_up = dict.fromkeys(folder.unfinished(), why)
    with LiveProgress(news, {}, lambda: None) as watcher:
        results = carry_out(folder, _NothingToSend(settings.broker), watcher, settings.out, given_up)
    return _reported(folder, results, settings, gate)


def _reported(folder: RunFolder, results: RunResults, settings: Settings, gate: Gate) -> Finished:
    finished = finish_run(folder, results, settings, datetime.now(UTC).date(), gate)
    if settings.broker:
        with suppress(BrokerUnavailable), closing(Broker(settings.broker)) as broker:
            tell_end(broker, finished)
    return finished


class _NothingToSend:
    """The farm of a run that needs no device any more."""

    def __init__(self, broker: str) -> None:
        self._broker = broker

    def epoch(self) -> str:
        return "none"

    def publish(self, state: RunState) -> None:
        del state

    def runs(self) -> Sequence[RunState]:
        return ()

    def registrations(self) -> Mapping[str, Registration]:
        return {}

    def send(self, batch: Batch, lane: Lane) -> None:
        raise AssertionError(f"{batch.device_id}: nothing was left to send to it ({lane})")

    def cancelled(self, run_id: str) -> str:
        del run_id
        return ""

    def given_up(self, run_id: str) -> Mapping[str, str]:
        del run_id
        return {}

    def whereabouts(self, device_id: str) -> str:
        del device_id
        return ""

    def degraded(self, device_ids: Iterable[str], since: str) -> Sequence[str]:
        if not self._broker:
            return ()
        with closing(Broker(self._broker)) as broker:
            return broker.degraded(device_ids, since)

    def events(self, run_id: str, after: str, block_ms: int) -> Iterator[tuple[str, Trial | Progress]]:
        yield from ()

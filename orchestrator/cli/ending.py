"""A run's last words to its farm, for those who watch it from elsewhere."""

from dataclasses import replace

from orchestrator.cli.finish import Finished
from orchestrator.domain.moment import utc_now
from orchestrator.domain.run_state import RunState, Target
from orchestrator.execution.broker import Broker
from orchestrator.execution.run_folder import Manifest, RunFolder
from workers.discovery import host_name

EXIT_INTERRUPTED = 130


def tell_end(broker: Broker, finished: Finished) -> None:
    """Verdict, exit code and report.

    Raises:
        BrokerUnavailable: the farm's Redis does not answer.
    """
    manifest = finished.folder.manifest()
    why = broker.cancelled(manifest.planned.run.run_id)
    broker.publish(
        replace(
            last_known(broker, manifest),
            phase="cancelled" if why else "finished",
            why=why,
            verdict=finished.summary.sentence,
            exit_code=finished.summary.exit_code,
            report=str(finished.reports.index.resolve()),
            targets=_targets(finished.folder, manifest),
        )
    )


def tell_interrupted(broker: Broker, manifest: Manifest, why: str) -> None:
    """Ctrl-C ended it before there was a report.

    Raises:
        BrokerUnavailable: the farm's Redis does not answer.
    """
    broker.publish(
        replace(last_known(broker, manifest), phase="cancelled", why=why, exit_code=EXIT_INTERRUPTED)
    )


def _targets(folder: RunFolder, manifest: Manifest) -> list[Target]:
    """Of the whole run: its dispatcher told of what was left when it began, and some seconds ago."""
    counted = {(trial.target, trial.case_id) for trial in folder.trials().values()}
    devices = {d.device_id: d for d in manifest.planned.devices}
    found: list[Target] = []
    for target, jobs in manifest.wanted.items():
        done = sum((target, job.case_id) in counted for job in jobs)
        pool, total = manifest.pools.get(target), len(jobs) + len(manifest.unprepared.get(target, ()))
        if pool is not None:
            name = f"any of {len(pool.devices)} {pool.soc}"
            found.append(Target("", pool.soc, name, total, done, total - done, devices=pool.devices))
        else:
            soc, name = devices[target].soc.name, devices[target].name
            found.append(Target(target, soc, name, total, done, total - done, devices=[target]))
    return found


def last_known(broker: Broker, manifest: Manifest) -> RunState:
    """As the dispatcher has told, or from what was planned."""
    run = manifest.planned.run
    told = next((state for state in broker.runs() if state.run_id == run.run_id), None)
    if told is None:
        now, host = utc_now(), host_name()
        user, lane = manifest.user, manifest.lane
        return RunState(run.run_id, run.suite, user, lane, "running", run.started_at, now, host)
    return replace(told, updated_at=utc_now(), host=host_name())

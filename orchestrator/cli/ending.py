"""A run's last words to its farm, for those who watch it from elsewhere."""

from dataclasses import replace

from orchestrator.cli.finish import Finished
from orchestrator.domain.run_state import RunState
from orchestrator.execution.broker import Broker
from orchestrator.execution.run import utc_now
from orchestrator.execution.run_folder import Manifest
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
            _last_known(broker, manifest),
            phase="cancelled" if why else "finished",
            why=why,
            verdict=finished.summary.sentence,
            exit_code=finished.summary.exit_code,
            report=str(finished.reports.index.resolve()),
        )
    )


def tell_interrupted(broker: Broker, manifest: Manifest, why: str) -> None:
    """Ctrl-C ended it before there was a report.

    Raises:
        BrokerUnavailable: the farm's Redis does not answer.
    """
    broker.publish(
        replace(_last_known(broker, manifest), phase="cancelled", why=why, exit_code=EXIT_INTERRUPTED)
    )


def _last_known(broker: Broker, manifest: Manifest) -> RunState:
    """As the dispatcher has told, or from what was planned."""
    run = manifest.planned.run
    told = next((state for state in broker.runs() if state.run_id == run.run_id), None)
    if told is None:
        now, host = utc_now(), host_name()
        user, lane = manifest.user, manifest.lane
        return RunState(run.run_id, run.suite, user, lane, "running", run.started_at, now, host)
    return replace(told, updated_at=utc_now(), host=host_name())

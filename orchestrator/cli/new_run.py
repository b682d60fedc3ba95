"""A new run, from its options to its report."""

from contextlib import ExitStack

from orchestrator.cli.dispatch import dispatch
from orchestrator.cli.finish import Finished
from orchestrator.cli.fleet import log_folder, open_fleet
from orchestrator.cli.output import say
from orchestrator.cli.prepare import Wanted, begin, check
from orchestrator.domain.settings import Settings


def new_run(settings: Settings, wanted: Wanted, run_id: str, *, unattended: bool) -> Finished:
    """
    Raises:
        MatrixError, KernelFolderError, UsageError: what is wanted is wrong.
        InfraError: there is no device, or the farm failed.
    """
    checked = check(wanted)
    say(f"run {run_id}")
    with ExitStack() as stack:
        logs = log_folder(settings, run_id)
        fleet = stack.enter_context(open_fleet(settings, wanted.device, logs, say))
        folder, plan, preparation = begin(checked, fleet, settings, run_id)
        stack.callback(preparation.stop)
        planned_s = {d.device.device_id: d.seconds for d in plan.devices}
        return dispatch(folder, fleet, settings, planned_s, wanted.gate, preparation, unattended=unattended)

"""`tilefarm run` in the order of `tilefarm submit`: everything is prepared before anything is dispatched.

    python -m benchmarks.prepared_first SUITE [SELECTION]

For benchmarks.utilisation, which compares the two.
"""

import sys
from contextlib import ExitStack
from pathlib import Path

from orchestrator.cli.dispatch import dispatch
from orchestrator.cli.fleet import log_folder, open_fleet
from orchestrator.cli.output import say
from orchestrator.cli.prepare import Wanted, check, prepare
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.execution.run_folder import new_run_id


def main() -> int:
    suite, select = sys.argv[1], sys.argv[2] if sys.argv[2:] else None
    settings, run_id = Settings(), new_run_id(suite)
    wanted = Wanted(
        suite=suite,
        matrix=Path("matrix.yaml"),
        kernels=[],
        select=select,
        case=[],
        device=[],
        overrides=[],
        gate=Gate(),
        probes=True,
        phones=None,
        nightly=False,
    )
    checked = check(wanted)
    with ExitStack() as stack:
        fleet = stack.enter_context(open_fleet(settings, [], log_folder(settings, run_id), say))
        folder, plan = prepare(checked, fleet, settings, run_id, settings.out)
        planned_s = {d.device.device_id: d.seconds for d in plan.devices}
        return dispatch(folder, fleet, settings, planned_s, Gate()).summary.exit_code


if __name__ == "__main__":
    sys.exit(main())

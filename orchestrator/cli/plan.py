"""``tilefarm plan``: what would run where, what was dropped and why, and how long it should take."""

import json
import tempfile
from collections import Counter
from pathlib import Path

import typer
from rich.table import Table

from orchestrator.analysis.summary import EXIT_INFRA, EXIT_OK
from orchestrator.cli.fleet import open_fleet
from orchestrator.cli.options import (
    CaseOption,
    DeviceOption,
    JsonOption,
    KernelsOption,
    MatrixOption,
    SelectOption,
    SetOption,
    SuiteOption,
    load_inputs,
)
from orchestrator.cli.output import duration_text, print_json, result, say
from orchestrator.cli.selection import check_selection
from orchestrator.domain.results import Missing
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import previous_results
from orchestrator.planning.plan import Plan, build_plan
from reports.text import visible


def plan(
    suite: SuiteOption = "smoke",
    matrix: MatrixOption = Path("matrix.yaml"),
    kernels: KernelsOption = None,
    select: SelectOption = None,
    case: CaseOption = None,
    device: DeviceOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would do, without dispatching anything.

    Example: tilefarm plan --suite smoke -k 'tile=128x16' --device local
    """
    settings = Settings()
    inputs = load_inputs(matrix, kernels)
    selection = check_selection(inputs, suite, select, case, set_)
    with (
        tempfile.TemporaryDirectory(prefix="tilefarm-logs-") as logs,
        open_fleet(settings, device or [], Path(logs), say) as fleet,
    ):
        devices, missing = fleet.devices, fleet.missing
    planned = build_plan(
        inputs.matrix,
        suite,
        inputs.kernels,
        devices,
        selection=selection,
        overrides=set_ or [],
        history=previous_results(settings.out, suite, "~"),
    )
    if as_json:
        print_json(_document(planned, missing))
    else:
        _print(planned, missing)
    raise typer.Exit(EXIT_INFRA if missing else EXIT_OK)


def _document(planned: Plan, missing: list[Missing]) -> dict[str, object]:
    return {
        "suite": planned.suite.name,
        "seconds": round(planned.seconds, 3),
        "devices": [
            {
                "device_id": d.device.device_id,
                "soc": d.device.soc.name,
                "seconds": round(d.seconds, 3),
                "guessed": d.guessed,
                "cases": [{"case_id": c.case_id, "label": c.case.label} for c in d.cases],
            }
            for d in planned.devices
        ],
        "pruned": [json.loads(to_json(p)) for p in planned.pruned],
        "excluded": [json.loads(to_json(e)) for e in planned.excluded],
        "missing": [{"device": m.device_id, "why": m.why} for m in missing],
        "warnings": planned.warnings,
    }


def _print(planned: Plan, missing: list[Missing]) -> None:
    for warning in planned.warnings:
        say(f"warning: {visible(warning)}")
    for lost in missing:
        say(f"{visible(lost.device_id)}: cannot be used: {visible(lost.why)}")
    for device in planned.devices:
        kernels = Counter(c.case.kernel for c in device.cases)
        counts = ", ".join(f"{n} {kernel}" for kernel, n in kernels.items()) or "nothing"
        basis = f", {device.guessed} times guessed" if device.guessed else ""
        result.print(
            f"{visible(device.device.device_id)} ({visible(device.device.soc.name)}): {counts}; "
            f"about {duration_text(device.seconds)}{basis}",
            markup=False,
            soft_wrap=True,
        )
        for case in device.cases:
            result.print(f"  {case.case_id}  {case.case.label}", markup=False, soft_wrap=True)
    table = Table("device", "pruned", "why", box=None, pad_edge=False)
    for pruned in planned.pruned:
        label = planned.cases[pruned.case_id].label
        table.add_row(pruned.device_id, label, "; ".join(pruned.reasons))
    if planned.pruned:
        result.print(table, markup=False)
    for gone in planned.excluded:
        result.print(
            f"excluded {gone.count}: {gone.when} ({gone.reason}; {gone.owner}, until {gone.expires})",
            markup=False,
            soft_wrap=True,
        )

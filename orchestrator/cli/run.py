"""``tilefarm run``: the main job, and ``--resume`` of one that was cut off."""

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.dispatch import dispatch
from orchestrator.cli.fleet import Fleet, log_folder, open_fleet
from orchestrator.cli.options import (
    CaseOption,
    DeviceOption,
    Inputs,
    JsonOption,
    KernelsOption,
    MatrixOption,
    MaxSlowdownOption,
    PhonesOption,
    ProbesOption,
    SelectOption,
    SetOption,
    SuiteOption,
    load_inputs,
    phones_wanted,
)
from orchestrator.cli.output import duration_text, news, say
from orchestrator.cli.person import person
from orchestrator.cli.resume import refuse_fixed, resume_run
from orchestrator.cli.selection import check_selection
from orchestrator.domain.settings import Settings
from orchestrator.execution.run import Asked, Request, start_run
from orchestrator.execution.run_folder import RunFolder, new_run_id, previous_results
from orchestrator.execution.spirv import cache_folder
from orchestrator.planning.plan import Plan, build_plan


def run(
    context: typer.Context,
    suite: SuiteOption = "smoke",
    matrix: MatrixOption = Path("matrix.yaml"),
    kernels: KernelsOption = None,
    select: SelectOption = None,
    case: CaseOption = None,
    device: DeviceOption = None,
    set_: SetOption = None,
    resume: Annotated[
        str | None, typer.Option("--resume", help="Complete the run with this id ('latest' works).")
    ] = None,
    max_slowdown: MaxSlowdownOption = None,
    probes: ProbesOption = True,
    phones: PhonesOption = None,
    nightly: Annotated[bool, typer.Option("--nightly", help="Queue behind on-demand runs.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a suite on every device and write the report.

    Exit code: 0 all passed, pruned or known to fail; 1 a kernel is wrong, or slower than --max-slowdown;
    2 usage or matrix error; 3 infrastructure kept results from being obtained.

    Example: tilefarm run -k 'attention_flash and precision=fp32' --device local
    """
    settings = Settings()
    if resume is not None:
        refuse_fixed(context)
        finished = resume_run(settings, resume, max_slowdown)
    else:
        inputs = load_inputs(matrix, kernels)
        selection = check_selection(inputs, suite, select, case, set_, probes=probes)
        run_id = new_run_id(suite)
        say(f"run {run_id}")
        with ExitStack() as stack:
            logs = log_folder(settings, run_id)
            fleet = stack.enter_context(open_fleet(settings, device or [], logs, say))
            fleet.require_devices()
            history = previous_results(settings.out, suite, run_id)
            plan = build_plan(
                inputs.matrix,
                suite,
                inputs.kernels,
                fleet.devices,
                selection=selection,
                overrides=set_ or [],
                history=history,
                probes=probes,
                phones=phones_wanted(phones, device),
                seed=run_id,
            )
            for warning in plan.warnings:
                say(f"warning: {warning}")
            asked = Asked(
                matrix="" if matrix == Path("matrix.yaml") else str(matrix),
                kernels=tuple(str(k) for k in kernels or []),
                selection=selection or "",
                overrides=tuple(set_ or []),
                wanted=tuple(device or []),
                max_slowdown=max_slowdown,
                probes=probes,
            )
            folder = _start(plan, inputs, fleet, settings, run_id, asked, nightly=nightly)
            planned_s = {d.device.device_id: d.seconds for d in plan.devices}
            finished = dispatch(folder, fleet, settings, planned_s, max_slowdown)
    finished.print(as_json=as_json)
    raise typer.Exit(finished.summary.exit_code)


def _start(
    plan: Plan, inputs: Inputs, fleet: Fleet, settings: Settings, run_id: str, asked: Asked, *, nightly: bool
) -> RunFolder:
    for lost in fleet.missing:
        say(f"warning: {lost.device_id}: {lost.why}")
    say(
        f"{plan.trials} trials on {len(plan.devices)} devices, about {duration_text(plan.seconds)}; preparing"
    )
    request = Request(
        run_id=run_id,
        out=settings.out,
        blob_store=settings.blob_store(),
        lane="nightly" if nightly else "ondemand",
        command=shlex.join(["tilefarm", *sys.argv[1:]]),
        missing=fleet.missing,
        spirv_cache=cache_folder(settings),
        asked=asked,
        user=person(),
    )
    doing = "rendering shaders and computing references"
    with news.status(doing) as status:
        return start_run(plan, inputs.loaded, request, lambda done: status.update(f"{doing}: {done} cases"))

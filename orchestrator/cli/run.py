"""``tilefarm run``: the main job, and ``--resume`` of one that was cut off."""

import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.finish import Finished, finish_run
from orchestrator.cli.fleet import Fleet, open_fleet
from orchestrator.cli.live import LiveProgress
from orchestrator.cli.options import (
    CaseOption,
    DeviceOption,
    Inputs,
    JsonOption,
    KernelsOption,
    MatrixOption,
    SelectOption,
    SetOption,
    SuiteOption,
    load_inputs,
)
from orchestrator.cli.output import news, say
from orchestrator.cli.selection import with_cases
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import UsageError
from orchestrator.domain.settings import Settings
from orchestrator.execution.run import Asked, Request, carry_out, start_run
from orchestrator.execution.run_folder import RunFolder, find_run, new_run_id, previous_results
from orchestrator.planning.plan import Plan, build_plan

EXIT_INTERRUPTED = 130


def run(
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
    max_slowdown: Annotated[
        float | None,
        typer.Option(
            "--max-slowdown", help="Exit 1 when a case got slower than the last run by this factor."
        ),
    ] = None,
    nightly: Annotated[bool, typer.Option("--nightly", help="Queue behind on-demand runs.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a suite on every device and write the report.

    Exit code: 0 all passed, pruned or known to fail; 1 a kernel is wrong, or slower than --max-slowdown;
    2 usage or matrix error; 3 infrastructure kept results from being obtained.

    Example: tilefarm run -k 'attention_flash and precision=fp32' --device local
    """
    settings = Settings()
    if max_slowdown is not None and not max_slowdown > 1:
        raise UsageError(f"--max-slowdown {max_slowdown}: a factor above 1, e.g. 1.10 for ten per cent")
    if resume is not None:
        finished = _resume(settings, resume, max_slowdown)
    else:
        inputs = load_inputs(matrix, kernels)
        inputs.matrix.suite(suite)
        run_id = new_run_id(suite)
        with ExitStack() as stack:
            logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tilefarm-logs-")))
            fleet = stack.enter_context(open_fleet(settings, device or [], logs, say))
            fleet.require_devices()
            history = previous_results(settings.out, suite, run_id)
            plan = build_plan(
                inputs.matrix,
                suite,
                inputs.kernels,
                fleet.devices,
                selection=with_cases(select, case),
                overrides=set_ or [],
                history=history,
            )
            for warning in plan.warnings:
                say(f"warning: {warning}")
            asked = Asked(
                matrix="" if matrix == Path("matrix.yaml") else str(matrix),
                kernels=tuple(str(k) for k in kernels or []),
                selection=with_cases(select, case) or "",
                overrides=tuple(set_ or []),
                wanted=tuple(device or []),
                max_slowdown=max_slowdown,
            )
            folder = _start(plan, inputs, fleet, settings, run_id, asked, nightly=nightly)
            finished = _dispatch(folder, fleet, settings, plan, max_slowdown)
    finished.print(as_json=as_json)
    raise typer.Exit(finished.summary.exit_code)


def _start(
    plan: Plan, inputs: Inputs, fleet: Fleet, settings: Settings, run_id: str, asked: Asked, *, nightly: bool
) -> RunFolder:
    for lost in fleet.missing:
        say(f"warning: {lost.device_id}: {lost.why}")
    say(f"{plan.trials} trials on {len(plan.devices)} devices, about {plan.seconds:.0f} s; preparing")
    request = Request(
        run_id=run_id,
        out=settings.out,
        blob_store=settings.blob_store(),
        lane="nightly" if nightly else "ondemand",
        command=shlex.join(["tilefarm", *sys.argv[1:]]),
        missing=fleet.missing,
        asked=asked,
    )
    with news.status("rendering shaders and computing references"):
        return start_run(plan, inputs.loaded, request, lambda _done: None)


def _dispatch(
    folder: RunFolder, fleet: Fleet, settings: Settings, plan: Plan | None, max_slowdown: float | None
) -> Finished:
    manifest = folder.manifest()
    waiting = folder.unfinished()
    planned_s = {d.device.device_id: d.seconds for d in plan.devices} if plan else {}
    names = {d.device_id: f"{d.name} ({d.soc.name})" for d in manifest.planned.devices}
    devices = {i: (names[i], len(jobs), planned_s.get(i, 0.0)) for i, jobs in waiting.items()}
    try:
        with LiveProgress(news, devices, fleet.revive) as watcher:
            absent = {} if settings.broker else absent_devices(manifest.planned.devices, fleet)
            results = carry_out(folder, fleet.broker, watcher, settings.out, absent)
    except KeyboardInterrupt:
        say(f"interrupted; complete it with: tilefarm run --resume {folder.path.name}")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    return finish_run(folder, results, settings.out, datetime.now(UTC).date(), max_slowdown)


def absent_devices(planned: Sequence[DeviceRecord], fleet: Fleet) -> dict[str, str]:
    """Planned devices without a private worker: nobody else will start one while this command runs."""
    there = {d.device_id for d in fleet.devices}
    reasons = {m.device_id: m.why for m in fleet.missing}
    return {
        d.device_id: reasons.get(d.serial, "not reachable now; connect it and resume again")
        for d in planned
        if d.device_id not in there
    }


def _resume(settings: Settings, name: str, max_slowdown: float | None) -> Finished:
    folder = RunFolder(find_run(settings.out, name))
    manifest = folder.manifest()
    wanted = [d.serial if d.transport == "adb" else "local" for d in manifest.planned.devices]
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tilefarm-logs-")))
        fleet = stack.enter_context(open_fleet(settings, wanted, logs, say))
        left = sum(len(jobs) for jobs in folder.unfinished().values())
        say(f"{folder.path.name}: {left} trials left")
        return _dispatch(folder, fleet, settings, None, max_slowdown)

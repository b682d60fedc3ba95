"""``tilefarm run``: the main job, and ``--resume`` of one that was cut off."""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.artifacts import check_room, copy_report
from orchestrator.cli.github import tell_github
from orchestrator.cli.new_run import new_run
from orchestrator.cli.night import run_night
from orchestrator.cli.options import (
    ArtifactsOption,
    CaseOption,
    ConfirmOption,
    DeviceOption,
    FailOnOption,
    GithubOption,
    JsonOption,
    KernelsOption,
    MatrixOption,
    MaxSlowdownOption,
    NightlyOption,
    PhonesOption,
    ProbesOption,
    SelectOption,
    SetOption,
    SuiteOption,
)
from orchestrator.cli.prepare import Wanted
from orchestrator.cli.resume import refuse_fixed, resume_run
from orchestrator.domain.gate import Gate
from orchestrator.domain.settings import Settings
from orchestrator.execution.run_folder import new_run_id


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
    fail_on: FailOnOption = None,
    probes: ProbesOption = True,
    confirm: ConfirmOption = True,
    phones: PhonesOption = None,
    nightly: NightlyOption = False,
    unattended: Annotated[
        bool,
        typer.Option(
            "--unattended",
            help="For services: ending this command does not cancel the run in the farm, and --resume leaves "
            "a cancelled one cancelled.",
        ),
    ] = False,
    night: Annotated[
        str | None,
        typer.Option("--night", hidden=True, help="For the orchestrator: carry out this recorded night."),
    ] = None,
    artifacts: ArtifactsOption = None,
    github: GithubOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a suite on every device and write the report.

    Exit code: 0 all passed, pruned or known to fail; 1 a kernel is wrong, or slower than --max-slowdown, or
    what --fail-on says;
    2 usage or matrix error; 3 infrastructure kept results from being obtained.

    Example: tilefarm run -k 'attention_flash and precision=fp32' --device local
    """
    settings, gate = Settings(), Gate(max_slowdown, fail_on)
    check_room(artifacts)
    if resume is not None:
        refuse_fixed(context)
        finished = resume_run(settings, resume, gate, unattended=unattended)
    else:
        wanted = Wanted(
            suite=suite,
            matrix=matrix,
            kernels=kernels or [],
            select=select,
            case=case or [],
            device=device or [],
            overrides=set_ or [],
            gate=gate,
            probes=probes,
            confirm=confirm,
            phones=phones,
            nightly=nightly or night is not None,
        )
        if night is not None:
            finished = run_night(settings, night, wanted)
        else:
            finished = new_run(settings, wanted, new_run_id(suite), unattended=unattended)
    copy_report(finished.folder.path, artifacts)  # first: who reads the answer may leave early
    tell_github(finished, github)
    finished.print(as_json=as_json)
    raise typer.Exit(finished.summary.exit_code)

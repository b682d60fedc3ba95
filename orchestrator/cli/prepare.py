"""From options to a run's folder, with all that its workers need: the same for run and submit."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.status import Status

from orchestrator.cli.fleet import Fleet
from orchestrator.cli.options import Inputs, load_inputs, phones_wanted
from orchestrator.cli.output import duration_text, news, say
from orchestrator.cli.person import person
from orchestrator.cli.selection import check_selection
from orchestrator.domain.errors import UsageError
from orchestrator.domain.gate import Gate
from orchestrator.domain.names import Lane
from orchestrator.domain.night import NightRecord
from orchestrator.domain.results import Missing
from orchestrator.domain.settings import Settings
from orchestrator.execution.preparation import Preparation
from orchestrator.execution.roll_call import Rolls
from orchestrator.execution.run import Asked, Request, begin_run, start_run
from orchestrator.execution.run_folder import RunFolder, previous_results
from orchestrator.execution.spirv import cache_folder
from orchestrator.planning.plan import Plan, build_plan


@dataclass(frozen=True, slots=True)
class Wanted:
    """Options that choose what runs where."""

    suite: str
    matrix: Path
    kernels: list[Path]
    select: str | None
    case: list[str]
    device: list[str]
    overrides: list[str]
    gate: Gate
    probes: bool
    phones: int | None
    nightly: bool
    confirm: bool = True
    night: NightRecord | None = None
    """Of which it is the run."""

    @property
    def whole_suite(self) -> bool:
        """On all devices that there are."""
        return not (self.select or self.case or self.overrides or self.device)

    @property
    def lane(self) -> Lane:
        return "nightly" if self.nightly else "ondemand"


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wanted, found to be right before any device is opened."""

    wanted: Wanted
    inputs: Inputs
    selection: str | None


def check(wanted: Wanted) -> Checked:
    """
    Raises:
        MatrixError, KernelFolderError, UsageError: everything that is wrong with it.
    """
    if wanted.gate.fail_on == "regressed" and (wanted.select or wanted.case or wanted.overrides):
        raise UsageError(
            "--fail-on regressed: only whole suites are held against the history; leave out -k, --case and "
            "--set, or this option"
        )
    inputs = load_inputs(wanted.matrix, wanted.kernels)
    selection = check_selection(
        inputs, wanted.suite, wanted.select, wanted.case, wanted.overrides, probes=wanted.probes
    )
    return Checked(wanted, inputs, selection)


def prepare(
    checked: Checked, fleet: Fleet, settings: Settings, run_id: str, out: Path
) -> tuple[RunFolder, Plan]:
    """Plan for the fleet's devices, render shaders, compute references, and make the run's folder in ``out``.

    Raises:
        InfraError: there is no device.
        KernelFolderError: a kernel's own code failed.
    """
    plan, request = _planned(checked, fleet, settings, run_id, out)
    doing = "rendering shaders and computing references"
    with news.status(doing) as status:
        folder = start_run(plan, checked.inputs.loaded, request, _told(status, doing))
    return folder, plan


def begin(
    checked: Checked, fleet: Fleet, settings: Settings, run_id: str
) -> tuple[RunFolder, Plan, Preparation]:
    """Plan for the fleet's devices and make the run's folder; shaders and references are made while devices
    work on what is ready.

    Raises:
        InfraError: there is no device.
        KernelFolderError: a kernel's own code failed.
    """
    plan, request = _planned(checked, fleet, settings, run_id, settings.out)
    folder, preparation = begin_run(plan, checked.inputs.loaded, request)
    return folder, plan, preparation


def _told(status: Status, doing: str) -> Callable[[int], None]:
    return lambda done: status.update(f"{doing}: {done} cases")


def _planned(
    checked: Checked, fleet: Fleet, settings: Settings, run_id: str, out: Path
) -> tuple[Plan, Request]:
    wanted, inputs = checked.wanted, checked.inputs
    if wanted.night is not None and wanted.whole_suite:
        fleet.missing += _roll_call(fleet, Rolls(settings.out), wanted.suite, run_id)
    fleet.require_devices()
    plan = build_plan(
        inputs.matrix,
        wanted.suite,
        inputs.kernels,
        fleet.devices,
        selection=checked.selection,
        overrides=wanted.overrides,
        history=previous_results(settings.out, wanted.suite, run_id),
        probes=wanted.probes,
        phones=phones_wanted(wanted.phones, wanted.device),
        seed=run_id,
    )
    for warning in [*plan.warnings, *(f"{lost.device_id}: {lost.why}" for lost in fleet.missing)]:
        say(f"warning: {warning}")
    say(
        f"{plan.trials} trials on {len(plan.devices)} devices, about {duration_text(plan.seconds)}; preparing"
    )
    request = Request(
        run_id=run_id,
        out=out,
        blob_store=settings.blob_store(),
        lane=wanted.lane,
        command=shlex.join(["tilefarm", *sys.argv[1:]]),
        missing=fleet.missing,
        spirv_cache=cache_folder(settings),
        asked=_asked(checked),
        user=person(),
    )
    return plan, request


def _roll_call(fleet: Fleet, rolls: Rolls, suite: str, run_id: str) -> list[Missing]:
    """Phones of the last nights that are not there tonight; those that are there are expected from now on."""
    now = datetime.now(UTC)
    roll = rolls.get(suite)
    there = {d.device_id for d in fleet.devices}
    absent = roll.absent(there, {m.device_id for m in fleet.missing}, now, fleet.broker.whereabouts)
    rolls.put(suite, roll.after(fleet.devices, run_id, now.isoformat(timespec="seconds")))
    return absent


def _asked(checked: Checked) -> Asked:
    wanted = checked.wanted
    return Asked(
        matrix="" if wanted.matrix == Path("matrix.yaml") else str(wanted.matrix),
        kernels=tuple(str(k) for k in wanted.kernels),
        selection=checked.selection or "",
        overrides=tuple(wanted.overrides),
        wanted=tuple(wanted.device),
        max_slowdown=wanted.gate.max_slowdown,
        fail_on=wanted.gate.fail_on or "wrong",
        probes=wanted.probes,
        confirm=wanted.confirm,
        night=wanted.night.night if wanted.night is not None else "",
        missed_nights=tuple(wanted.night.missed) if wanted.night is not None else (),
    )

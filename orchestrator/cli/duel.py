"""``tilefarm duel A B``: two codes measured in turns on one device, by hand."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from orchestrator.cli.confirm import FARM_LIMITS, duel_line
from orchestrator.cli.ending import EXIT_INTERRUPTED
from orchestrator.cli.fleet import Fleet, log_folder, open_fleet
from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, result, say
from orchestrator.domain.confirmation import Duel, Wanted
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.errors import InfraError, UsageError
from orchestrator.domain.job import CaseJob
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.duel_jobs import Codes, Manifests, brought_together, canaries_of, job_of
from orchestrator.execution.errands import Errands
from orchestrator.execution.manifest import Manifest
from orchestrator.execution.run_folder import find_run, new_run_id
from reports.text import visible

REPEATS = 5
"""A person at a terminal has no budget of samples."""
EXIT_SAME, EXIT_DIFFERENT, EXIT_UNKNOWN = 0, 1, 3
SideArgument = Annotated[str, typer.Argument(help="Run id, 'latest', RUN:CASE, or a case of the latest run.")]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two codes."""

    run: str
    case_id: str
    manifest: Manifest


def duel(
    a: SideArgument,
    b: SideArgument,
    case: Annotated[
        str | None, typer.Option("--case", help="The case, where A and B are runs of more than one.")
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device", help="Serial, device id, SoC, or 'local'. Repeatable. Default: where B ran."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure two codes in turns, A B B A, on one device: are they different, the same, or is it not known?

    A and B are two runs, whose code of one case is compared, or two cases. Without --device all devices on
    which B ran do it. Effects are those of B beside A: +5 % is slower.

    Exit code: 0 the same on all devices; 1 different on one of them; 2 usage error; 3 not known.

    Example: tilefarm duel 20261130T010000Z-smoke-1a2b latest --case 5d41402abc4b2a76 --device local
    """
    settings = Settings()
    manifests = Manifests(settings.out)
    before, after = (_side(word, case, settings, manifests) for word in (a, b))
    wanted = device or _devices_of(after)
    run_id = new_run_id("duel")
    try:
        with open_fleet(settings, wanted, log_folder(settings, run_id), say) as fleet:
            for lost in fleet.missing:
                say(f"warning: {lost.device_id}: {lost.why}")
            fleet.require_devices()
            duels = _carried_out(run_id, fleet, settings, before, after)
            names = {d.device_id: f"{d.name} ({d.soc.name})" for d in fleet.devices}
    except KeyboardInterrupt:
        say("interrupted; nothing is kept of it")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    code = _exit_code(duels)
    if as_json:
        print_json(_document(before, after, duels, code))
    else:
        result.print(_heading(before, after), markup=False, soft_wrap=True)
        for each in duels:
            result.print(duel_line(each, visible(names[each.wanted.device_id])), markup=False, soft_wrap=True)
    raise typer.Exit(code)


def _side(word: str, case: str | None, settings: Settings, manifests: Manifests) -> Side:
    """
    Raises:
        UsageError: no such run or case, or it is open which case is meant.
        InfraError: the run's jobs are gone.
    """
    run, colon, own = word.partition(":")
    case_id = own if colon else case
    try:
        path = find_run(settings.out, run)
    except UsageError as e:
        if colon or case is not None:
            raise
        try:
            path, case_id = find_run(settings.out, "latest"), word
        except UsageError:
            raise e from None
        if word not in _cases(manifests.of(str(path))):
            raise UsageError(f"{word!r} is neither a run nor a case of run {path.name}: {e}") from e
    manifest = manifests.of(str(path))
    cases = _cases(manifest)
    if case_id is None:
        if len(cases) != 1:
            raise UsageError(
                f"--case: which of the {len(cases)} cases of run {path.name}? Its report names them"
            )
        case_id = cases[0]
    if case_id not in cases:
        raise UsageError(f"run {path.name} has no job of case {case_id!r}; its report names the cases")
    return Side(path.name, case_id, manifest)


def _cases(manifest: Manifest) -> list[str]:
    return list(dict.fromkeys(job.case_id for jobs in manifest.wanted.values() for job in jobs))


def _devices_of(side: Side) -> list[str]:
    """Serials of the devices that ran it."""
    pools = side.manifest.pools
    able = {
        device_id
        for target, jobs in side.manifest.wanted.items()
        if any(job.case_id == side.case_id for job in jobs)
        for device_id in (pools[target].devices if target in pools else [target])
    }
    return [d.serial for d in side.manifest.planned.devices if d.device_id in able]


def _carried_out(run_id: str, fleet: Fleet, settings: Settings, before: Side, after: Side) -> list[Duel]:
    # Loaded only here: their libraries take half a second, and each command loads this file.
    from orchestrator.execution.duel_samples import unanswered
    from orchestrator.execution.duels import Meter, measure_in_turns

    asked: list[tuple[Wanted, Codes]] = []
    refused: list[Duel] = []
    api = job_of(after.manifest, "", after.case_id).api
    able = [record for record in fleet.devices if record.profile(api) is not None]
    if not able:
        raise InfraError(f"none of the devices has a {api} driver that works")
    for record in able:
        wanted = _wanted(record, before, after)
        try:
            asked.append((wanted, _codes(record, before, after)))
        except InfraError as e:
            refused.append(unanswered(wanted, str(e)))
    errands = Errands(
        fleet.broker,
        run_id,
        "ondemand",
        limits=FARM_LIMITS if settings.broker else None,
        on_tick=fleet.revive,
    )
    names = {d.device_id: d.name for d in fleet.devices}

    def tell(found: Duel) -> None:
        say(duel_line(found, visible(names[found.wanted.device_id])))

    return [*measure_in_turns(asked, errands, Meter(), tell, repeats=REPEATS), *refused]


def _wanted(record: DeviceRecord, before: Side, after: Side) -> Wanted:
    codes = (side.manifest.planned.cases[side.case_id].code_hash for side in (before, after))
    return Wanted(record.device_id, after.case_id, "turns", *codes, baseline_run=before.run)


def _codes(record: DeviceRecord, before: Side, after: Side) -> Codes:
    jobs = [_job(record, side) for side in (before, after)]
    return brought_together(
        jobs[0],
        before.manifest.blob_store,
        jobs[1],
        after.manifest.blob_store,
        canaries_of(after.manifest, record.device_id),
    )


def _job(record: DeviceRecord, side: Side) -> CaseJob:
    job = job_of(side.manifest, record.device_id, side.case_id)
    return replace(job, warmup_ms=0) if record.software(job.api) else job


def _exit_code(duels: Sequence[Duel]) -> int:
    answers = {d.answer for d in duels}
    if "different" in answers:
        return EXIT_DIFFERENT
    return EXIT_SAME if answers == {"same"} else EXIT_UNKNOWN


def _heading(before: Side, after: Side) -> str:
    def told(side: Side) -> str:
        info = side.manifest.planned.cases[side.case_id]
        return f"{visible(info.case.label)} [{side.case_id}], code {info.code_hash[:12]}, run {side.run}"

    alike = before.manifest.planned.cases[before.case_id].code_hash == (
        after.manifest.planned.cases[after.case_id].code_hash
    )
    return f"A: {told(before)}\nB: {told(after)}" + ("\nBoth have the same code." if alike else "")


def _document(before: Side, after: Side, duels: Sequence[Duel], code: int) -> dict[str, object]:
    def told(side: Side) -> dict[str, str]:
        info = side.manifest.planned.cases[side.case_id]
        return {
            "run_id": side.run,
            "case_id": side.case_id,
            "label": info.case.label,
            "code_hash": info.code_hash,
        }

    return {
        "a": told(before),
        "b": told(after),
        "exit_code": code,
        "duels": [json.loads(to_json(each)) for each in duels],
    }

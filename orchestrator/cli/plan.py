"""``tilefarm plan``: what would run where, what was dropped and why, and how long it should take."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import typer
from rich.table import Table

from orchestrator.analysis.summary import EXIT_INFRA, EXIT_OK
from orchestrator.analysis.words import plural
from orchestrator.cli.fleet import open_fleet
from orchestrator.cli.options import (
    CaseOption,
    DeviceOption,
    JsonOption,
    KernelsOption,
    MatrixOption,
    PhonesOption,
    ProbesOption,
    SelectOption,
    SetOption,
    SuiteOption,
    load_inputs,
    phones_wanted,
)
from orchestrator.cli.output import duration_text, print_json, result, say
from orchestrator.cli.selection import check_selection
from orchestrator.domain.case import Case
from orchestrator.domain.results import Missing
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from orchestrator.execution.run_folder import previous_results
from orchestrator.planning.canary import PlannedCanary
from orchestrator.planning.plan import AnywherePlan, DevicePlan, Plan, PlannedCase, build_plan
from reports.text import visible


def plan(
    suite: SuiteOption = "smoke",
    matrix: MatrixOption = Path("matrix.yaml"),
    kernels: KernelsOption = None,
    select: SelectOption = None,
    case: CaseOption = None,
    device: DeviceOption = None,
    set_: SetOption = None,
    probes: ProbesOption = True,
    phones: PhonesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would do, without dispatching anything.

    Example: tilefarm plan --suite smoke -k 'tile=128x16' --device local
    """
    settings = Settings()
    inputs = load_inputs(matrix, kernels)
    selection = check_selection(inputs, suite, select, case, set_, probes=probes)
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
        probes=probes,
        phones=phones_wanted(phones, device),
        seed="plan",
    )
    if as_json:
        print_json(_document(planned, [*missing, *planned.missing]))
    else:
        _print(planned, missing)
    raise typer.Exit(EXIT_INFRA if missing or planned.missing else EXIT_OK)


def _document(planned: Plan, missing: list[Missing]) -> dict[str, object]:
    return {
        "suite": planned.suite.name,
        "seconds": round(planned.seconds, 3),
        "prepare_s": round(planned.prepare_s, 3),
        "budget_s": planned.suite.budget_s,
        "points": len(planned.cases),
        "phones_per_soc": planned.suite.min_phones_per_soc,
        "devices": [
            {
                "device_id": d.device.device_id,
                "soc": d.device.soc.name,
                "seconds": round(planned.seconds_of(d), 3),
                "guessed": d.guessed,
                "pruned": _pruned_of(planned, d),
                "cases": _case_list(d.cases),
                "canaries": [
                    {
                        "case_id": c.case_id,
                        "label": c.case.label,
                        "api": c.api,
                        "factor": c.factor,
                        "expected_ns": c.expected_ns,
                    }
                    for c in d.canaries
                ],
                "half_fits": [json.loads(to_json(f)) | {"sentence": f.sentence} for f in d.half_fits],
            }
            for d in planned.devices
        ],
        "anywhere": [
            {
                "soc": a.soc,
                "devices": a.devices,
                "seconds": round(a.seconds, 3),
                "cases": _case_list(a.cases),
                "canaries": [
                    {"case_id": c.case_id, "label": c.case.label, "api": c.api, "factor": c.factor}
                    for c in a.canaries
                ],
            }
            for a in planned.anywhere
        ],
        "spare": planned.spare,
        "pruned": [json.loads(to_json(p)) for p in planned.pruned],
        "excluded": [json.loads(to_json(e)) for e in planned.excluded],
        "missing": [{"device": m.device_id, "why": m.why} for m in missing],
        "warnings": planned.warnings,
    }


def _case_list(cases: Iterable[PlannedCase]) -> list[dict[str, str]]:
    return [{"case_id": c.case_id, "label": c.case.label, "role": c.role} for c in cases]


def _print_device(device: DevicePlan, *, shares: bool) -> None:
    guessed = f", {device.guessed} times guessed" if device.guessed else ""
    counts = _counts(c.case for c in device.cases) or ("nothing of its own" if shares else "nothing")
    name = f"{visible(device.device.device_id)} ({visible(device.device.soc.name)})"
    _line(f"{name}: {counts}; about {duration_text(device.seconds)}{guessed}")
    _print_cases(device.cases, device.canaries)
    for fit in device.half_fits:
        _line(f"  {fit.sentence}" + (f", {fit.points} cases" if fit.points > 1 else ""))


def _print_anywhere(group: AnywherePlan) -> None:
    names = ", ".join(visible(name) for name in group.devices)
    counts = _counts(c.case for c in group.cases)
    time = f"about {duration_text(group.seconds)} between them"
    _line(f"any of {names} ({visible(group.soc)}): {counts}; {time}")
    _print_cases(group.cases, group.canaries)


def _print_cases(planned: Sequence[PlannedCase], canaries: Iterable[PlannedCanary]) -> None:
    """What runs there: an API at a time, probes before the suite, and the canary that guards them."""
    guards = {c.api: c for c in canaries}
    for api in dict.fromkeys(str(c.case.axes["api"]) for c in planned):
        cases = [c for c in planned if c.case.axes["api"] == api]
        probes, variants = ([c for c in cases if c.role == role] for role in ("probe", "op"))
        _line(f"  {api}: {len(variants)} cases, {len(probes)} probes, {_guard_text(guards.get(api))}")
        for case in cases:
            probe = "  (probe)" if case.role == "probe" else ""
            _line(f"    {case.case_id}  {case.case.label}{probe}")


def _counts(cases: Iterable[Case]) -> str:
    return ", ".join(f"{n} {kernel}" for kernel, n in Counter(c.kernel for c in cases).items())


def _guard_text(canary: PlannedCanary | None) -> str:
    if canary is None:
        return "no canary"
    expected = f"{canary.expected_ns / 1e6:.3g} ms" if canary.expected_ns else "what its first one takes"
    return f"guarded by a canary within ×{canary.factor:g} of {expected}"


def _pruned_table(planned: Plan) -> Table:
    """Points of a kernel that are dropped for the same reasons share a row; so do those of a missing API."""
    groups: dict[tuple[str, str, str], list[Case]] = {}
    for pruned in planned.pruned:
        case, why = planned.cases[pruned.case_id], "; ".join(pruned.reasons)
        kernel = "" if why.startswith("lacks api ") else case.kernel
        groups.setdefault((pruned.device_id, kernel, why), []).append(case)
    table = Table("device", "pruned", "why", box=None, pad_edge=False)
    for (device_id, _, why), cases in groups.items():
        what = cases[0].label if len(cases) == 1 else f"{len(cases)} cases: {_counts(cases)}"
        table.add_row(device_id, what, why)
    return table


def _pruned_of(planned: Plan, device: DevicePlan) -> int:
    return sum(p.device_id == device.device.device_id for p in planned.pruned)


def _print_sums(planned: Plan) -> None:
    """At the end, where it can be seen: points, what each device runs and prunes, hours beside the budget."""
    budget = planned.suite.budget_s
    of = "" if budget is None else f" of a budget of {duration_text(budget)}"
    excluded = sum(gone.count for gone in planned.excluded)
    without = f", {excluded} more excluded" if excluded else ""
    phones = planned.suite.min_phones_per_soc
    placed = f", each on {plural(phones, 'phone')} of each SoC" if phones else ""
    _line(f"suite {planned.suite.name}: {len(planned.cases)} points{without}{placed}")
    for device in planned.devices:
        guessed = f", {device.guessed} times guessed" if device.guessed else ""
        pruned = _pruned_of(planned, device)
        time = f"about {duration_text(planned.seconds_of(device))}{of}{guessed}"
        shared = sum(len(a.cases) for a in planned.anywhere if device.device.device_id in a.devices)
        more = f" and a share of {shared}" if shared else ""
        _line(f"  {visible(device.device.device_id)}: {len(device.cases)} run{more}, {pruned} pruned; {time}")
    for name in planned.spare:
        _line(f"  {visible(name)}: not needed; other phones of its SoC run all cases")
    if planned.devices:
        _line(
            f"  inputs and references before that: about {duration_text(planned.prepare_s)} on this machine"
        )


def _line(text: str) -> None:
    result.print(text, markup=False, soft_wrap=True)


def _print(planned: Plan, missing: list[Missing]) -> None:
    for warning in planned.warnings:
        say(f"warning: {visible(warning)}")
    for lost in missing:
        say(f"{visible(lost.device_id)}: cannot be used: {visible(lost.why)}")
    for device in planned.devices:
        _print_device(device, shares=any(device.device.device_id in a.devices for a in planned.anywhere))
    for group in planned.anywhere:
        _print_anywhere(group)
    if planned.pruned:
        result.print(_pruned_table(planned), markup=False)
    for gone in planned.excluded:
        _line(f"excluded {gone.count}: {gone.when} ({gone.reason}; {gone.owner}, until {gone.expires})")
    _print_sums(planned)

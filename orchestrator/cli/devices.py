"""``tilefarm devices``: what is there, with SoC and profile, and what each precision really delivers."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from orchestrator.analysis.precision import sentence
from orchestrator.analysis.summary import EXIT_INFRA, EXIT_OK
from orchestrator.cli.device_probes import Probed, probe_devices
from orchestrator.cli.fleet import Fleet, open_fleet
from orchestrator.cli.options import DeviceOption, JsonOption
from orchestrator.cli.output import print_json, result, say
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from reports.text import visible

PrecisionOption = Annotated[
    bool | None,
    typer.Option(
        "--probes/--no-probes",
        help="Measure what each precision and hint delivers, and how fast: seconds a device. "
        "Default: yes, but not on the workers of a farm, who have other work.",
    ),
]


def devices(device: DeviceOption = None, probes: PrecisionOption = None, as_json: JsonOption = False) -> None:
    """List devices with SoC, driver and limits, and what each precision really delivers there.

    Exit code 3 when a device is listed and cannot be used, or a probe brought no result back.

    Example: tilefarm devices --device local --json
    """
    settings = Settings()
    wanted = not settings.broker if probes is None else probes
    with (
        tempfile.TemporaryDirectory(prefix="tilefarm-logs-") as logs,
        open_fleet(settings, device or [], Path(logs), say) as fleet,
    ):
        found = fleet
        probed = probe_devices(fleet, settings) if wanted and fleet.devices else None
    if as_json:
        print_json(_document(found, probed))
    else:
        _print(found)
        if probed is not None:
            _print_precision(found, probed)
    complete = not found.missing and (probed is None or probed.complete)
    raise typer.Exit(EXIT_OK if complete else EXIT_INFRA)


def _document(found: Fleet, probed: Probed | None) -> dict[str, object]:
    document: dict[str, object] = {
        "devices": [json.loads(to_json(d)) for d in found.devices],
        "unusable": [{"serial": m.device_id, "why": m.why} for m in found.missing],
    }
    if probed is not None:
        document["precision"] = [json.loads(to_json(p)) | {"sentence": sentence(p)} for p in probed.precision]
        document["failed_probes"] = [json.loads(to_json(f)) for f in probed.failed]
    return document


def _print(found: Fleet) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("device", "name", "SoC", "from", "API", "driver", "shared B", "invocations", ""):
        table.add_column(column, overflow="fold")
    for d in found.devices:
        for profile in d.profiles:
            table.add_row(
                *(visible(text) for text in (d.device_id, d.name, d.soc.name, d.soc.source, profile.api)),
                visible(profile.driver_text),
                str(profile.limits.get("shared_bytes", "?")),
                str(profile.limits.get("invocations", "?")),
                _remarks(d),
            )
    result.print(table, markup=False)
    for lost in found.missing:
        say(f"{visible(lost.device_id)}: cannot be used: {visible(lost.why)}")


def _print_precision(found: Fleet, probed: Probed) -> None:
    """A paragraph for each device and API; the two share nothing but the hardware."""
    for device in found.devices:
        for profile in device.profiles:
            key = (device.device_id, profile.api)
            lines = [sentence(p) for p in probed.precision if (p.device_id, p.api) == key]
            lines += probed.lacking.get(key, [])
            lines += [
                f"{f.label}: {f.verdict}: {f.reason}" for f in probed.failed if (f.device_id, f.api) == key
            ]
            result.print(f"\n{visible(device.device_id)} {profile.api}", markup=False, soft_wrap=True)
            for line in lines:
                result.print(f"  {visible(line)}", markup=False, soft_wrap=True, highlight=False)


def _remarks(device: DeviceRecord) -> str:
    return "virtual: limits imposed on this host's driver" if device.virtual else ""

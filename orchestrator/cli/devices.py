"""``tilefarm devices``: what is there, with SoC and profile."""

import json
import tempfile
from pathlib import Path

import typer
from rich.table import Table

from orchestrator.analysis.summary import EXIT_INFRA, EXIT_OK
from orchestrator.cli.fleet import Fleet, open_fleet
from orchestrator.cli.options import DeviceOption, JsonOption
from orchestrator.cli.output import print_json, result, say
from orchestrator.domain.device import DeviceRecord
from orchestrator.domain.settings import Settings
from orchestrator.domain.wire import to_json
from reports.text import visible


def devices(device: DeviceOption = None, as_json: JsonOption = False) -> None:
    """List devices with SoC, driver and limits; probes each one.

    Exit code 3 when one is listed and cannot be used.

    Example: tilefarm devices --device local --json
    """
    with (
        tempfile.TemporaryDirectory(prefix="tilefarm-logs-") as logs,
        open_fleet(Settings(), device or [], Path(logs), say) as fleet,
    ):
        found = fleet
    if as_json:
        print_json(
            {
                "devices": [json.loads(to_json(d)) for d in found.devices],
                "unusable": [{"serial": m.device_id, "why": m.why} for m in found.missing],
            }
        )
    else:
        _print(found)
    raise typer.Exit(EXIT_INFRA if found.missing else EXIT_OK)


def _print(found: Fleet) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("device", "name", "SoC", "from", "API", "driver", "shared B", "invocations", ""):
        table.add_column(column, overflow="fold")
    for d in found.devices:
        for profile in d.profiles:
            table.add_row(
                *(visible(text) for text in (d.device_id, d.name, d.soc.name, d.soc.source, profile.api)),
                visible(f"{profile.renderer}; {profile.version}"),
                str(profile.limits.get("shared_bytes", "?")),
                str(profile.limits.get("invocations", "?")),
                _remarks(d),
            )
    result.print(table, markup=False)
    for lost in found.missing:
        say(f"{visible(lost.device_id)}: cannot be used: {visible(lost.why)}")


def _remarks(device: DeviceRecord) -> str:
    return "virtual: limits imposed on this host's driver" if device.virtual else ""

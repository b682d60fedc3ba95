"""``tilefarm phone``: a virtual phone, so that the farm can be tried without one."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from orchestrator.cli.options import JsonOption
from orchestrator.cli.output import print_json, result, say
from orchestrator.domain.errors import UsageError
from workers.transports.adb_server import server_address, start_server
from workers.virtual.profile import load_profile, shipped_profiles
from workers.virtual.serve import serve


def phone(
    profile: Annotated[str, typer.Argument(help="A shipped profile or a YAML file. Empty: list them.")] = "",
    connect: Annotated[
        bool, typer.Option("--connect", help="Let this machine's adb server list it.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="TCP port; 0 takes a free one.")] = 0,
    root: Annotated[Path | None, typer.Option("--root", help="Keep its files here.")] = None,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", help="Scripted fault (docs/add-a-phone.md). Repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve a virtual phone until Ctrl-C: it really runs the runner, under its profile's limits.

    Example: tilefarm phone snapdragon-8-gen-3 --connect
    """
    if not profile:
        _list(as_json=as_json)
        return
    if as_json:
        raise UsageError("--json lists profiles; leave it out to serve one")
    if connect:
        start_server(server_address())
    serve(profile, port=port, root=root, faults=fault or [], connect=connect, say=say)


def _list(*, as_json: bool) -> None:
    names = sorted(shipped_profiles())
    if as_json:
        print_json({"profiles": names})
        return
    table = Table(
        "profile",
        "phone",
        "GPU",
        "shared B",
        "invocations",
        "work group",
        "Vulkan by",
        box=None,
        pad_edge=False,
    )
    for name in names:
        loaded = load_profile(name)
        gpu = loaded.gpu
        table.add_row(
            name,
            loaded.props.get("ro.product.model", ""),
            gpu.renderer,
            str(gpu.shared_bytes),
            str(gpu.invocations),
            " × ".join(map(str, gpu.group)),
            gpu.vulkan,
        )
    result.print(table, markup=False)

"""The commands of ``tilefarm``."""

import typer

from orchestrator.cli.agent import agent
from orchestrator.cli.beat import beat
from orchestrator.cli.cancel import cancel
from orchestrator.cli.compare import compare, report
from orchestrator.cli.db import db
from orchestrator.cli.devices import devices
from orchestrator.cli.doctor import doctor
from orchestrator.cli.duel import duel
from orchestrator.cli.example import example
from orchestrator.cli.export import export
from orchestrator.cli.flower import flower
from orchestrator.cli.health import health
from orchestrator.cli.hold import hold, release
from orchestrator.cli.kernels import kernels
from orchestrator.cli.nights import nights
from orchestrator.cli.orchestrator import orchestrator
from orchestrator.cli.phone import phone
from orchestrator.cli.plan import plan
from orchestrator.cli.queue import queue
from orchestrator.cli.run import run
from orchestrator.cli.status import status
from orchestrator.cli.submit import submit
from orchestrator.cli.triage import triage
from orchestrator.cli.watch import watch
from orchestrator.cli.worker import worker

app = typer.Typer(
    name="tilefarm",
    help="Runs every kernel variant on every device, checks each output, reports per SoC.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    doctor,
    devices,
    plan,
    run,
    report,
    compare,
    duel,
    export,
    example,
    submit,
    status,
    watch,
    queue,
    cancel,
    orchestrator,
    agent,
    beat,
    nights,
    worker,
    health,
    flower,
    hold,
    release,
    kernels,
    phone,
):
    app.command()(command)
app.add_typer(db, name="db")
app.add_typer(triage, name="triage")

"""Entry point of the ``tilefarm`` command: registers commands, turns our errors into exit codes."""

import sys

import typer

from orchestrator.cli.compare import compare, report
from orchestrator.cli.devices import devices
from orchestrator.cli.doctor import doctor
from orchestrator.cli.kernels import kernels
from orchestrator.cli.output import say
from orchestrator.cli.phone import phone
from orchestrator.cli.plan import plan
from orchestrator.cli.run import run
from orchestrator.cli.worker import worker
from orchestrator.domain.errors import TilefarmError

app = typer.Typer(
    name="tilefarm",
    help="Runs every kernel variant on every device, checks each output, reports per SoC.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (doctor, devices, plan, run, report, compare, worker, kernels, phone):
    app.command()(command)


def main() -> None:
    """Run a command; an error of ours is its message on stderr and its exit code."""
    try:
        app()
    except TilefarmError as e:
        say(f"tilefarm: {e}")
        sys.exit(e.exit_code)


if __name__ == "__main__":
    main()

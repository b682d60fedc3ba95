"""``tilefarm orchestrator``: the service that carries out submitted runs."""

from orchestrator.cli.broker_url import broker_url
from orchestrator.cli.output import say
from orchestrator.domain.settings import Settings
from orchestrator.execution.service.serve import serve
from orchestrator.storage.redis_client import shown


def orchestrator() -> None:
    """Carry out the runs that `tilefarm submit` hands in, each in a process of its own; one a farm.

    Reports are in OUT/runs of this host. Ctrl-C, a crash or a reboot ends no run: all go on when it is
    started again. TILEFARM_RUNS_AT_ONCE (8) is how many go on at a time.

    Example: TILEFARM_BROKER=redis://localhost:6379/0 tilefarm orchestrator
    """
    settings = Settings()
    url = broker_url(settings, "an orchestrator", "`tilefarm run` alone needs no orchestrator")
    say(f"orchestrator for {shown(url)}, runs and reports in {settings.out.resolve()}")
    serve(settings)

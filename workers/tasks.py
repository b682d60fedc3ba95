"""The Celery application of a worker process: one task, a shell around ``session.run_batch``."""

from typing import Any

import structlog
from celery import Celery

from orchestrator.domain.errors import LeaseLost, TilefarmError
from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch
from orchestrator.domain.names import RUN_BATCH_TASK, celery_settings
from orchestrator.domain.wire import decode
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from workers.admission import admit
from workers.bench import CALL_TIMEOUT_S, Bench
from workers.health import read_vitals
from workers.leasing import leased
from workers.locks import exclusive
from workers.results import ResultSink
from workers.session import infra_trials, run_batch

RESOURCE_WAIT_S = 1800.0
LEASES = 3
"""A batch is run under at most so many leases, each but the last one lost."""
log = structlog.get_logger()


def make_app(broker_url: str, bench: Bench, client: RedisClient, holder: str) -> Celery:
    """A Celery app whose only task runs batches on ``bench``; ``holder`` is this worker's id."""
    app = Celery("tilefarm", broker=broker_url)
    app.conf.update(celery_settings())

    @app.task(name=RUN_BATCH_TASK)
    def run_batch_task(envelope: dict[str, Any]) -> None:  # pyright: ignore[reportUnusedFunction]
        handle(decode(Batch, envelope, "task"), bench, client, holder)

    return app


def handle(batch: Batch, bench: Bench, client: RedisClient, holder: str) -> None:
    """Run what is not done yet of a batch, with the device leased, and insert each result once.

    A batch may come twice (a worker died, a message was delivered again): done cases are left out. Where the
    lease was lost on the way, what is not in yet is run once more under a new one.

    Args:
        holder: this worker, as leases name it.
    """
    sink = ResultSink(client, batch.run_id)
    reason = ""
    for _ in range(LEASES):
        try:
            _under_lease(batch, bench, client, holder, sink)
            return
        except LeaseLost as e:
            reason = str(e)
            log.warning("batch under a lost lease", batch=batch.batch_id, why=reason)
        except TilefarmError as e:  # a lock that never came free, a blob store that this host cannot open
            reason = str(e)
            break
    for trial in infra_trials(bench, batch.run_id, batch.cases, reason):
        sink.insert(trial)


def _under_lease(batch: Batch, bench: Bench, client: RedisClient, holder: str, sink: ResultSink) -> None:
    device_id, resource = bench.record.device_id, bench.record.resource

    def waiting(why: str = resource) -> None:
        sink.progress(Progress(device_id, "waiting", detail=why))

    leases = Leases(client)
    # The device first, then its processor: everybody takes them in this order. The host's own locks are for
    # processes with another broker, or with a private one.
    with (
        leased(leases, device_id, holder, timeout_s=RESOURCE_WAIT_S, on_wait=waiting) as held,
        exclusive(f"device-{device_id}", timeout_s=RESOURCE_WAIT_S, on_wait=waiting),
    ):
        cases = sink.not_done(device_id, batch.cases)
        if not cases:
            return

        def unfit(why: str) -> None:
            held.check()
            if (hold := leases.held(device_id)) is not None:
                raise LeaseLost(f"{device_id}: left to a person: {hold.sentence}")
            waiting(why)

        if bench.record.transport == "adb":
            admit(
                device_id,
                lambda at: read_vitals(bench.device, at, CALL_TIMEOUT_S),
                timeout_s=RESOURCE_WAIT_S,
                on_wait=unfit,
            )
        with exclusive(f"resource-{resource}", timeout_s=RESOURCE_WAIT_S, on_wait=waiting):
            sink.progress(Progress(device_id, "batch", detail=batch.batch_id))
            store = BlobStore(batch.blob_store)
            for trial in run_batch(bench, batch, cases, store, sink.progress, held.check):
                sink.insert(trial, held.lease)

"""The Celery application of a worker process: one task, a shell around ``session.run_batch``."""

from typing import Any

from celery import Celery

from orchestrator.domain.errors import TilefarmError
from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch
from orchestrator.domain.names import RUN_BATCH_TASK, celery_settings
from orchestrator.domain.wire import decode
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.redis_client import RedisClient
from workers.bench import Bench
from workers.locks import exclusive
from workers.results import ResultSink
from workers.session import infra_trials, run_batch

RESOURCE_WAIT_S = 1800.0


def make_app(broker_url: str, bench: Bench, client: RedisClient) -> Celery:
    """A Celery app whose only task runs batches on ``bench``."""
    app = Celery("tilefarm", broker=broker_url)
    app.conf.update(celery_settings())

    @app.task(name=RUN_BATCH_TASK)
    def run_batch_task(envelope: dict[str, Any]) -> None:  # pyright: ignore[reportUnusedFunction]
        handle(decode(Batch, envelope, "task"), bench, client)

    return app


def handle(batch: Batch, bench: Bench, client: RedisClient) -> None:
    """Run what is not done yet of a batch and insert each result once.

    A batch may come twice (a worker died, a message was delivered again): done cases are left out.
    """
    sink = ResultSink(client, batch.run_id)
    device_id = bench.record.device_id
    resource = bench.record.resource

    def waiting() -> None:
        sink.progress(Progress(device_id, "waiting", detail=resource))

    try:
        # The device first, then its processor: everybody takes them in this order.
        with (
            exclusive(f"device-{device_id}", timeout_s=RESOURCE_WAIT_S, on_wait=waiting),
            exclusive(f"resource-{resource}", timeout_s=RESOURCE_WAIT_S, on_wait=waiting),
        ):
            cases = sink.not_done(device_id, batch.cases)
            if not cases:
                return
            sink.progress(Progress(device_id, "batch", detail=batch.batch_id))
            trials = run_batch(bench, batch, cases, BlobStore(batch.blob_store), sink.progress)
    except TilefarmError as e:  # a lock that never came free, a blob store that this host cannot open
        trials = infra_trials(bench, batch.run_id, batch.cases, str(e))
    for trial in trials:
        sink.insert(trial)

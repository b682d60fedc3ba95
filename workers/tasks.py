"""The Celery application of a worker process: one task, a shell around ``session.run_batch``."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from celery import Celery

from orchestrator.domain.agent import News
from orchestrator.domain.errors import LeaseLost, RunCancelled, TilefarmError
from orchestrator.domain.event import Progress
from orchestrator.domain.health import Failed, Vitals, Vouched
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.names import RUN_BATCH_TASK, cancelled_key, celery_settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import decode
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from workers.admission import admit
from workers.bench import CALL_TIMEOUT_S, Bench
from workers.health import read_vitals
from workers.leasing import Held, leased
from workers.locks import exclusive
from workers.losses import Losses
from workers.news import tell
from workers.results import ResultSink
from workers.session import infra_trials, run_batch, unrun

RESOURCE_WAIT_S = 1800.0
CANCEL_POLL_S = 1.0
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
        except RunCancelled as e:
            log.info("batch dropped", batch=batch.batch_id, why=str(e))
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

    goes_on = _Cancel(client, batch.run_id)
    goes_on.check()

    def waiting(why: str = resource) -> None:
        goes_on.check()
        sink.progress(Progress(device_id, "waiting", detail=why))

    # The device first, then its processor: everybody takes them in this order. The host's own locks are for
    # processes with another broker, or with a private one.
    with (
        leased(Leases(client), device_id, holder, timeout_s=RESOURCE_WAIT_S, on_wait=waiting) as held,
        exclusive(f"device-{device_id}", timeout_s=RESOURCE_WAIT_S, on_wait=waiting),
    ):
        cases = sink.not_done(device_id, batch.cases)
        if not cases:
            return

        if bench.record.transport == "adb":
            _await_fit(bench, client, held, waiting)
        with exclusive(f"resource-{resource}", timeout_s=RESOURCE_WAIT_S, on_wait=waiting):
            sink.progress(Progress(device_id, "batch", detail=batch.batch_id))
            _run(batch, bench, cases, client, sink, held, goes_on)


class _Cancel:
    """Was the run ended? Redis is asked once a second at most."""

    def __init__(self, client: RedisClient, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._next = 0.0

    def check(self) -> None:
        """Raises RunCancelled."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + CANCEL_POLL_S
        why = self._client.get(cancelled_key(self._run_id))
        if why is not None:
            raise RunCancelled(f"{self._run_id}: {why.decode('utf-8', 'replace')}")


def _run(
    batch: Batch,
    bench: Bench,
    cases: Sequence[CaseJob],
    client: RedisClient,
    sink: ResultSink,
    held: Held,
    goes_on: _Cancel,
) -> None:
    """All together, but for those during which a worker died: they run alone, or no more."""

    def still_ours() -> None:
        held.check()
        goes_on.check()

    losses = Losses(client, batch.run_id, bench.record)
    sorted_out = losses.sort(cases)
    for job, why in sorted_out.dead:
        sink.insert(unrun(bench, batch.run_id, job, Verdict.CRASHED, why), held.lease)
    store = BlobStore(batch.blob_store)
    for group in sorted_out.groups():
        with losses.noted(group):
            trials = run_batch(bench, batch, group, store, sink.progress, still_ours)
            for trial in trials:
                sink.insert(trial, held.lease)
        if (news := _news(trials)) is not None:
            tell(client, bench.record.device_id, news)


def _await_fit(bench: Bench, client: RedisClient, held: Held, waiting: Callable[[str], None]) -> None:
    """Until a phone is cool and charged enough; one that a person takes meanwhile is theirs at once."""
    device_id, leases = bench.record.device_id, Leases(client)

    def vitals(at: float) -> Vitals:
        found = read_vitals(bench.device, at, CALL_TIMEOUT_S)
        tell(client, device_id, found)
        return found

    def unfit(why: str) -> None:
        held.check()
        if (hold := leases.held(device_id)) is not None:
            raise LeaseLost(f"{device_id}: left to a person: {hold.sentence}")
        waiting(why)

    admit(device_id, vitals, timeout_s=RESOURCE_WAIT_S, on_wait=unfit)


def _news(trials: Sequence[Trial]) -> News | None:
    """What a batch says about its device: infrastructure failed, or a canary was right before and after."""
    lost = next((t.reason for t in trials if t.verdict is Verdict.INFRA), None)
    if lost is not None:
        return Failed(time.monotonic(), lost)
    return Vouched(time.monotonic()) if any(t.canary is not None for t in trials) else None

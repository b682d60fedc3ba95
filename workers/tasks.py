"""The Celery application of a worker process: one task, a shell around ``session.run_batch``."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import structlog
from celery import Celery

from orchestrator.domain.agent import News
from orchestrator.domain.errors import InfraError, LeaseLost, RunCancelled, TilefarmError
from orchestrator.domain.event import Progress
from orchestrator.domain.health import Failed, Gates, Vitals, Vouched
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.names import RUN_BATCH_TASK, celery_settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import decode
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from workers.admission import admit
from workers.bench import CALL_TIMEOUT_S, Bench
from workers.health import read_vitals
from workers.leasing import Held, held_by, leased
from workers.locks import exclusive
from workers.losses import Losses
from workers.news import tell
from workers.results import ResultSink
from workers.run_watch import RunWatch
from workers.session import infra_trials, make_room, run_batch, unrun

RESOURCE_WAIT_S = 1800.0
"""A batch waits so long in all: for its device, until that is fit, and for a shared processor."""
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
    lease was lost on the way, what is not in yet is run once more under a new one. Where the device cannot be
    had, this batch's cases are ``infra``, and its run's other batches for the device are dropped.

    Args:
        holder: this worker, as leases and notes name it.

    Raises:
        redis.RedisError: Redis was away for longer than ``patience.OUTAGE_S``.
    """
    sink = ResultSink(client, batch.run_id)
    run = RunWatch(client, batch.run_id, bench.record.device_id)
    if why := run.given_up():
        log.info("batch dropped", batch=batch.batch_id, why=why)
        return
    reason = ""
    for _ in range(LEASES):
        try:
            _under_lease(batch, bench, client, holder, sink, run)
            return
        except RunCancelled as e:
            log.info("batch dropped", batch=batch.batch_id, why=str(e))
            return
        except LeaseLost as e:
            reason = str(e)
            log.warning("batch under a lost lease", batch=batch.batch_id, why=reason)
        except InfraError as e:  # a person has the device, or half an hour was not enough
            reason = str(e)
            run.give_up(reason)
            break
        except TilefarmError as e:  # a blob store that this host cannot open
            reason = str(e)
            break
    for trial in infra_trials(bench, batch.run_id, batch.cases, reason):
        sink.insert(trial)


def _under_lease(
    batch: Batch, bench: Bench, client: RedisClient, holder: str, sink: ResultSink, run: RunWatch
) -> None:
    device_id, resource = bench.record.device_id, bench.record.resource
    leases, deadline = Leases(client), time.monotonic() + RESOURCE_WAIT_S
    run.check()

    def left_s() -> float:
        return max(0.0, deadline - time.monotonic())

    def waiting(why: str = resource) -> None:
        run.check()
        sink.progress(Progress(device_id, "waiting", detail=why))

    # The device first, then its processor: everybody takes them in this order. The host's own locks are for
    # processes with another broker, or with a private one.
    with (
        leased(leases, device_id, holder, timeout_s=left_s(), on_wait=waiting) as held,
        exclusive(f"device-{device_id}", timeout_s=left_s(), on_wait=waiting),
    ):
        cases = sink.not_done(device_id, batch.cases)
        if not cases:
            return

        def waiting_with_it(why: str = resource) -> None:
            """One that a person takes meanwhile is theirs at once."""
            held.check()
            if (hold := held_by(leases, device_id)) is not None:
                raise LeaseLost(f"{device_id}: left to a person: {hold.sentence}")
            waiting(why)

        if bench.record.transport == "adb":
            _await_fit(batch, bench, client, left_s(), waiting_with_it)
        with exclusive(f"resource-{resource}", timeout_s=left_s(), on_wait=waiting_with_it):
            sink.progress(Progress(device_id, "batch", detail=batch.batch_id))
            _run(batch, bench, cases, client, sink, held, run)


def _run(
    batch: Batch,
    bench: Bench,
    cases: Sequence[CaseJob],
    client: RedisClient,
    sink: ResultSink,
    held: Held,
    run: RunWatch,
) -> None:
    """All together, but for those during which a worker died: they run alone, or no more."""

    def still_ours() -> None:
        held.check()
        run.check()

    losses = Losses(client, batch.run_id, bench.record, held.lease.holder)
    sorted_out = losses.sort(cases)
    for job, why in sorted_out.dead:
        sink.insert(unrun(bench, batch.run_id, job, Verdict.CRASHED, why), held.lease)
    store = BlobStore(batch.blob_store)
    for group in sorted_out.groups():
        trouble: list[InfraError] = []
        with losses.noted(group):
            trials = run_batch(bench, batch, group, store, sink.progress, still_ours, trouble.append)
            for trial in trials:
                sink.insert(trial, held.lease)
        if (news := _news(trials, trouble)) is not None:
            tell(client, bench.record.device_id, news)


def _await_fit(
    batch: Batch, bench: Bench, client: RedisClient, timeout_s: float, waiting: Callable[[str], None]
) -> None:
    """Until a phone is cool and charged enough and has room, which blobs of earlier batches may take."""
    device_id, enough = bench.record.device_id, Gates().free_bytes

    def vitals(at: float) -> Vitals:
        found = read_vitals(bench.device, at, CALL_TIMEOUT_S)
        if found.free_bytes is not None and found.free_bytes < enough:
            with suppress(InfraError):  # the gate says so
                make_room(bench, batch)
                found = read_vitals(bench.device, at, CALL_TIMEOUT_S)
        tell(client, device_id, found)
        return found

    admit(device_id, vitals, timeout_s=timeout_s, on_wait=waiting)


def _news(trials: Sequence[Trial], trouble: Sequence[InfraError]) -> News | None:
    """What a batch says about its device: it or its link failed, or a canary was right before and after.

    What failed on the host's side (blob store, a canary's doubt, a runner's answer) is no reason to restart a
    phone.
    """
    lost = next((e for e in trouble if e.of_device), None)
    if lost is not None:
        return Failed(time.monotonic(), str(lost))
    return Vouched(time.monotonic()) if any(t.canary is not None for t in trials) else None

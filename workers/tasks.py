"""The Celery application of a worker process: one task, a shell around ``session.run_batch``."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import redis
import structlog
from celery import Celery, Task
from kombu.exceptions import OperationalError

from orchestrator.domain.agent import News
from orchestrator.domain.errors import InfraError, LeaseLost, RunCancelled, TilefarmError
from orchestrator.domain.event import Progress
from orchestrator.domain.health import Failed, Gates, Vitals, Vouched
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.limits import printable
from orchestrator.domain.names import RUN_BATCH_TASK, celery_settings
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import MAX_BATCH_BYTES, pack
from orchestrator.storage.blobs import BlobStore
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient
from workers.admission import admit
from workers.awake import awake
from workers.bench import CALL_TIMEOUT_S, Bench
from workers.health import read_vitals
from workers.intake import taken
from workers.leasing import Held, held_by, leased
from workers.locks import exclusive
from workers.losses import Losses
from workers.news import tell
from workers.patience import patiently, told_to_stop
from workers.results import ResultSink
from workers.run_watch import RunWatch
from workers.session import infra_trials, make_room, run_batch, unrun
from workers.standing_back import ORDER, stand_back
from workers.warmth import Warmth

RESOURCE_WAIT_S = 1800.0
"""A batch waits so long in all: for its device, until that is fit, and for a shared processor."""
HAND_BACK_S = 2.0
"""A phone that cannot do a batch of its SoC's queue leaves it to others for so long."""
HAND_BACKS = 900
"""Each phone that may do a batch and cannot hands it back so often on average: that is half an hour."""
LEASES = 3
"""A batch is run under at most so many leases, each but the last one lost."""
log = structlog.get_logger()


class Leaving(Exception):
    """This worker was told to stop while a batch waited: another one, or the next one here, does it. No error
    of the farm, so that nothing on its way makes trials of it."""


def make_app(broker_url: str, bench: Bench, client: RedisClient, holder: str) -> Celery:
    """A Celery app whose only task runs batches on ``bench``; ``holder`` is this worker's id."""
    app = Celery("tilefarm", broker=broker_url)
    app.conf.update(celery_settings())
    app.conf.broker_transport_options = {**app.conf.broker_transport_options, "queue_order_strategy": ORDER}

    @app.task(name=RUN_BATCH_TASK, bind=True, shared=False)
    def run_batch_task(task: "Task[..., None]", message: object) -> None:  # pyright: ignore[reportUnusedFunction]
        batch = taken(message, bench, client)
        again = handle(batch, bench, client, holder) if batch is not None else None
        if again is not None:
            came_by = (task.request.delivery_info or {}).get("routing_key", "")
            _hand_back(app, again, str(came_by))
            stand_back(str(came_by))
            if not told_to_stop():
                time.sleep(
                    HAND_BACK_S
                )  # who is idle takes it meanwhile; our own queue waits no longer than this

    return app


def _hand_back(app: Celery, batch: Batch, queue: str) -> None:
    """Its message is acknowledged next: a batch that is in no queue then would be waited for in vain."""
    text = pack(batch, MAX_BATCH_BYTES)

    def send() -> None:
        try:
            app.send_task(RUN_BATCH_TASK, args=[text], queue=queue)
        except (OperationalError, OSError) as e:
            raise redis.ConnectionError(str(e)) from e

    patiently("batch handed back", send)


def handle(
    batch: Batch,
    bench: Bench,
    client: RedisClient,
    holder: str,
) -> Batch | None:
    """Run what is not done yet of a batch, with the device leased, and insert each result once.

    A batch may come twice (a worker died, a message was delivered again): done cases are left out. Where the
    lease was lost on the way, what is not in yet is run once more under a new one. Where the device cannot be
    had, this batch's cases are ``infra``, and its run's other batches for the device are dropped.

    Args:
        holder: this worker, as leases and notes name it.

    Returns:
        A batch to be put into its queue again: other phones may do it and this one cannot, or this worker is
        told to stop before it has begun; else None.

    Raises:
        redis.RedisError: Redis was away for longer than ``patience.OUTAGE_S``.
    """
    sink = ResultSink(client, batch.run_id, batch.planned_for)
    try:
        reason = _done(batch, bench, client, holder, sink)
    except redis.RedisError:
        raise
    except Leaving as e:
        log.info("batch handed back", batch=batch.batch_id, why=str(e))
        return batch
    except Exception as e:  # a fault of ours: without a word its run would wait in vain, then lose the device
        log.exception("unexpected", run=batch.run_id, batch=batch.batch_id)
        for trial in infra_trials(bench, batch.run_id, batch.cases, printable(f"{type(e).__name__}: {e}")):
            sink.insert(trial)
        return None
    if not reason:
        return None
    if not batch.device_id and batch.handed_back < HAND_BACKS * max(1, len(batch.only_on)):
        sink.progress(Progress(bench.record.device_id, "waiting", detail=f"another phone: {reason}"))
        return replace(batch, handed_back=batch.handed_back + 1)
    for trial in infra_trials(bench, batch.run_id, batch.cases, reason):
        sink.insert(trial)
    return None


def _done(batch: Batch, bench: Bench, client: RedisClient, holder: str, sink: ResultSink) -> str:
    """Empty once the batch is run, or nobody wants it any more; else why this device cannot do it."""
    device_id = bench.record.device_id
    run = RunWatch(client, batch.run_id, device_id)
    reason = run.given_up()
    if reason and batch.device_id:
        log.info("batch dropped", batch=batch.batch_id, why=reason)
        return ""
    if not batch.device_id and device_id not in batch.only_on:
        reason = "not one of the phones that may do it"
    try:
        run.check()
        if reason:
            return reason
        for _ in range(LEASES):
            try:
                _under_lease(batch, bench, client, holder, sink, run)
                return ""
            except LeaseLost as e:
                reason = str(e)
                log.warning("batch under a lost lease", batch=batch.batch_id, why=reason)
    except RunCancelled as e:
        log.info("batch dropped", batch=batch.batch_id, why=str(e))
        return ""
    except InfraError as e:  # a person has the device, or it was waited for in vain
        if batch.device_id:
            run.give_up(str(e))
        return str(e)
    except TilefarmError as e:  # a blob store that this host cannot open
        return str(e)
    return reason


def _under_lease(
    batch: Batch, bench: Bench, client: RedisClient, holder: str, sink: ResultSink, run: RunWatch
) -> None:
    device_id, resource = bench.record.device_id, bench.record.resource
    leases, deadline = Leases(client), time.monotonic() + RESOURCE_WAIT_S
    run.check()

    def left_s() -> float:
        return max(0.0, deadline - time.monotonic())

    def device_s() -> float:
        """What another phone could do at once does not wait for this one."""
        return left_s() if batch.device_id else 0.0

    def waiting(why: str = resource) -> None:
        if told_to_stop():
            raise Leaving(f"its worker stops; it waited: {why}")
        run.check()
        sink.progress(Progress(device_id, "waiting", detail=why))

    # The device first, then its processor: everybody takes them in this order. The host's own locks are for
    # processes with another broker, or with a private one.
    with (
        leased(leases, device_id, holder, timeout_s=device_s(), on_wait=waiting) as held,
        exclusive(f"device-{device_id}", timeout_s=device_s(), on_wait=waiting),
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

        warmth = Warmth()
        if bench.record.transport == "adb":
            fit = _await_fit(batch, bench, client, device_s(), held, waiting_with_it)
            warmth = Warmth(bench.device, fit)
        with exclusive(f"resource-{resource}", timeout_s=left_s(), on_wait=waiting_with_it):
            sink.progress(Progress(device_id, "batch", detail=batch.batch_id))
            _run(batch, bench, cases, client, sink, held, run, warmth)


def _run(
    batch: Batch,
    bench: Bench,
    cases: Sequence[CaseJob],
    client: RedisClient,
    sink: ResultSink,
    held: Held,
    run: RunWatch,
    warmth: Warmth,
) -> None:
    """All together, but for those during which a worker died: they run alone, or no more."""

    def still_ours() -> None:
        held.check()
        if held.renewed:  # a Redis that is away must not keep us from the next look at the lease
            run.check()

    def on_progress(news: Progress) -> None:
        if held.renewed:
            sink.progress(news)

    losses = Losses(client, batch.run_id, bench.record, held.lease.holder)
    sorted_out = losses.sort(cases)
    for job, why in sorted_out.dead:
        sink.insert(unrun(bench, batch.run_id, job, Verdict.CRASHED, why), held.lease)
    store = BlobStore(batch.blob_store)
    for group in sorted_out.groups():
        trouble: list[InfraError] = []
        with losses.noted(group):
            trials = run_batch(bench, batch, group, store, on_progress, still_ours, trouble.append)
            trials = warmth.told(trials, held.check)
            for trial in trials:
                sink.insert(trial, held.lease)
        if (news := _news(trials, trouble)) is not None:
            tell(client, bench.record.device_id, news)


def _await_fit(
    batch: Batch,
    bench: Bench,
    client: RedisClient,
    timeout_s: float,
    held: Held,
    waiting: Callable[[str], None],
) -> Vitals:
    """Until a phone is awake, cool, charged and has room, which blobs of earlier batches may take.

    Returns:
        What it starts with.
    """
    device_id, enough = bench.record.device_id, Gates().free_bytes

    def vitals(at: float) -> Vitals:
        held.check()
        found = read_vitals(bench.device, at, CALL_TIMEOUT_S)
        if found.free_bytes is not None and found.free_bytes < enough:
            with suppress(InfraError):  # the gate says so
                make_room(bench, batch, enough - found.free_bytes)
                found = read_vitals(bench.device, at, CALL_TIMEOUT_S)
        found = awake(bench.device, found, lambda: read_vitals(bench.device, at, CALL_TIMEOUT_S))
        tell(client, device_id, found)
        return found

    return admit(device_id, vitals, timeout_s=timeout_s, on_wait=waiting)


def _news(trials: Sequence[Trial], trouble: Sequence[InfraError]) -> News | None:
    """What a batch says about its device: it or its link failed, or a canary was right before and after.

    What failed on the host's side (blob store, a canary's doubt, a runner's answer) is no reason to restart a
    phone.
    """
    lost = next((e for e in trouble if e.of_device), None)
    if lost is not None:
        return Failed(time.monotonic(), str(lost))
    return Vouched(time.monotonic()) if any(t.canary is not None for t in trials) else None

"""A worker process: one device, one Celery worker, until it is told to stop."""

import math
import os
import time
from collections.abc import Callable
from functools import partial

import structlog
from celery import Celery

from orchestrator.domain.errors import InfraError
from orchestrator.domain.lease import Hold
from orchestrator.domain.names import news_key, worker_queues
from orchestrator.domain.settings import Settings
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import RedisClient, connect
from workers.acks import free_the_slot_of_every_batch
from workers.bench import CALL_TIMEOUT_S, Bench
from workers.consumption import Consumption, end_stalled
from workers.discovery import Reachable, host_name
from workers.identity import phone_id
from workers.leasing import leased
from workers.locks import exclusive
from workers.opening import open_bench
from workers.patience import told_to_stop
from workers.registry import Heartbeat, await_unserved
from workers.tasks import make_app
from workers.transports.adb import AdbDevice
from workers.transports.adb_server import server_address

HOLD_POLL_S = 2.0
ANSWER_S = 5.0
"""A link to Redis that hangs must not keep a renewal past the end of its lease."""
log = structlog.get_logger()


def serve(found: Reachable, broker: str, settings: Settings) -> None:
    """Probe the device, register it, and run batches from its queues.

    Returns after a warm shutdown (SIGTERM or SIGINT: the current batch is finished first).

    Raises:
        BrokerUnavailable: no Redis at ``broker``.
        AlreadyServed: another worker serves it.
        InfraError: the device cannot be opened, or Celery gave up.
    """
    client = connect(broker, answer_s=ANSWER_S)
    _await_release(client, found.serial, lambda h: (h.host, h.serial) == (host_name(), found.serial))
    bench = open_alone(found, client, settings)
    client.delete(news_key(bench.record.device_id))  # of earlier workers, and maybe of another host
    heartbeat = Heartbeat(client, bench.record)
    app = make_app(broker, bench, client, heartbeat.registration.worker_id)
    device_id = bench.record.device_id
    consumption = Consumption(
        client, worker_queues(device_id, bench.record.soc.name), leave=partial(end_stalled, client, device_id)
    )
    heartbeat.start()
    consumption.start()
    log.info("serving", device=bench.record.device_id, soc=bench.record.soc.name)
    try:
        work(app, bench)
    finally:
        consumption.stop()
        heartbeat.stop()
        client.close()


def open_alone(found: Reachable, client: RedisClient, settings: Settings) -> Bench:
    """A phone is probed under its lease: not beside a batch of another worker, nor while a person has it.

    All that is asked of it before is who it is. This machine's own GPUs were probed by whoever found them.
    """
    here = host_name()
    await_unserved(client, lambda r: (r.record.host, r.record.serial) == (here, found.serial))
    if found.transport != "adb":
        return open_bench(found, settings)
    device_id = phone_id(AdbDevice(server_address(), found.serial).properties(timeout_s=CALL_TIMEOUT_S))
    _await_release(client, found.serial, lambda h: h.device_id == device_id)
    await_unserved(client, lambda r: r.record.device_id == device_id)

    def waiting(why: str = "used by another Tilefarm process of this host") -> None:
        log.info("waiting for this device", serial=found.serial, why=why)

    holder = f"opening-{here}-{os.getpid()}"
    with (
        leased(Leases(client), device_id, holder, timeout_s=math.inf, on_wait=waiting),
        exclusive(f"device-{device_id}", timeout_s=math.inf, on_wait=waiting),
    ):
        return open_bench(found, settings)


def work(app: Celery, bench: Bench) -> None:
    """Until a signal asks for the end; Celery ends on an error, too, and only notes it."""
    free_the_slot_of_every_batch()
    worker = app.Worker(
        pool="solo",
        concurrency=1,
        queues=worker_queues(bench.record.device_id, bench.record.soc.name),
        hostname=f"{bench.record.device_id}@{bench.record.host}-{os.getpid()}",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
    )
    worker.start()
    if worker.exitcode and not told_to_stop():
        raise InfraError("Celery ended on an error, which is named above in this log")


def _await_release(client: RedisClient, serial: str, is_it: Callable[[Hold], bool]) -> None:
    """Do not even ask a device that a person holds; its id is known only once it is asked."""
    told, leases = "", Leases(client)
    while (hold := next((h for h in leases.holds().values() if is_it(h)), None)) is not None:
        if hold.sentence != told:
            told = hold.sentence
            log.info("waiting for the release of this device", serial=serial, hold=told)
        time.sleep(HOLD_POLL_S)  # for as long as a person needs; SIGTERM ends the wait

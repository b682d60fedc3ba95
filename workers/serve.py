"""A worker process: one device, one Celery worker, until it is told to stop."""

import os
import time

import structlog

from orchestrator.domain.names import device_queues
from orchestrator.domain.settings import Settings
from orchestrator.storage.leases import Leases
from orchestrator.storage.redis_client import connect
from workers.discovery import Reachable, host_name
from workers.locks import exclusive
from workers.opening import open_bench
from workers.registry import Heartbeat
from workers.tasks import make_app

OPEN_WAIT_S = 1800.0
HOLD_POLL_S = 2.0
log = structlog.get_logger()


def serve(found: Reachable, broker: str, settings: Settings) -> None:
    """Probe the device, register it, and run batches from its queues.

    Returns after a warm shutdown (SIGTERM or SIGINT: the current batch is finished first).

    Raises:
        BrokerUnavailable: no Redis at ``broker``.
        InfraError: the device cannot be opened, or another worker serves it.
    """
    client = connect(broker)
    _await_release(Leases(client), found.serial)

    def waiting() -> None:
        log.info("waiting for another Tilefarm process on this device", serial=found.serial)

    with exclusive(f"open-{found.serial}", timeout_s=OPEN_WAIT_S, on_wait=waiting):
        bench = open_bench(found, settings)
    heartbeat = Heartbeat(client, bench.record)
    app = make_app(broker, bench, client, heartbeat.registration.worker_id)
    worker = app.Worker(
        pool="solo",
        concurrency=1,
        queues=device_queues(bench.record.device_id),
        hostname=f"{bench.record.device_id}@{bench.record.host}-{os.getpid()}",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
    )
    heartbeat.start()
    log.info("serving", device=bench.record.device_id, soc=bench.record.soc.name)
    try:
        worker.start()
    finally:
        heartbeat.stop()
        client.close()


def _await_release(leases: Leases, serial: str) -> None:
    """Do not even open a device that a person holds; its id is known only once it is open."""
    told = ""
    while True:
        here = [h for h in leases.holds().values() if (h.host, h.serial) == (host_name(), serial)]
        if not here:
            return
        if here[0].sentence != told:
            told = here[0].sentence
            log.info("waiting for the release of this device", serial=serial, hold=told)
        time.sleep(HOLD_POLL_S)  # for as long as a person needs; SIGTERM ends the wait

"""A worker process with the real Celery, registration and leases, and a phone in memory.

``python -m tests.integration.celery_worker URL DEVICE FOLDER [VISIBILITY_S]``

What its phone does with a case stands in the case's id, or after the id in FOLDER/acts.txt:

- ``wait-NAME``: it takes until FOLDER/NAME is there
- ``kill-…``: SIGKILL to this process
- ``raise-…``: an error that nobody thought of
- ``lose-…``: its result is lost on the way to Redis
- all others: a pass, at once

FOLDER/DEVICE.deaf: the next worker takes nothing, though all else of it lives, and notices in a second.

FOLDER/DEVICE.log has a line for each execution, with its cases: what the phone saw. Leases and registrations
of a worker that was killed end after two seconds, not fifteen.
"""

import os
import re
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from celery import Celery

from orchestrator.domain.device import Soc
from orchestrator.domain.lease import Lease
from orchestrator.domain.names import celery_settings
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Trial
from orchestrator.storage.redis_client import RedisClient
from tests.unit.workers.fake_device import FakeDevice, bench
from workers import consumption, registry, serve, tasks
from workers.bench import Bench
from workers.discovery import Reachable
from workers.leasing import leased
from workers.results import ResultSink

SOC = "FAKE1"
TTL_S, RENEW_S = 4, 0.4


def main(url: str, device_id: str, folder: Path, visibility_s: float | None) -> None:
    phone = FakeDevice()
    listed = folder / "acts.txt"
    lines = listed.read_text("utf-8").splitlines() if listed.is_file() else []
    acts: dict[str, str] = dict(line.split(" ", 1) for line in lines)

    def act(text: bytes) -> bytes:
        cases: list[str] = re.findall(r"^case (\S+)$", phone.jobs[-1], re.MULTILINE)
        with (folder / f"{device_id}.log").open("a", encoding="utf-8") as log:
            log.write(f"{' '.join(cases)}\n")
        for case in cases:
            what, _, name = acts.get(case, case).partition("-")
            while what == "wait" and not (folder / name).exists():
                time.sleep(0.02)  # the test writes it, or ends us
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "raise":
                raise KeyError(name)
        return text

    phone.stdout = act
    made = bench(phone)
    record = replace(
        made.record,
        device_id=device_id,
        serial=device_id,
        resource=device_id,
        soc=Soc(SOC, "Fake", SOC, "", "guess"),
    )

    class LosingSink(ResultSink):
        """Forgets some results: as if Redis had lost what it had acknowledged."""

        def insert(self, trial: Trial, lease: Lease | None = None) -> bool:
            lost = acts.get(trial.case_id, trial.case_id).startswith("lose-")
            return not lost and ResultSink.insert(self, trial, lease)

    def opened(_found: Reachable, _client: RedisClient, _settings: Settings) -> Bench:
        return replace(made, record=record)

    deaf = folder / f"{device_id}.deaf"
    if deaf.exists():
        deaf.unlink()
        consumption.STALL_S, consumption.POLL_S = 1.0, 0.1

        def hears_nothing(_app: Celery, _bench: Bench) -> None:
            threading.Event().wait()

        serve.work = hears_nothing
    serve.open_alone = opened
    tasks.ResultSink = LosingSink
    tasks.leased = partial(leased, ttl_s=TTL_S, renew_s=RENEW_S)
    registry.REGISTRATION_TTL_S, registry.HEARTBEAT_S = TTL_S, RENEW_S
    if visibility_s is not None:
        configured = celery_settings()
        configured["broker_transport_options"] |= {
            "visibility_timeout": visibility_s,
            "unacked_restore_interval": 0.2,
            "unacked_restore_throttle": 1,
        }
        tasks.celery_settings = lambda: configured
    serve.serve(Reachable("local", device_id), url, Settings())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4]) if len(sys.argv) > 4 else None)

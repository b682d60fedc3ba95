"""Names in Redis: queues, keys and the settings of Celery, the same on both sides of the broker.

Only internal ids (``[a-z0-9-]``) and run ids become part of a name.
"""

import re
from typing import Any, Literal

from orchestrator.domain.digest import sha256_hex

RUN_BATCH_TASK = "tilefarm.run_batch"
CELERY_PREFIX = "tilefarm:celery:"
"""A queue is a list there, and no key while it is empty."""
HEARTBEAT_S = 2.0
REGISTRATION_TTL_S = 10
"""A worker that has not renewed its registration for this long counts as gone."""
RUN_KEYS_TTL_S = 7 * 24 * 3600
POISON_TTL_S = 7 * 24 * 3600
DEVICE_KEY_PREFIX = "tilefarm:device:"
AGENT_KEY_PREFIX = "tilefarm:agent:"
AGENT_TTL_S = 15
NEWS_KEPT = 50
"""Of a device, until its agent reads them; with nobody to read, older ones go."""
DEGRADED_KEPT = 50
"""Of a device, the newest."""
HOLD_KEY_PREFIX = "tilefarm:hold:"
LEASE_TTL_S = 30
"""A lease that was not renewed for this long ends: so long a killed worker's device stays taken, and a Redis
that restarts may be away for most of it at no cost."""
LEASE_RENEW_S = 3.0

STATE_KEY_PREFIX = "tilefarm:state:"
LIVE_TTL_S = 30
"""A run whose dispatcher has not said that it lives for this long waits for nothing any more."""
SUBMISSIONS_KEY = "tilefarm:submissions"
"""Hash: run id → Submission, from `tilefarm submit` until an orchestrator has finished the run."""
ORCHESTRATOR_QUEUE = "orchestrator"
NIGHTS_TASK = "tilefarm.nights"
"""Sent by beat, received by the orchestrator: look whether a night is due."""
SERVICE_KEY_PREFIX = "tilefarm:service:"
SERVICE_TTL_S = 30

Lane = Literal["ondemand", "nightly"]
LANES: tuple[Lane, ...] = ("ondemand", "nightly")
"""In the order in which they are served."""


def device_queue(device_id: str, lane: Lane) -> str:
    return f"device.{device_id}.{lane}"


def soc_queue(soc: str, lane: Lane) -> str:
    """For work that any phone with this SoC may do; ``soc`` is its name."""
    return f"soc.{soc_slug(soc)}.{lane}"


def worker_queues(device_id: str, soc: str) -> list[str]:
    """Queues that the worker of one device serves, in that order."""
    return [queue for lane in LANES for queue in (device_queue(device_id, lane), soc_queue(soc, lane))]


def soc_slug(soc: str) -> str:
    """A SoC's name is text of a driver: letters for people, and a digest so that no two names meet."""
    letters = re.sub(r"[^a-z0-9]+", "-", soc.lower())[:32].strip("-")
    return f"{letters}-{sha256_hex(soc.encode('utf-8', 'surrogateescape'))[:8]}".lstrip("-")


def state_key(run_id: str) -> str:
    """What a run's dispatcher says of it (RunState); stays for as long as the run's other keys."""
    return STATE_KEY_PREFIX + run_id


def live_key(run_id: str) -> str:
    """There while a process carries the run out."""
    return f"tilefarm:live:{run_id}"


def service_key(name: str, host: str) -> str:
    """There while a service (``orchestrator``, ``beat``) lives on a host."""
    return f"{SERVICE_KEY_PREFIX}{name}:{sha256_hex(host.encode('utf-8', 'surrogateescape'))[:16]}"


def device_key(device_id: str) -> str:
    return DEVICE_KEY_PREFIX + device_id


def lease_key(device_id: str) -> str:
    """String: ``TOKEN HOLDER``, gone when the lease has ended."""
    return f"tilefarm:lease:{device_id}"


def token_key(device_id: str) -> str:
    """The newest fencing token of a device; never expires."""
    return f"tilefarm:token:{device_id}"


def hold_key(device_id: str) -> str:
    return HOLD_KEY_PREFIX + device_id


def news_key(device_id: str) -> str:
    """List: what a worker tells the agent of its host about the device."""
    return f"tilefarm:news:{device_id}"


def degraded_key(device_id: str) -> str:
    """List: when a worker of the device took nothing and was replaced, for the runs that it delayed."""
    return f"tilefarm:degraded:{device_id}"


def agent_key(host: str) -> str:
    """Hosts are not ours to name: only a digest of the name becomes part of a key."""
    return AGENT_KEY_PREFIX + sha256_hex(host.encode("utf-8", "surrogateescape"))[:16]


def run_key(run_id: str) -> str:
    """There while a run's batches may be queued: an id that `tilefarm cancel` knows."""
    return f"tilefarm:run:{run_id}"


def trials_key(run_id: str) -> str:
    """Hash: trial key → trial; the place where a result is inserted once."""
    return f"tilefarm:run:{run_id}:trials"


def cancelled_key(run_id: str) -> str:
    """Why a run was ended by a person; its workers and its dispatcher look here."""
    return f"tilefarm:run:{run_id}:cancelled"


def given_up_key(run_id: str) -> str:
    """Hash: device id → why the run waits for it no more; written by the worker that waited in vain."""
    return f"tilefarm:run:{run_id}:given-up"


def begun_key(run_id: str) -> str:
    """Hash: trial key → ids of the workers that had it in hand and did not bring its result, by spaces."""
    return f"tilefarm:run:{run_id}:begun"


def poison_key(what: str) -> str:
    """Reason why a shader is not run any more; ``what`` stands for SoC, driver and code hash."""
    return f"tilefarm:poison:{what}"


def events_key(run_id: str) -> str:
    """Stream of ``trial`` and ``progress`` entries, in the order they happened."""
    return f"tilefarm:run:{run_id}:events"


def celery_settings() -> dict[str, Any]:
    """Celery configuration; JSON only, late acknowledgement, one batch at a time.

    The visibility timeout is above the half hour that a batch may wait and the minutes that it runs. What is
    delivered again all the same (a case may rest for hours) does no harm: the worker leaves out cases whose
    results are in.
    """
    return {
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_ignore_result": True,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_hijack_root_logger": False,
        "broker_connection_retry_on_startup": True,
        "broker_transport_options": {
            "visibility_timeout": 3600,
            "queue_order_strategy": "priority",
            "global_keyprefix": CELERY_PREFIX,
        },
    }

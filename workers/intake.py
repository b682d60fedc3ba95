"""A message from the queue becomes a batch, or is refused before the phone is touched."""

import json
from dataclasses import replace
from typing import cast

import structlog

from orchestrator.domain.batch_check import answerable, check_batch
from orchestrator.domain.errors import WireError
from orchestrator.domain.job import Batch
from orchestrator.domain.limits import is_word, printable
from orchestrator.domain.wire import MAX_BATCH_BYTES, unpack
from orchestrator.storage.redis_client import RedisClient
from workers.bench import Bench
from workers.results import ResultSink
from workers.run_watch import RunWatch
from workers.session import infra_trials

log = structlog.get_logger()


def taken(message: object, bench: Bench, client: RedisClient) -> Batch | None:
    """The batch; None for one that was refused.

    One that says too much or the wrong thing ends as ``infra`` with the reason, if its ids can be trusted so
    far. One that cannot be read (of another version, say) makes its run give this device up with the reason,
    if it names a run: that would wait for results in vain.
    """
    where = f"batch for {bench.record.device_id}"
    try:
        batch = unpack(Batch, message, where, MAX_BATCH_BYTES)
    except WireError as e:
        _unread(message, bench, client, str(e))
        return None
    try:
        check_batch(batch, where)
    except WireError as e:
        _refused(batch, bench, client, printable(str(e)))
        return None
    return batch


def _refused(batch: Batch, bench: Bench, client: RedisClient, why: str) -> None:
    if not answerable(batch):
        log.error("batch dropped: nobody can be told", why=why)
        return
    log.error("batch refused", run=batch.run_id, why=why)
    sink = ResultSink(client, batch.run_id, batch.planned_for)
    for trial in infra_trials(bench, batch.run_id, batch.cases, f"refused: {why}"):
        sink.insert(replace(trial, code_hash=""))  # what was refused is not repeated


def _unread(message: object, bench: Bench, client: RedisClient, why: str) -> None:
    body = _body(message)
    run_id, target = _word(body, "run_id"), _word(body, "planned_for") or bench.record.device_id
    if not run_id:
        log.error("batch dropped: nobody can be told", why=why)
        return
    log.error("batch refused", run=run_id, why=why)
    RunWatch(client, run_id, target).give_up(f"its worker cannot read its work: {why}")


def _body(message: object) -> dict[str, object]:
    """Of a message of whatever version."""
    if not isinstance(message, str) or len(message) > MAX_BATCH_BYTES:
        return {}
    try:
        envelope: object = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    body = cast("dict[str, object]", envelope).get("body") if isinstance(envelope, dict) else None
    return cast("dict[str, object]", body) if isinstance(body, dict) else {}


def _word(body: dict[str, object], name: str) -> str:
    word = body.get(name)
    return word if isinstance(word, str) and is_word(word) else ""

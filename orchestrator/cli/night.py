"""The process of one night: its run, begun once and gone on with after any crash, and its report in time.

Whatever dies, the orchestrator starts the same command again. The night's lock, its run id and what lies in
the run's folder say what is left to do.
"""

import shutil
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import redis
import structlog

from orchestrator.cli.finish import Finished
from orchestrator.cli.new_run import new_run
from orchestrator.cli.output import say
from orchestrator.cli.prepare import Wanted
from orchestrator.cli.resume import close_run, resume_run
from orchestrator.domain.errors import (
    BrokerUnavailable,
    InfraError,
    KernelFolderError,
    TilefarmError,
    UsageError,
)
from orchestrator.domain.moment import utc_now
from orchestrator.domain.night import NightRecord
from orchestrator.domain.settings import Settings
from orchestrator.execution.broker import Broker
from orchestrator.execution.night_deadline import ends_at
from orchestrator.execution.night_folder import NightFolder
from orchestrator.execution.run_folder import RunFolder
from orchestrator.storage.night_claims import NightClaims
from orchestrator.storage.redis_client import connect

MAX_WHY = 400
"""Characters of an error that a night keeps."""
MAX_DEGRADED = 20
"""Sentences that a night keeps; its run's results.json has all."""
log = structlog.get_logger()


def run_night(settings: Settings, night: str, wanted: Wanted) -> Finished:
    """Carry out a night that the orchestrator has recorded, or what is left of it.

    Raises:
        UsageError: there is nothing to do, or another process does it.
        TilefarmError: it failed; the record says whether for good, or the next process goes on.
    """
    if not settings.broker:
        raise UsageError("--night: TILEFARM_BROKER is not set, and nights are an orchestrator's affair")
    nights = NightFolder(settings.out)
    nights.get(night)  # before a lock of that name is made
    with nights.alone(night) as alone:
        if not alone:
            raise UsageError(f"{night}: another process carries this night out")
        record = nights.get(night)
        if record.state != "started":
            raise UsageError(f"{night}: this night is over ({record.state}), see `tilefarm nights`")
        try:
            finished = _carry_out(settings, record, replace(wanted, suite=record.suite, night=record))
        except TilefarmError as e:
            _keep(settings, nights, _after_error(record, e, _now()))
            raise
        summary = finished.summary
        _keep(
            settings,
            nights,
            replace(
                record,
                state="finished",
                ended_at=utc_now(),
                verdict=summary.sentence,
                exit_code=summary.exit_code,
                why="",
                degraded=finished.reports.model.run.degraded[:MAX_DEGRADED],
            ),
        )
        return finished


def _carry_out(settings: Settings, record: NightRecord, wanted: Wanted) -> Finished:
    folder = RunFolder(settings.out / "runs" / record.run_id)
    why = f"the night's deadline of {record.deadline_s / 3600:g} h"
    if _now() < record.closes_at:
        try:
            with ends_at(record.closes_at, lambda: _cancel(settings, record.run_id, why)):
                return _run(settings, record, wanted, folder)
        except BrokerUnavailable:
            if _now() < record.closes_at or not _planned(folder):
                raise
        except KernelFolderError as e:
            if not _planned(folder):
                raise
            failed = f"its kernels failed: {str(e).partition(chr(10))[0]}"
            return close_run(folder, settings, wanted.gate, failed)
    if not _planned(folder):
        last = f"; last: {record.why}" if record.why else ""
        raise InfraError(f"{record.night}: nothing was planned until {why}{last}")
    say(f"{record.night}: {why} is over; the report is made of what is there")
    try:
        _cancel(settings, record.run_id, why)
        return resume_run(settings, record.run_id, wanted.gate, unattended=True)  # also reads Redis
    except TilefarmError as e:  # no Redis, or kernels that were broken since
        log.warning("the report is made of the run's folder alone", error=str(e))
        return close_run(folder, settings, wanted.gate, why)


def _run(settings: Settings, record: NightRecord, wanted: Wanted, folder: RunFolder) -> Finished:
    if _planned(folder):
        return resume_run(settings, record.run_id, wanted.gate, unattended=True)
    if folder.path.exists():
        shutil.rmtree(folder.path)  # of a process that was killed before it had planned anything
    return new_run(settings, wanted, record.run_id, unattended=True)


def _planned(folder: RunFolder) -> bool:
    return (folder.path / "manifest.json").is_file()


def _cancel(settings: Settings, run_id: str, why: str) -> bool:
    broker = Broker(settings.broker)
    try:
        return broker.cancel(run_id, why)
    finally:
        broker.close()


def _after_error(record: NightRecord, error: TilefarmError, now: datetime) -> NightRecord:
    """Failed for good where trying again changes nothing: a wrong matrix, or the deadline."""
    why = str(error)[:MAX_WHY]
    if error.exit_code == UsageError.exit_code or now >= record.closes_at:
        return replace(record, state="failed", ended_at=utc_now(), exit_code=error.exit_code, why=why)
    return replace(record, why=why)


def _keep(settings: Settings, nights: NightFolder, record: NightRecord) -> None:
    """On disk; in Redis too if that is there, else at the orchestrator's next look."""
    nights.replace(record)
    with suppress(BrokerUnavailable, redis.RedisError):
        client = connect(settings.broker, answer_s=10.0)
        try:
            NightClaims(client).publish(record)
        finally:
            client.close()


def _now() -> datetime:
    return datetime.now(UTC)

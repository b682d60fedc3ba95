"""One batch on one device: push what is missing, run, prove the output, judge, pull tensors.

A plain function of its arguments; Celery, Redis and locks stay outside. Whatever goes wrong with the
transport becomes trials with verdict ``infra``: it never blames a kernel and is never lost.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from orchestrator.domain.errors import InfraError, NoSpace
from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch, CaseJob, CheckJob
from orchestrator.domain.trial import Numerics, Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.storage.blobs import BlobStore
from workers.bench import CALL_TIMEOUT_S, PUSH_TIMEOUT_S, Bench
from workers.job_folder import job_text
from workers.judge import judge
from workers.recheck import recheck
from workers.result_stream import CaseRecord, ResultStream

IDLE_TIMEOUT_S = 30.0
"""The runner sends a heartbeat every second; this much silence means that link or phone is gone."""
BATCH_MARGIN_S = 60.0
SAMPLE_ONE_IN = 16
"""One pass in so many is pulled and compared again on the host."""
BLOB_QUOTA_BYTES = 1 << 30

OnProgress = Callable[[Progress], None]


@dataclass(slots=True)
class _Clocked:
    """When each case started and how long it took, as seen on the host."""

    started_at: dict[str, str] = field(default_factory=dict[str, str])
    _began: dict[str, float] = field(default_factory=dict[str, float])
    duration_ms: dict[str, int] = field(default_factory=dict[str, int])

    def start(self, case_id: str) -> None:
        self.started_at[case_id] = _utc()
        self._began[case_id] = time.monotonic()

    def end(self, case_id: str) -> None:
        began = self._began.get(case_id, time.monotonic())
        self.duration_ms[case_id] = round((time.monotonic() - began) * 1000)


def run_batch(
    bench: Bench, batch: Batch, cases: Sequence[CaseJob], store: BlobStore, on_progress: OnProgress
) -> list[Trial]:
    """Run ``cases`` of a batch; one trial for each, in order."""
    clocked = _Clocked()
    cases = [_with_sample(c, batch.run_id) for c in cases]
    folder = f"{bench.device.workdir}/jobs/{batch.batch_id}"
    try:
        records = _execute(bench, batch.run_id, folder, cases, store, clocked, on_progress)
    except InfraError as e:
        trials = infra_trials(bench, batch.run_id, cases, str(e), clocked)
        refused = set[str]()
    else:
        trials = _trials(bench, batch.run_id, folder, cases, records, store, clocked)
        refused = {d for c in cases if (r := records.get(c.case_id)) for d in c.blobs() if d in r.end.reason}
    _clean_up(bench, refused)
    return trials


def _execute(
    bench: Bench,
    run_id: str,
    folder: str,
    cases: Sequence[CaseJob],
    store: BlobStore,
    clocked: _Clocked,
    on_progress: OnProgress,
) -> dict[str, CaseRecord]:
    device = bench.device
    blobs_dir = f"{device.workdir}/blobs"
    _push_blobs(bench, blobs_dir, cases, store)
    # Relative to the job folder: a virtual phone's paths are not this host's.
    text = job_text(run_id, cases, "../../blobs")
    device.push(text.encode("ascii"), f"{folder}/job.txt", timeout_s=PUSH_TIMEOUT_S)
    stream = ResultStream(f"{device.serial}: run {folder.rsplit('/', 1)[-1]}", run_id)

    def on_line(line: bytes) -> None:
        kind, case_id = stream.feed(line)
        if kind == "start":
            clocked.start(case_id)
            on_progress(Progress(bench.record.device_id, "started", case_id))
        elif kind == "end":
            clocked.end(case_id)
            on_progress(Progress(bench.record.device_id, "ended", case_id))

    total_s = sum(c.deadline_ms for c in cases) / 1000 + BATCH_MARGIN_S
    code = device.stream(
        [bench.runner, "run", folder], on_line, timeout_s=total_s, idle_timeout_s=IDLE_TIMEOUT_S
    )
    records = stream.finish()
    if code != 0:
        raise InfraError(f"{device.serial}: the runner ended with exit code {code}")
    return {r.end.case: r for r in records}


def _push_blobs(bench: Bench, blobs_dir: str, cases: Iterable[CaseJob], store: BlobStore) -> None:
    device = bench.device
    needed = set[str]().union(*(c.blobs() for c in cases))
    there = device.list_dir(blobs_dir, timeout_s=CALL_TIMEOUT_S)
    if sum(there.values()) > BLOB_QUOTA_BYTES:
        there = _drop_blobs(bench, blobs_dir, there, needed)
    for digest in sorted(needed - there.keys()):
        data = store.get(digest)
        try:
            device.push(data, f"{blobs_dir}/{digest}", timeout_s=PUSH_TIMEOUT_S)
        except NoSpace:
            # Room is made once, from blobs of earlier batches; a second refusal is the phone's problem.
            there = _drop_blobs(bench, blobs_dir, there, needed)
            device.push(data, f"{blobs_dir}/{digest}", timeout_s=PUSH_TIMEOUT_S)


def _drop_blobs(bench: Bench, blobs_dir: str, there: Iterable[str], needed: set[str]) -> dict[str, int]:
    for name in set(there) - needed:
        bench.device.remove(f"{blobs_dir}/{name}", timeout_s=CALL_TIMEOUT_S)
    return dict(bench.device.list_dir(blobs_dir, timeout_s=CALL_TIMEOUT_S))


def _trials(
    bench: Bench,
    run_id: str,
    folder: str,
    cases: Sequence[CaseJob],
    records: dict[str, CaseRecord],
    store: BlobStore,
    clocked: _Clocked,
) -> list[Trial]:
    """Judge each case on its own. The output is proven: a link that drops only now takes nothing from the
    cases that need no second opinion."""
    trials: list[Trial] = []
    lost = ""
    for case in cases:
        trial = _trial(bench, run_id, case, records, clocked)
        if _to_pull(case, trial):
            try:
                trial = trial if lost else _second_opinion(bench, folder, case, trial, store)
            except InfraError as e:
                lost = f"its tensor could not be compared on the host: {e}"
            if lost:  # the next pulls would only run into their deadlines, too
                trial = replace(trial, verdict=Verdict.INFRA, reason=lost)
        trials.append(trial)
    return trials


def _trial(
    bench: Bench, run_id: str, case: CaseJob, records: dict[str, CaseRecord], clocked: _Clocked
) -> Trial:
    record = records.get(case.case_id)
    if record is None:
        return _infra(bench, run_id, case, "the runner's output has no end record for it", clocked)
    end = record.end
    verdict, reason = judge(end, case)
    return Trial(
        run_id=run_id,
        device_id=bench.record.device_id,
        case_id=case.case_id,
        attempt=case.attempt,
        verdict=verdict,
        reason=reason,
        code_hash=case.code_hash,
        started_at=clocked.started_at.get(case.case_id, _utc()),
        duration_ms=clocked.duration_ms.get(case.case_id, 0),
        driver=record.driver,
        log=end.log + (" […log cut by the runner]" if end.log_truncated else ""),
        timing=end.timing,
        sensors=end.sensors,
        outputs=end.outputs,
    )


def _to_pull(case: CaseJob, trial: Trial) -> list[tuple[CheckJob, Numerics]]:
    """Outputs whose tensor the runner was to keep for the host."""
    failed = trial.verdict in (Verdict.MISMATCH, Verdict.NONDETERMINISTIC)
    outputs = {o.buffer: o for o in trial.outputs}
    wanted = [c for c in case.checks if (failed or c.keep == "always") and c.buffer in outputs]
    return [(c, outputs[c.buffer]) for c in wanted]


def _second_opinion(bench: Bench, folder: str, case: CaseJob, trial: Trial, store: BlobStore) -> Trial:
    """Pull what the runner kept, compare it on the host, and keep it in the blob store.

    A tensor that the device could not keep leaves the verdict as it is, without a second opinion.
    """
    tensors: dict[str, str] = {}
    for check, numerics in _to_pull(case, trial):
        if numerics.keep_error:
            continue
        path = f"{folder}/tensors/{case.case_id}.{check.buffer}.bin"
        tensor = bench.device.pull(path, timeout_s=PUSH_TIMEOUT_S)
        if doubt := recheck(tensor, store.get(check.reference), numerics, check):
            return replace(trial, verdict=Verdict.INFRA, reason=doubt, recheck="disagreed")
        tensors[check.buffer] = store.put(tensor)
    return replace(trial, tensors=tensors, recheck="agreed" if tensors else "")


def _with_sample(case: CaseJob, run_id: str) -> CaseJob:
    """Choose the passes whose tensor is pulled: random over runs, the same when a batch is repeated."""
    draw = hashlib.sha256(f"{run_id}/{case.case_id}".encode()).digest()[0]
    if draw % SAMPLE_ONE_IN:
        return case
    checks = [CheckJob(c.buffer, c.reference, c.atol, c.rtol, c.nmse, "always") for c in case.checks]
    return replace(case, checks=checks)


def infra_trials(
    bench: Bench, run_id: str, cases: Sequence[CaseJob], reason: str, clocked: _Clocked | None = None
) -> list[Trial]:
    """Rows for cases that infrastructure kept from us."""
    return [_infra(bench, run_id, c, reason, clocked or _Clocked()) for c in cases]


def _infra(bench: Bench, run_id: str, case: CaseJob, reason: str, clocked: _Clocked) -> Trial:
    return Trial(
        run_id=run_id,
        device_id=bench.record.device_id,
        case_id=case.case_id,
        attempt=case.attempt,
        verdict=Verdict.INFRA,
        reason=reason,
        code_hash=case.code_hash,
        started_at=clocked.started_at.get(case.case_id, _utc()),
        duration_ms=clocked.duration_ms.get(case.case_id, 0),
    )


def _clean_up(bench: Bench, refused: Iterable[str]) -> None:
    """Remove the job folder, those that killed workers left behind, and blobs that the runner refused as
    damaged (a phone that died while it wrote): the next attempt pushes them again."""
    workdir = bench.device.workdir
    try:
        for path in (f"{workdir}/jobs", *(f"{workdir}/blobs/{digest}" for digest in refused)):
            bench.device.remove(path, timeout_s=CALL_TIMEOUT_S)
    except InfraError:
        # The phone is gone or full: its trials say so already, and the next batch uses another folder.
        return


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

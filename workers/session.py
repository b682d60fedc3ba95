"""One batch on one device: push what is missing, run, prove the output, judge, pull tensors.

A plain function of its arguments; Celery, Redis and locks stay outside. Whatever goes wrong with the
transport becomes trials with verdict ``infra``: it never blames a kernel and is never lost.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from orchestrator.domain.errors import DeadlineExceeded, InfraError, LeaseLost, RunCancelled
from orchestrator.domain.event import Progress
from orchestrator.domain.job import Batch, CaseJob
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.storage.blobs import BlobStore
from workers.awake import state_in_words
from workers.bench import CALL_TIMEOUT_S, PUSH_TIMEOUT_S, Bench
from workers.blob_cache import BlobCache, drop
from workers.canary import Part, parts
from workers.job_folder import job_text
from workers.judge import judge
from workers.read_ahead import read_ahead, sizes
from workers.result_stream import CaseRecord, ResultStream
from workers.tensors import bring_home, is_wanted, left_behind

IDLE_TIMEOUT_S = 30.0
"""The runner sends a heartbeat every second; this much silence means that link or phone is gone."""
BATCH_MARGIN_S = 60.0
SAMPLE_ONE_IN = 16
"""One pass in so many is pulled and compared again on the host."""

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
    bench: Bench,
    batch: Batch,
    cases: Sequence[CaseJob],
    store: BlobStore,
    on_progress: OnProgress,
    still_ours: Callable[[], None] = lambda: None,
    on_trouble: Callable[[InfraError], None] = lambda error: None,
) -> list[Trial]:
    """Run ``cases`` of a batch, those of one API together; one trial for each, in the order given.

    Args:
        still_ours: raises LeaseLost once the device is somebody else's, or RunCancelled; asked at every line.
        on_trouble: told of each error that made trials ``infra``, of the device or of the host.

    Raises:
        LeaseLost: the runner was ended, and the device is left as it is. Once the runner has ended by itself
            nothing is raised: its trials stand, and only what would still have been asked of the device is
            left out.
        RunCancelled: the runner was ended, and the device is left clean.
    """
    clocked = _Clocked()
    cases = [_with_sample(c, batch.run_id) for c in cases]
    work = parts(cases, batch.canaries)
    folder = f"{bench.device.workdir}/jobs/{batch.batch_id}"
    try:
        records = _execute(bench, batch.run_id, folder, work, store, clocked, on_progress, still_ours)
    except LeaseLost:
        raise
    except RunCancelled:
        _clean_up(bench, ())
        raise
    except InfraError as e:
        on_trouble(e)
        why = str(e) + (_state(bench, still_ours) if isinstance(e, DeadlineExceeded) else "")
        trials = infra_trials(bench, batch.run_id, cases, why, clocked)
        refused = set[str]()
    else:
        trials = _trials(bench, batch.run_id, folder, work, records, store, clocked, still_ours, on_trouble)
        refused = _refused([job for part in work for job in part.jobs()], records)
        if any(t.verdict is Verdict.HUNG for t in trials):
            state = _state(bench, still_ours)
            trials = [replace(t, reason=t.reason + state) if t.verdict is Verdict.HUNG else t for t in trials]
    if not _lost(still_ours):  # else the folders there are of whoever has the device now
        _clean_up(bench, refused)
    made = {t.case_id: t for t in trials}
    return [made[c.case_id] for c in cases]


def _lost(still_ours: Callable[[], None]) -> str:
    """Why the device may be touched no more, after the runner's end: what is measured stays, also of a run
    that is ended."""
    try:
        still_ours()
    except LeaseLost as e:
        return str(e)
    except RunCancelled:
        pass
    return ""


def _state(bench: Bench, still_ours: Callable[[], None]) -> str:
    """Of a phone on which something took too long, for the reason: a screen that is off is one."""
    ask = bench.record.transport == "adb" and not _lost(still_ours)
    state = state_in_words(bench.device) if ask else ""
    return f"; {state}" if state else ""


def _refused(jobs: Sequence[CaseJob], records: Mapping[str, CaseRecord]) -> set[str]:
    """Blobs that the runner named in a reason: damaged on the device."""
    return {d for j in jobs if (r := records.get(j.case_id)) for d in j.blobs() if d in r.end.reason}


def _execute(
    bench: Bench,
    run_id: str,
    folder: str,
    work: Sequence[Part],
    store: BlobStore,
    clocked: _Clocked,
    on_progress: OnProgress,
    still_ours: Callable[[], None],
) -> dict[str, CaseRecord]:
    device = bench.device
    jobs = [job for part in work for job in part.jobs()]
    told = {case.case_id for part in work for case in part.cases}
    still_ours()
    _push_blobs(bench, jobs, store, still_ours)
    # Relative to the job folder: a virtual phone's paths are not this host's.
    text = job_text(run_id, jobs, "../../blobs", adapter=bench.adapter, enable=bench.enable)
    device.push(text.encode("ascii"), f"{folder}/job.txt", timeout_s=PUSH_TIMEOUT_S)
    stream = ResultStream(f"{device.serial}: run {folder.rsplit('/', 1)[-1]}", run_id)

    def on_line(line: bytes) -> None:
        still_ours()  # a heartbeat comes every second
        kind, case_id = stream.feed(line)
        if case_id not in told:  # nobody planned the canaries that run beside the cases
            return
        if kind == "start":
            clocked.start(case_id)
            on_progress(Progress(bench.record.device_id, "started", case_id))
        elif kind == "end":
            clocked.end(case_id)
            on_progress(Progress(bench.record.device_id, "ended", case_id))

    still_ours()
    total_s = sum(job.deadline_ms for job in jobs) / 1000 + BATCH_MARGIN_S
    code = device.stream(
        [bench.runner, "run", folder], on_line, timeout_s=total_s, idle_timeout_s=IDLE_TIMEOUT_S
    )
    records = stream.finish()
    if code != 0:
        raise InfraError(f"{device.serial}: the runner ended with exit code {code}")
    return {r.end.case: r for r in records}


def make_room(bench: Bench, batch: Batch, wanted_bytes: int | None = None) -> None:
    """Remove blobs of earlier batches, those first that were not used for longest; a later one pushes them
    again.

    Args:
        wanted_bytes: so much at least; None: all that this batch can do without.

    Raises:
        InfraError: the device does not do it.
    """
    jobs = [*batch.cases, *(canary.job for canary in batch.canaries)]
    BlobCache(bench, _needed(jobs)).make_room(wanted_bytes)


def _needed(cases: Iterable[CaseJob]) -> set[str]:
    return set[str]().union(*(c.blobs() for c in cases))


def _push_blobs(
    bench: Bench, cases: Sequence[CaseJob], store: BlobStore, still_ours: Callable[[], None]
) -> None:
    expected = sizes(cases)

    def blobs(missing: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for digest, data in read_ahead(store, missing, expected):
            still_ours()
            yield digest, data

    BlobCache(bench, _needed(cases)).fill(blobs)


def _trials(
    bench: Bench,
    run_id: str,
    folder: str,
    work: Sequence[Part],
    records: Mapping[str, CaseRecord],
    store: BlobStore,
    clocked: _Clocked,
    still_ours: Callable[[], None],
    on_trouble: Callable[[InfraError], None],
) -> list[Trial]:
    """Judge each case on its own, unless its canary speaks against all of its API. The output is proven: a
    link that drops only now takes nothing from the cases that need no second opinion."""
    trials: list[Trial] = []
    lost = ""
    for part in work:
        vouch = part.vouch(records, bench.latencies)
        for case in part.cases:
            record = records.get(case.case_id)
            trial = vouch.applied(_trial(bench, run_id, case, record, clocked))
            refused = bool(vouch.doubt) and trial.verdict is Verdict.INFRA
            if record is not None and not refused and is_wanted(case, record.end, trial):
                lost = lost or _lost(still_ours)
                try:
                    trial = (
                        trial if lost else bring_home(bench.device, folder, case, record.end, trial, store)
                    )
                except InfraError as e:
                    on_trouble(e)
                    lost = f"its tensor could not be compared on the host: {e}"
                if lost:  # the next pulls would only run into their deadlines, too
                    trial = left_behind(trial, lost)
            trials.append(trial)
    return trials


def _trial(bench: Bench, run_id: str, case: CaseJob, record: CaseRecord | None, clocked: _Clocked) -> Trial:
    if record is None:
        why = "the runner's output has no end record for it"
        return unrun(bench, run_id, case, Verdict.INFRA, why, clocked)
    end = record.end
    verdict, reason = judge(end, case)
    return replace(
        unrun(bench, run_id, case, verdict, reason, clocked),
        driver=record.driver,
        log=end.log + (" […log cut by the runner]" if end.log_truncated else ""),
        timing=end.timing,
        sensors=end.sensors,
        outputs=end.outputs,
    )


def _with_sample(case: CaseJob, run_id: str) -> CaseJob:
    """Choose the passes whose tensor is pulled: random over runs, the same when a batch is repeated."""
    draw = hashlib.sha256(f"{run_id}/{case.case_id}".encode()).digest()[0]
    if draw % SAMPLE_ONE_IN:
        return case
    return replace(case, checks=[replace(check, keep="always") for check in case.checks])


def infra_trials(
    bench: Bench, run_id: str, cases: Sequence[CaseJob], reason: str, clocked: _Clocked | None = None
) -> list[Trial]:
    """Rows for cases that infrastructure kept from us."""
    return [unrun(bench, run_id, c, Verdict.INFRA, reason, clocked) for c in cases]


def unrun(
    bench: Bench,
    run_id: str,
    case: CaseJob,
    verdict: Verdict,
    reason: str,
    clocked: _Clocked | None = None,
) -> Trial:
    """A row without measurement."""
    clocked = clocked or _Clocked()
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
    )


def _clean_up(bench: Bench, refused: Iterable[str]) -> None:
    """Remove the job folder, those that killed workers left behind, and blobs that the runner refused as
    damaged (a phone that died while it wrote): the next attempt pushes them again."""
    try:
        bench.device.remove(f"{bench.device.workdir}/jobs", timeout_s=CALL_TIMEOUT_S)
        drop(bench, refused)
    except InfraError:
        # The phone is gone or full: its trials say so already, and the next batch uses another folder.
        return


def _utc() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

"""What must be true of a run whatever happened to its farm."""

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from orchestrator.domain.digest import sha256_hex, stable_id
from orchestrator.domain.job import CaseJob
from orchestrator.domain.names import CELERY_PREFIX
from orchestrator.domain.trial import Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.domain.wire import from_json
from orchestrator.execution.run_folder import RunFolder, load_results
from orchestrator.storage.blobs import BlobStore
from tests.chaos.farm import ChaosFarm
from tests.chaos.phones import Notes, notes
from tests.farm import wait_for
from tests.unit.execution.redis_fixture import raw_client
from workers.identity import phone_id

END_S, DRAIN_S = 30.0, 120.0
_LASTING = re.compile(rf"tilefarm:token:[a-z0-9-]+|{re.escape(CELERY_PREFIX)}_kombu\.binding\S*")
Planned = tuple[str, str]
"""Target (a device, or a pool of phones of which one does it) and case."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One planned case in the end."""

    accepted: str
    """Verdict and hash of the accepted result; empty where there is none."""
    reason: str
    """Why there is none, or why it is no pass."""


@dataclass(frozen=True, slots=True)
class Found:
    outcomes: dict[Planned, Outcome]
    executions: int
    """Of the runner, on all phones."""
    executed: int
    """Cases in them: more than planned where something was cut off."""
    attempts: int
    """Trials on disk, those that infrastructure took included."""

    @property
    def accepted(self) -> int:
        return sum(bool(o.accepted) for o in self.outcomes.values())

    @property
    def digest(self) -> str:
        """Of all outcomes: the same story has the same one."""
        return stable_id({"/".join(key): o.accepted for key, o in self.outcomes.items()})

    @property
    def named(self) -> Counter[str]:
        """Reasons of cases without a result, numbers and names left out."""
        return Counter(_kind(o.reason) for o in self.outcomes.values() if not o.accepted)


def check(farm: ChaosFarm, run_folder: Path) -> Found:
    """Fails with the first invariant that does not hold."""
    folder = RunFolder(run_folder)
    lines = (run_folder / "trials.jsonl").read_bytes().splitlines()
    trials = [from_json(Trial, line, f"trials.jsonl:{n}") for n, line in enumerate(lines, 1)]
    twice = [key for key, times in Counter(t.key for t in trials).items() if times > 1]
    assert not twice, f"trials.jsonl holds {len(twice)} keys more than once: {twice[:3]} …"
    manifest = folder.manifest()
    planned = {(target, job.case_id): job for target, jobs in manifest.wanted.items() for job in jobs}
    devices = {target: manifest.device_of(target) for target in manifest.wanted}
    outcomes = _outcomes(run_folder, devices, planned, trials)
    store = BlobStore(manifest.blob_store)
    for trial in trials:
        if trial.verdict is Verdict.PASS:
            _is_right(trial, planned[trial.target, trial.case_id], store)
    _redis_is_tidy(farm)
    told = {phone_id(phone.phone.properties()): notes(phone) for phone in farm.phones}
    _no_double_lease(trials, told)
    for phone in farm.phones:
        root = str(phone.phone.root.folder)
        wait_for(lambda root=root: not processes_in(root), f"processes in {root} to end", END_S)
        _left_clean(phone.phone.root.folder, phone.serial)
    executions = [e for n in told.values() for e in n.executions.values()]
    cases = sum(not c.startswith("canary-") for e in executions for c in e.cases)
    return Found(outcomes, len(executions), cases, len(trials))


def _outcomes(
    run_folder: Path, devices: dict[str, str], planned: dict[Planned, CaseJob], trials: list[Trial]
) -> dict[Planned, Outcome]:
    """Each planned case has exactly one accepted result, or a reason."""
    results = load_results(run_folder)
    missing = {(m.device_id, m.case_id): m.why for m in results.missing}
    real = Counter((t.target, t.case_id) for t in trials if t.verdict is not Verdict.INFRA)
    unplanned = real.keys() - planned.keys()
    assert not unplanned, f"{len(unplanned)} results that nobody planned: {sorted(unplanned)[:3]} …"
    twice = [key for key, count in real.items() if count > 1]
    assert not twice, f"{len(twice)} cases with more than one accepted result: {twice[:3]} …"
    counted = {(t.target, t.case_id): t for t in results.trials}
    found: dict[Planned, Outcome] = {}
    for key in planned:
        trial = counted.get(key)
        if trial is not None and trial.verdict is not Verdict.INFRA:
            assert real[key] == 1, f"{key}: in results.json and not in trials.jsonl"
            digest = trial.outputs[0].hash if trial.outputs else ""
            found[key] = Outcome(f"{trial.verdict} {digest}", trial.reason)
            assert trial.verdict is Verdict.PASS or trial.reason, f"{key}: {trial.verdict} without a reason"
        else:
            assert real[key] == 0, f"{key}: its result was accepted and is not in results.json"
            lost = missing.get((devices[key[0]], key[1]), "")
            why = lost or (trial.reason if trial else "")
            assert why, f"{key}: neither a result nor a reason"
            found[key] = Outcome("", why)
    return found


def _is_right(trial: Trial, job: CaseJob, store: BlobStore) -> None:
    """The answer is the reference, rounded: another case's, or half of it, has another hash."""
    (check_job,) = job.checks
    right = sha256_hex(np.frombuffer(store.get(check_job.reference), "<f8").astype("<f4").tobytes())
    assert [o.hash for o in trial.outputs] == [right], f"{trial.key}: a wrong result was accepted"
    assert trial.code_hash == job.code_hash


def _no_double_lease(trials: list[Trial], phones: dict[str, Notes]) -> None:
    """No phone worked for two at a time; each accepted result comes from an execution of its own phone."""
    used: set[int] = set()
    for trial in trials:
        if trial.timing is None:
            continue
        execution = phones[trial.device_id].executions.get(trial.timing.slope_ns)
        assert execution is not None, f"{trial.key}: no execution of its phone gave this result"
        assert trial.case_id in execution.cases
        used.add(execution.number)
    for device, told in phones.items():
        for later, earlier in told.overlaps:
            assert not {later, earlier} <= used, f"{device}: two executions at once, results of both accepted"


def _redis_is_tidy(farm: ChaosFarm) -> None:
    """Whatever was delivered twice is done with, and what stays is a few keys for each phone (G3-08)."""
    with raw_client(farm.redis.url) as raw:
        queues = f"{CELERY_PREFIX}[du]*"  # of devices, and what is in hand
        wait_for(lambda: not list(raw.scan_iter(match=queues)), "queues to be empty", DRAIN_S)
        kept = [key.decode() for key in raw.scan_iter() if raw.ttl(key) == -1]
    odd = [key for key in kept if not _LASTING.fullmatch(key)]
    assert not odd, f"{len(odd)} keys stay in Redis for ever: {odd[:3]} …"


def processes_in(root: str) -> list[int]:
    """A runner whose host went away ends with the next line that it writes."""
    found: list[int] = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it ends meanwhile
            if any(word.startswith(root) for word in process.cmdline()):
                found.append(process.pid)
    return found


def _left_clean(root: Path, serial: str) -> None:
    """No job folder, no part of a file."""
    workdir = root / "data/local/tmp/tilefarm"
    jobs = [p.name for p in workdir.glob("jobs/*")]
    assert not jobs, f"{serial}: job folders left behind: {jobs}"
    odd = [p.name for p in workdir.glob("blobs/*") if not re.fullmatch(r"[0-9a-f]{64}", p.name)]
    assert not odd, f"{serial}: parts of files left behind: {odd}"


def _kind(reason: str) -> str:
    return re.sub(r"\b[\w.-]*\d[\w.:-]*", "…", reason)[:80]

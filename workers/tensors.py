"""Tensors that come home from a device: failures, samples, and what a probe keeps. None is taken on trust."""

from dataclasses import replace

from orchestrator.domain.buffer import ELEMENT_BYTES
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.job import CaseJob, CheckJob
from orchestrator.domain.trial import Numerics, Trial
from orchestrator.domain.verdict import Verdict
from orchestrator.storage.blobs import BlobStore
from workers.bench import PUSH_TIMEOUT_S
from workers.result_stream import EndRecord
from workers.transports.base import Device


def is_wanted(case: CaseJob, end: EndRecord, trial: Trial) -> bool:
    """Is there anything to pull for this trial?"""
    return bool(_checked(case, trial) or _kept(case, end, trial))


def bring_home(
    device: Device, folder: str, case: CaseJob, end: EndRecord, trial: Trial, store: BlobStore
) -> Trial:
    """Pull what the runner kept, compare it on the host, and keep it in the blob store.

    A tensor that the device could not keep leaves the verdict as it is, without a second opinion. Where the
    host disagrees, the trial is ``infra``, unless its outputs differed between replays: the runner's output
    proves that, and no tensor speaks against it.

    Raises:
        InfraError: it cannot be pulled.
    """
    from workers.recheck import recheck  # numpy, 11 MB that most idle workers do without

    tensors: dict[str, str] = {}
    agreed = False
    for check, numerics in _checked(case, trial):
        if numerics.keep_error:
            continue
        tensor = _pull(device, folder, case, check.buffer)
        if doubt := recheck(tensor, store.get(check.reference), numerics, check):
            return _disagreed(trial, doubt)
        tensors[check.buffer] = store.put(tensor)
        agreed = True
    for buffer, (nbytes, digest) in _kept(case, end, trial).items():
        tensor = _pull(device, folder, case, buffer)[:nbytes]
        if (seen := sha256_hex(tensor)) != digest:
            doubt = f"{buffer}: pulled tensor has hash {seen[:12]}, the runner saw {digest[:12]}"
            return _disagreed(trial, doubt)
        tensors[buffer] = store.put(tensor)
    return replace(trial, tensors=tensors, recheck="agreed" if agreed else "")


def left_behind(trial: Trial, why: str) -> Trial:
    """A trial whose tensors cannot be pulled: a failure that is proven stands without a second opinion, so
    that no later attempt turns it green; a pass that was to be compared again, or a probe's output, is
    ``infra``."""
    if trial.verdict in (Verdict.MISMATCH, Verdict.NONDETERMINISTIC):
        return replace(trial, reason=f"{trial.reason}; {why}", recheck="")
    return replace(trial, verdict=Verdict.INFRA, reason=why)


def _disagreed(trial: Trial, doubt: str) -> Trial:
    if trial.verdict is Verdict.NONDETERMINISTIC:
        return replace(trial, reason=f"{trial.reason}; {doubt}", recheck="disagreed")
    return replace(trial, verdict=Verdict.INFRA, reason=doubt, recheck="disagreed")


def _checked(case: CaseJob, trial: Trial) -> list[tuple[CheckJob, Numerics]]:
    """Compared outputs whose tensor the runner was to keep for the host."""
    failed = trial.verdict in (Verdict.MISMATCH, Verdict.NONDETERMINISTIC)
    outputs = {o.buffer: o for o in trial.outputs}
    wanted = [c for c in case.checks if (failed or c.keep == "always") and c.buffer in outputs]
    return [(c, outputs[c.buffer]) for c in wanted]


def _kept(case: CaseJob, end: EndRecord, trial: Trial) -> dict[str, tuple[int, str]]:
    """Outputs without a reference that were asked for and kept: bytes and sha256 of each."""
    if trial.verdict is Verdict.INFRA:
        return {}
    return {
        name: (_bytes(case, name), found.hash)
        for name, found in end.kept.items()
        if name in case.kept and found.kept
    }


def _pull(device: Device, folder: str, case: CaseJob, buffer: str) -> bytes:
    """Padding up to 4 bytes may follow."""
    path = f"{folder}/tensors/{case.case_id}.{buffer}.bin"
    return device.pull(path, timeout_s=PUSH_TIMEOUT_S, at_most=_bytes(case, buffer) + 4)


def _bytes(case: CaseJob, buffer: str) -> int:
    """Of a buffer of the case."""
    return next((b.count * ELEMENT_BYTES[b.dtype] for b in case.buffers if b.name == buffer), 0)

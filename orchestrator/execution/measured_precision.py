"""What each device really delivers: the raw bits of its probe, from the blob store, worked out at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orchestrator.analysis.precision import PROBE, RAW, precisions
from orchestrator.domain.errors import InfraError
from orchestrator.domain.precision import Precision
from orchestrator.domain.results import CaseInfo, Missing
from orchestrator.domain.trial import Trial
from orchestrator.storage.blobs import BlobStore


def measured_precision(
    store: BlobStore, trials: Sequence[Trial], cases: Mapping[str, CaseInfo]
) -> tuple[list[Precision], list[Missing]]:
    """Of every device and API that the probe ran on.

    Raw bits that cannot be read are missing, with the reason: one lost blob costs no other result.
    """
    raw: dict[str, bytes] = {}
    readable: list[Trial] = []
    unread: list[Missing] = []
    for trial in trials:
        info = cases.get(trial.case_id)
        digest = trial.tensors.get(RAW)
        if info is None or info.case.kernel != PROBE or digest is None:
            readable.append(trial)
            continue
        try:
            raw[digest] = store.get(digest)
            readable.append(trial)
        except InfraError as e:
            readable.append(replace(trial, tensors={}))
            unread.append(Missing(trial.device_id, trial.case_id, f"what the probe found: {e}"))
    return precisions(readable, cases, raw.__getitem__), unread

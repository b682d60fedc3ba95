"""Jobs for tests: an output ``o`` of four float32 with a reference of our choice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.job import Batch, BufferJob, CaseJob, CheckJob, PassJob
from orchestrator.domain.kernel import DType
from orchestrator.storage.blobs import BlobStore
from tests.unit.workers.fake_device import Act
from workers.session import SAMPLE_ONE_IN

REFERENCE = (1.0, -2.0, 0.5, 0.0)
WRONG = (1.0, -2.0, 0.75, 0.0)
SHADER = b"#version 310 es\nvoid main() {}\n"


@dataclass(frozen=True, slots=True)
class Stock:
    """Puts what a job needs into a blob store and makes the job."""

    store: BlobStore
    inputs: bytes = np.arange(4, dtype="<f4").tobytes()
    references: Mapping[str, Sequence[float]] = field(default_factory=lambda: {"o": REFERENCE})

    def job(
        self,
        case_id: str,
        *,
        dtype: DType = "f32",
        attempt: int = 1,
        replays: int = 1,
        shader: bytes = SHADER,
        atol: float = 1e-6,
        nmse: float = 1e-10,
    ) -> CaseJob:
        outputs = [BufferJob(name, "out", dtype, len(r)) for name, r in self.references.items()]
        return CaseJob(
            case_id=case_id,
            attempt=attempt,
            label=f"toy {case_id}",
            api="gles",
            code_hash="c0de",
            buffers=[
                BufferJob("x", "in", "f32", len(self.inputs) // 4, self.store.put(self.inputs)),
                *outputs,
            ],
            passes=[
                PassJob(self.store.put(shader), (1, 1, 1), 0, ("x", *self.references)),
            ],
            checks=[
                CheckJob(name, self.store.put(reference_bytes(r)), atol, 0.0, nmse)
                for name, r in self.references.items()
            ],
            replays=replays,
        )

    def batch(self, *cases: CaseJob, run_id: str = "run-1", batch_id: str = "b1") -> Batch:
        return Batch(run_id, batch_id, "fake-1", self.store.url, list(cases))


def reference_bytes(values: Sequence[float]) -> bytes:
    return np.asarray(values, dtype="<f8").tobytes()


def differing() -> Act:
    """Wrong once in five replays, the first of them."""
    first = sha256_hex(np.array(WRONG, "<f4").tobytes())
    differs = {"count": 1, "first": 2, "last": 2}
    return Act(output=WRONG, changes={"hashes": {first: 1, "f" * 64: 4}, "differs": differs})


def unsampled(number: int) -> str:
    """A case id whose passing tensor is not drawn for the sample of run-1."""
    return _ids(drawn=False)[number]


def sampled() -> str:
    return _ids(drawn=True)[0]


def _ids(*, drawn: bool) -> list[str]:
    ids = [f"case-{n}" for n in range(200)]
    return [i for i in ids if (int(sha256_hex(f"run-1/{i}".encode())[:2], 16) % SAMPLE_ONE_IN == 0) == drawn]

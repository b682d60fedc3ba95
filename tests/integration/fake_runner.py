"""Jobs for ``runner_fake``: the runner's own program with a GPU that does what its shader says.

The words of a shader are explained in workers/runner/tests/fake_backend.c.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.job import BufferJob, CaseJob, CheckJob, PassJob
from orchestrator.domain.kernel import DType
from orchestrator.domain.verdict import Verdict
from workers.job_folder import job_text
from workers.judge import judge
from workers.result_stream import CaseRecord, ResultStream

PROGRAM = Path(__file__).parents[2] / "workers" / "runner" / "build" / "linux" / "runner_fake"


@dataclass(slots=True)
class FakeRunner:
    """Job folders under ``folder``, with one blob folder for all."""

    folder: Path
    impose: str = ""
    adapter: str = ""
    enable: Sequence[str] = ()
    _runs: int = 0
    records: Mapping[str, CaseRecord] = field(default_factory=dict[str, CaseRecord])
    """Of the last run, by case."""

    def case(
        self,
        case_id: str,
        shader: str,
        *,
        shape: tuple[int, ...] = (8,),
        dtype: DType = "f32",
        api: str = "vulkan",
    ) -> CaseJob:
        """From x = 1, 2, … to y = 2x, checked exactly."""
        count = int(np.prod(shape))
        x = np.arange(1, count + 1, dtype="<f4").tobytes()
        y = (2.0 * np.arange(1, count + 1, dtype="<f8")).tobytes()
        return CaseJob(
            case_id=case_id, attempt=1, label=case_id, api=api, code_hash="c0de",
            buffers=[BufferJob("x", "in", "f32", count, self._blob(x)), BufferJob("y", "out", dtype, count)],
            passes=[PassJob(self._blob(shader.encode()), (1, 1, 1), 0, ("x", "y"))],
            checks=[CheckJob("y", self._blob(y), 0.0, 0.0, 0.0, shape=shape)],
            deadline_ms=60_000, warmup=0, repeats=0,
        )  # fmt: skip

    def expecting(self, case: CaseJob, values: Sequence[float], tolerance: float) -> CaseJob:
        """The case with another reference."""
        reference = self._blob(np.asarray(values, "<f8").tobytes())
        check = CheckJob("y", reference, tolerance, 0.0, tolerance)
        return replace(case, checks=[check])

    def prepare(self, cases: Sequence[CaseJob]) -> Path:
        """A new job folder for these cases."""
        self._runs += 1
        job = self.folder / "jobs" / f"job{self._runs}"
        job.mkdir(parents=True)
        text = job_text(f"run-{self._runs}", cases, "../../blobs", adapter=self.adapter, enable=self.enable)
        (job / "job.txt").write_text(text, encoding="ascii")
        return job

    def start(self, job: Path) -> subprocess.Popen[bytes]:
        env = os.environ | ({"TILEFARM_IMPOSE": self.impose} if self.impose else {})
        return subprocess.Popen(
            [PROGRAM, "run", job], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )

    def finish(self, process: subprocess.Popen[bytes], cases: Sequence[CaseJob]) -> list[tuple[Verdict, str]]:
        """Verdict and reason of each case, from output that is proven whole."""
        stream = ResultStream("runner_fake")
        text, _ = process.communicate(timeout=120)
        for line in text.splitlines(keepends=True):
            stream.feed(line)
        assert process.returncode == 0
        self.records = {r.end.case: r for r in stream.finish()}
        return [judge(self.records[c.case_id].end, c) for c in cases]

    def run(self, *cases: CaseJob) -> list[tuple[Verdict, str]]:
        return self.finish(self.start(self.prepare(cases)), cases)

    def _blob(self, data: bytes) -> str:
        blobs = self.folder / "blobs"
        blobs.mkdir(exist_ok=True)
        digest = sha256_hex(data)
        (blobs / digest).write_bytes(data)
        return digest

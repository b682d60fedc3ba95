"""Runs cases of real kernels on this machine's software drivers through the real runner, without the farm.

``Bench.run`` writes a job folder for a list of cases, runs the runner's binary on it and gives the parsed
end record of each, with the kept output tensors.
"""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.job import BufferJob, CaseJob, CheckJob, PassJob
from orchestrator.domain.kernel import Array, Kernel, Reference, Tolerance
from orchestrator.domain.settings import Settings
from orchestrator.domain.trial import Numerics
from orchestrator.execution.module_cache import ModuleCache
from orchestrator.execution.slang import SlangCompiler
from orchestrator.execution.spirv import SpirvCompiler, cache_folder
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernels
from orchestrator.planning.render import RenderedCase, RenderedPass, render_case
from tests.kernels.drivers import ROOT, Driver, driver, runner_path
from workers.job_folder import job_text
from workers.judge import judge
from workers.result_stream import CaseRecord, EndRecord, ResultStream

KERNELS = ROOT / "kernels"

NONFINITE = np.array([0x7FF8746172666D21], "<u8").view("<f8")[0]
"""What the runner's reference holds where the output must not be finite (workers/runner/src/compare.h)."""

STORED = {"f32": "<f4", "f16": "<f2", "u32": "<u4"}

_FINISH_S = 800.0


def all_kernels() -> dict[str, LoadedKernel]:
    """The attention kernels that some software driver runs: those without matrix units."""
    ours = {name: k for name, k in load_kernels(KERNELS).items() if k.kernel.op == "attention"}
    return {name: k for name, k in ours.items() if name != "attention_flash_matrix"}


def make_case(
    kernel: Kernel,
    workload: Mapping[str, AxisValue],
    *,
    inputs: str = "normal",
    seed: int = 1,
    axes: Mapping[str, AxisValue] | None = None,
) -> Case:
    """A case with the kernel's defaults for everything not given; words of the workload are resolved."""
    defaults = {a.name: a.default for a in (*kernel.params, *kernel.axes) if a.default is not None}
    shape = {p.name: workload.get(p.name, defaults.get(p.name)) for p in kernel.params}
    resolved = {name: _followed(name, shape) for name in shape}
    chosen = axes or {}
    variant = {a.name: chosen.get(a.name, defaults.get(a.name)) for a in kernel.axes}
    unknown = (set(workload) - set(shape)) | (set(chosen) - set(variant))
    if unknown:
        raise KeyError(f"{kernel.name} has no {sorted(unknown)}")
    return Case(kernel.name, kernel.op, _given(resolved), _given(variant), inputs, seed)


def _followed(name: str, shape: Mapping[str, AxisValue | None]) -> AxisValue | None:
    """The value of a parameter, or of the one that it names."""
    value = shape[name]
    return _followed(value, shape) if isinstance(value, str) and value in shape else value


def _given(values: Mapping[str, AxisValue | None]) -> dict[str, AxisValue]:
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise KeyError(f"no value and no default for {missing}")
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the runner said about one case, and what it was judged by."""

    case: Case
    end: EndRecord
    verdict: str
    reason: str
    tolerance: Tolerance
    reference: Reference
    driver: str
    """Renderer and version."""
    tensor: NDArray[np.float64] | None
    """Kept output in the reference's shape, widened to float64."""

    @property
    def numerics(self) -> Numerics:
        """Comparison of the only output."""
        (only,) = self.end.outputs
        return only

    @property
    def values(self) -> NDArray[np.float64]:
        """The tensor of a bench that keeps them."""
        assert self.tensor is not None, f"{self.case.label}: no tensor came back"
        return self.tensor

    @property
    def allowed(self) -> NDArray[np.float64]:
        """Largest error of each element."""
        return self.tolerance.atol + self.tolerance.rtol * np.abs(self.reference)

    def coordinates(self, index: int) -> tuple[int, int, int]:
        """(head, row, dimension) of an element."""
        head, row, dim = np.unravel_index(index, self.reference.shape)
        return int(head), int(row), int(dim)


@dataclass
class Bench:
    """Job folders under ``folder``; inputs and references are made once per data key."""

    folder: Path
    name: str = "llvmpipe"
    """Of the driver."""
    keep: bool = False
    """Bring every output tensor back."""
    replays: int = 1
    repeats: int = 1
    unoptimised: bool = False
    """Mesa's drivers compile without LLVM's optimisations, in two thirds of the time: for what depends on
    the text alone."""
    _runs: int = 0
    _data: dict[str, tuple[Mapping[str, Array], Reference]] = field(
        default_factory=dict[str, tuple[Mapping[str, Array], Reference]]
    )

    @property
    def driver(self) -> Driver:
        return driver(self.name)

    def possible(self, loaded: LoadedKernel, cases: Iterable[Case]) -> list[tuple[LoadedKernel, Case]]:
        """Those that exist and that the driver can run."""
        return [(loaded, case) for case in cases if self.driver.refuses(loaded.kernel, case) is None]

    def run(self, cases: Sequence[tuple[LoadedKernel, Case]]) -> list[Outcome]:
        """One runner process for all cases, in order."""
        self._runs += 1
        job = self.folder / f"job{self._runs}"
        blobs = self.folder / "blobs"
        job.mkdir(parents=True)
        blobs.mkdir(exist_ok=True)
        jobs = [self._job(blobs, loaded, case, f"c{n}") for n, (loaded, case) in enumerate(cases)]
        needed = {f for loaded, case in cases for f in loaded.kernel.features(case)}
        enable = sorted(needed) if self.driver.api == "vulkan" else ()
        text = job_text(f"test-{self._runs}", jobs, str(blobs), enable=enable)
        (job / "job.txt").write_text(text, encoding="ascii")
        done = subprocess.run(
            [str(runner_path()), "run", str(job)],
            capture_output=True,
            timeout=_FINISH_S,
            check=False,
            env={**self.driver.environment, **({"GALLIVM_PERF": "nopt"} if self.unoptimised else {})},
        )
        stream = ResultStream("runner")
        for line in done.stdout.splitlines(keepends=True):
            stream.feed(line)
        records = {r.end.case: r for r in stream.finish()}
        return [
            self._outcome(job, job_of, loaded, case, records[job_of.case_id])
            for job_of, (loaded, case) in zip(jobs, cases, strict=True)
        ]

    def passing(self, cases: Sequence[tuple[LoadedKernel, Case]]) -> list[Outcome]:
        """Run at least one case, and all of them pass."""
        outcomes = self.run(cases)
        wrong = [
            f"{o.case.label}: {o.verdict} {o.reason} {o.end.log}" for o in outcomes if o.verdict != "pass"
        ]
        assert outcomes
        assert not wrong, "\n".join(wrong)
        return outcomes

    def _job(self, blobs: Path, loaded: LoadedKernel, case: Case, case_id: str) -> CaseJob:
        kernel = loaded.kernel
        if (why := self.driver.refuses(kernel, case)) is not None:
            raise ValueError(f"{case.label}: {why}")
        inputs, reference = self._data_of(kernel, case)
        tolerance = kernel.tolerance(case, inputs)["o"]
        rendered = render_case(loaded, case)
        expected = np.where(np.isnan(reference), NONFINITE, reference).astype("<f8")
        return CaseJob(
            case_id=case_id,
            attempt=1,
            label=case.label,
            api=rendered.api,
            code_hash=rendered.code_hash,
            buffers=[
                BufferJob(
                    b.name,
                    b.role,
                    b.dtype,
                    b.count,
                    _put(blobs, inputs[b.name].tobytes()) if b.name in inputs else None,
                )
                for b in kernel.buffers(case)
            ],
            passes=[
                PassJob(
                    _put(blobs, _shader(rendered, p, case.label)),
                    p.grid,
                    p.shared_bytes,
                    p.buffers,
                    p.constants,
                    p.values,
                )
                for p in rendered.passes
            ],
            checks=[
                CheckJob(
                    "o",
                    _put(blobs, expected.tobytes()),
                    tolerance.atol,
                    tolerance.rtol,
                    tolerance.nmse,
                    "always" if self.keep else "failed",
                )
            ],
            deadline_ms=240_000,
            warmup=0,
            repeats=self.repeats,
            replays=self.replays,
        )

    def _data_of(self, kernel: Kernel, case: Case) -> tuple[Mapping[str, Array], Reference]:
        key = kernel.data_key(case)
        if key not in self._data:
            inputs = kernel.inputs(case)
            self._data[key] = (inputs, kernel.reference(case, inputs)["o"])
        return self._data[key]

    def _outcome(
        self, job: Path, job_of: CaseJob, loaded: LoadedKernel, case: Case, record: CaseRecord
    ) -> Outcome:
        verdict, reason = judge(record.end, job_of)
        inputs, reference = self._data_of(loaded.kernel, case)
        (dtype,) = [b.dtype for b in loaded.kernel.buffers(case) if b.name == "o"]
        kept = job / "tensors" / f"{job_of.case_id}.o.bin"
        tensor = None
        if kept.is_file():
            stored = np.frombuffer(kept.read_bytes(), STORED[dtype], reference.size)
            tensor = stored.astype(np.float64).reshape(reference.shape)
        tolerance = loaded.kernel.tolerance(case, inputs)["o"]
        return Outcome(case, record.end, verdict.value, reason, tolerance, reference, record.driver, tensor)


def compile_spirv(glsl: str, *, where: str) -> bytes:
    """The module of a compute shader, through this user's cache."""
    return SpirvCompiler(cache_folder(Settings())).compile(glsl, where=where)


def _shader(rendered: RenderedCase, step: RenderedPass, where: str) -> bytes:
    if step.is_slang:
        return SlangCompiler(ModuleCache(cache_folder(Settings()))).compile(step.glsl, where=where)
    return compile_spirv(step.glsl, where=where) if rendered.api == "vulkan" else step.glsl.encode("ascii")


def error_beside_budget(outcomes: Iterable[Outcome]) -> tuple[float, float]:
    """Largest error, and the smallest ratio of allowed to seen over all elements; for tables in the docs.

    Raises:
        SystemExit: a case did not pass, or its tensor did not come back.
    """
    seen, ratio = 0.0, np.inf
    for o in outcomes:
        if o.verdict != "pass" or o.tensor is None:
            raise SystemExit(f"{o.case.label}: {o.verdict} {o.reason}")
        error = np.abs(o.tensor - o.reference)
        seen = max(seen, float(error.max()))
        ratio = min(ratio, 1.0 / float((error / o.allowed).max()))
    return seen, ratio


def _put(blobs: Path, data: bytes) -> str:
    name = sha256_hex(data)
    path = blobs / name
    if not path.exists():
        path.write_bytes(data)
    return name

"""From planned cases to jobs: render shaders, make inputs and references, fill the blob store.

References are computed once per ``data_key`` (op, workload, distribution, seed, storage type) and shared
by all variants and devices through their digest. References and error bounds are worked out in a few threads
(numpy lets go of the interpreter meanwhile), and Vulkan's modules are compiled beside them, each distinct one
once.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from orchestrator.domain.case import Case
from orchestrator.domain.errors import ShaderRefused
from orchestrator.domain.job import BufferJob, CaseJob, CheckJob, PassJob
from orchestrator.domain.kernel import NOT_FINITE_BITS, Array, Kernel, Reference
from orchestrator.domain.results import CaseInfo
from orchestrator.execution.kernel_checks import check_case, check_inputs, check_references, stored
from orchestrator.execution.shaders import Shaders
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning.kernel_call import ask
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.matrix import Sampling
from orchestrator.planning.render import RenderedCase, render_case
from orchestrator.storage.blobs import BlobStore

AHEAD = 32
"""Cases rendered, and compiling, before the one that is waited for."""
THREADS = 4
"""At most. Each may hold the tensors of one large workload, a gigabyte for 12 megapixels."""
DEGENERATE_ABSMAX = 1e-12
"""A reference below this carries no signal: its comparison would say nothing (field case G1-02)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case that can be dispatched to any device."""

    info: CaseInfo
    job: CaseJob


@dataclass(frozen=True, slots=True)
class Degenerate:
    """A case whose reference has no signal; it is refused, never passed or failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A case whose shader the host's compiler does not take: dispatched nowhere, failed everywhere."""

    info: CaseInfo
    message: str
    """Template, compiler's words and source lines, the first line naming the first error."""


@dataclass(frozen=True, slots=True)
class Data:
    """Of a ``data_key``."""

    inputs: Mapping[str, Array]
    input_blobs: Mapping[str, str]
    reference_blobs: Mapping[str, str]
    shapes: Mapping[str, list[int]]
    absmax: float
    """Of the weakest output: one with signal does not vouch for another."""


class Preparer:
    """Prepares cases; apart from ``render`` its methods may run in several threads."""

    def __init__(self, store: BlobStore, shaders: Shaders) -> None:
        self._store = store
        self._shaders = shaders

    def render(self, loaded: LoadedKernel, case: Case) -> RenderedCase:
        """A case's shaders, on their way into the store.

        Raises:
            KernelFolderError: the kernel's own code failed.
        """
        rendered = ask(case, "passes", lambda: render_case(loaded, case))
        self._shaders.begin(loaded, rendered)
        return rendered

    def prepare(
        self,
        loaded: LoadedKernel,
        case: Case,
        rendered: RenderedCase,
        sampling: Sampling,
        data: Data,
    ) -> Prepared | Degenerate | Refused:
        """Jobs for one case, with the data of its ``data_key``.

        Raises:
            KernelFolderError: the kernel's own code failed or contradicts itself.
        """
        kernel = loaded.kernel
        if not data.absmax >= DEGENERATE_ABSMAX:
            return Degenerate(f"reference_absmax {data.absmax:.3g} < {DEGENERATE_ABSMAX:.3g}")
        buffers = ask(case, "buffers", lambda: kernel.buffers(case))
        tolerance = dict(ask(case, "tolerance", lambda: kernel.tolerance(case, data.inputs)))
        kept = tuple(ask(case, "kept", lambda: kernel.kept(case)))
        check_case(case, buffers, rendered.passes, data.reference_blobs, tolerance, kept)
        info = CaseInfo(
            case=case,
            code_hash=rendered.code_hash,
            cost=ask(case, "cost", lambda: kernel.cost(case)),
            tolerance=tolerance,
            workgroup=rendered.passes[0].workgroup,
            shared_bytes=max(p.shared_bytes for p in rendered.passes),
            dispatches=len(rendered.passes),
            role=kernel.role,
            output_shape=dict(data.shapes),
            repeats=sampling.repeats,
            replays=sampling.replays,
            idle_replays=sampling.idle_replays,
            min_effect=sampling.min_effect,
        )
        try:
            digests = [self._shaders.digest(loaded, rendered, p) for p in rendered.passes]
        except ShaderRefused as e:
            return Refused(info, str(e))
        job = CaseJob(
            case_id=case.case_id,
            attempt=1,
            label=case.label,
            api=rendered.api,
            code_hash=rendered.code_hash,
            buffers=[
                BufferJob(b.name, b.role, b.dtype, b.count, data.input_blobs.get(b.name)) for b in buffers
            ],
            passes=[
                PassJob(
                    shader=digest,
                    grid=p.grid,
                    shared_bytes=p.shared_bytes,
                    buffers=p.buffers,
                    constants=p.constants,
                    values=p.values,
                    subgroup=p.subgroup,
                )
                for p, digest in zip(rendered.passes, digests, strict=True)
            ],
            checks=[
                CheckJob(
                    buffer=name,
                    reference=blob,
                    atol=tolerance[name].atol,
                    rtol=tolerance[name].rtol,
                    nmse=tolerance[name].nmse,
                    shape=tuple(data.shapes[name]),
                )
                for name, blob in data.reference_blobs.items()
            ],
            deadline_ms=sampling.deadline_s * 1000 + sampling.rest_ms,
            warmup=sampling.warmup,
            warmup_ms=sampling.warmup_ms,
            repeats=sampling.repeats,
            replays=sampling.replays,
            idle_replays=sampling.idle_replays,
            idle_ms=sampling.idle_ms if sampling.idle_replays else 0,
            kept=kept,
        )
        return Prepared(info, job)

    def data(self, kernel: Kernel, case: Case) -> Data:
        """Inputs and references of all cases with this one's ``data_key``, stored.

        Raises:
            KernelFolderError: the kernel's own code failed or contradicts itself.
        """
        buffers = ask(case, "buffers", lambda: kernel.buffers(case))
        inputs = dict(ask(case, "inputs", lambda: kernel.inputs(case)))
        check_inputs(case, buffers, inputs)
        references = dict(ask(case, "reference", lambda: kernel.reference(case, inputs)))
        check_references(case, buffers, references)
        dtypes = {b.name: b.dtype for b in buffers}
        return Data(
            inputs=inputs,
            input_blobs={n: self._store.put(stored(a, dtypes[n]).tobytes()) for n, a in inputs.items()},
            reference_blobs={n: self._store.put(_reference_bytes(r)) for n, r in references.items()},
            shapes={n: [int(d) for d in r.shape] for n, r in references.items()},
            absmax=min(_absmax(r) for r in references.values()),
        )


def prepare_all(
    store: BlobStore,
    compiler: SpirvCompiler,
    kernels: Mapping[str, LoadedKernel],
    cases: Mapping[str, tuple[Case, Sampling]],
    on_done: Callable[[int], None],
) -> dict[str, Prepared | Degenerate | Refused]:
    """All of ``prepare_each``; ``on_done`` gets the count so far.

    Raises:
        KernelFolderError: a kernel's own code failed or contradicts itself.
    """
    found: dict[str, Prepared | Degenerate | Refused] = {}
    for case_id, outcome in prepare_each(store, compiler, kernels, cases):
        found[case_id] = outcome
        on_done(len(found))
    return found


def prepare_each(
    store: BlobStore,
    compiler: SpirvCompiler,
    kernels: Mapping[str, LoadedKernel],
    cases: Mapping[str, tuple[Case, Sampling]],
) -> Iterator[tuple[str, Prepared | Degenerate | Refused]]:
    """Prepare in the order given, but for cases of one ``data_key``, which come one after another.

    Raises:
        KernelFolderError: a kernel's own code failed or contradicts itself.
    """
    groups: dict[str, list[tuple[str, Case, Sampling]]] = {}
    for case_id, (case, sampling) in cases.items():
        key = data_key(kernels[case.kernel].kernel, case)
        groups.setdefault(key, []).append((case_id, case, sampling))

    threads = min(THREADS, os.cpu_count() or 1)
    with Shaders(store, compiler) as shaders, ThreadPoolExecutor(threads, "prepare") as pool:
        preparer = Preparer(store, shaders)
        ahead: deque[tuple[str, Future[Data], Future[Prepared | Degenerate | Refused]]] = deque()
        try:
            for group in groups.values():
                data: Future[Data] | None = None
                for case_id, case, sampling in group:
                    loaded = kernels[case.kernel]
                    rendered = preparer.render(loaded, case)
                    # Submitted before the cases that wait for it, so that it runs before they do.
                    data = data or pool.submit(preparer.data, loaded.kernel, case)
                    done = pool.submit(_prepared, preparer, loaded, case, rendered, sampling, data)
                    ahead.append((case_id, data, done))
                    while ahead and (_too_many(ahead, threads) or ahead[0][2].done()):
                        first, _, outcome = ahead.popleft()
                        yield first, outcome.result()
            while ahead:
                first, _, outcome = ahead.popleft()
                yield first, outcome.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # one failed: nobody wants the others
            raise


def _too_many(
    ahead: "deque[tuple[str, Future[Data], Future[Prepared | Degenerate | Refused]]]", threads: int
) -> bool:
    return len(ahead) > AHEAD or len({id(data) for _, data, _ in ahead}) > threads


def data_key(kernel: Kernel, case: Case) -> str:
    """
    Raises:
        KernelFolderError: the kernel's own code failed.
    """
    return ask(case, "data_key", lambda: kernel.data_key(case))


def _prepared(
    preparer: Preparer,
    loaded: LoadedKernel,
    case: Case,
    rendered: RenderedCase,
    sampling: Sampling,
    data: "Future[Data]",
) -> Prepared | Degenerate | Refused:
    return preparer.prepare(loaded, case, rendered, sampling, data.result())


def _reference_bytes(reference: Reference) -> bytes:
    """Float64 bytes; a NaN becomes the one pattern by which the runner knows it was meant."""
    data = np.array(reference, dtype="<f8", order="C")
    data.view("<u8")[np.isnan(data)] = NOT_FINITE_BITS
    return data.tobytes()


def _absmax(reference: Reference) -> float:
    finite = np.abs(reference[np.isfinite(reference)])
    return float(finite.max()) if finite.size else 0.0

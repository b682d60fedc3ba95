"""The probes and the canary on real drivers: prepared like any run, executed by the runner."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.analysis.precision import measure, sentence
from orchestrator.domain.case import AxisValue, Case
from orchestrator.domain.job import CaseJob
from orchestrator.domain.precision import Precision
from orchestrator.execution.prepare import Prepared, prepare_all
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning.kernel_folder import LoadedKernel, load_kernels
from orchestrator.planning.matrix import Sampling
from orchestrator.storage.blobs import BlobStore
from tests.kernels.drivers import DRIVERS, VULKAN_DRIVERS, driver, runner_path
from tests.kernels.harness import KERNELS, make_case
from workers.job_folder import job_text
from workers.judge import judge
from workers.result_stream import ResultStream

PROBES = ("canary", "copy", "fma", "precision_probe")
ASKED = ("highp", "mediump", "precise", "fp16", "storage16", "pack_half")
SAMPLING = Sampling(repeats=1, warmup=0, replays=2, deadline_s=60)
_FINISH_S = 280.0

Change = Callable[[str], str]
"""What a broken driver makes of a GLSL text."""


@dataclass(frozen=True)
class Ran:
    case: Case
    verdict: str
    reason: str
    raw: bytes
    """What precision_probe keeps; empty for the others."""
    job: CaseJob

    @property
    def precision(self) -> Precision:
        return measure(self.case, np.frombuffer(self.raw, "<u4").astype(np.uint32))


@pytest.fixture(scope="module")
def probes() -> Mapping[str, LoadedKernel]:
    return {name: k for name, k in load_kernels(KERNELS).items() if name in PROBES}


@dataclass
class ProbeBench:
    folder: Path
    kernels: Mapping[str, LoadedKernel]

    def case(self, kernel: str, api: str, *, workload: Mapping[str, AxisValue], **axes: AxisValue) -> Case:
        found = self.kernels[kernel].kernel
        return make_case(found, workload, inputs=found.distributions[0], axes={"api": api, **axes})

    def run(self, name: str, cases: Sequence[Case], change: Change | None = None) -> list[Ran]:
        """One runner process for all cases that the driver can run; ``change`` breaks each GLSL text."""
        on = driver(name)
        possible = [c for c in cases if on.refuses(self.kernels[c.kernel].kernel, c) is None]
        store = BlobStore((self.folder / "blobs").as_uri())
        compiler = SpirvCompiler(self.folder / "spirv")
        wanted = {c.case_id: (c, SAMPLING) for c in possible}
        prepared = prepare_all(store, compiler, self.kernels, wanted, lambda _: None)
        jobs: list[CaseJob] = []
        for case in possible:
            one = prepared[case.case_id]
            assert isinstance(one, Prepared), case.label
            jobs.append(one.job if change is None else _changed(one.job, store, change))
        folder = self.folder / f"job-{name}"
        (folder / "blobs").mkdir(parents=True)
        for digest in {d for job in jobs for d in job.blobs()}:
            (folder / "blobs" / digest).write_bytes(store.get(digest))
        enable = sorted({f for c in possible for f in self.kernels[c.kernel].kernel.features(c)})
        text = job_text("probes", jobs, str(folder / "blobs"), enable=enable if on.api == "vulkan" else ())
        (folder / "job.txt").write_text(text, "ascii")
        done = subprocess.run(
            [str(runner_path()), "run", str(folder)],
            capture_output=True,
            timeout=_FINISH_S,
            check=False,
            env=on.environment,
        )
        stream = ResultStream("runner")
        for line in done.stdout.splitlines(keepends=True):
            stream.feed(line)
        ends = {r.end.case: r.end for r in stream.finish()}
        found: list[Ran] = []
        for case, job in zip(possible, jobs, strict=True):
            verdict, reason = judge(ends[job.case_id], job)
            kept = folder / "tensors" / f"{job.case_id}.raw.bin"
            raw = kept.read_bytes() if kept.is_file() else b""
            found.append(Ran(case, verdict.value, reason, raw, job))
        return found


def _changed(job: CaseJob, store: BlobStore, change: Change) -> CaseJob:
    def broken(digest: str) -> str:
        before = store.get(digest).decode("ascii")
        after = change(before)
        assert after != before
        return store.put(after.encode("ascii"))

    return replace(job, passes=[replace(p, shader=broken(p.shader)) for p in job.passes])


@pytest.fixture
def bench(tmp_path: Path, probes: Mapping[str, LoadedKernel]) -> ProbeBench:
    return ProbeBench(tmp_path, probes)


def _every_probe(bench: ProbeBench, api: str) -> list[Case]:
    precise = [bench.case("precision_probe", api, workload={}, asked=a) for a in ASKED]
    sizes = [bench.case("copy", api, workload={"bytes": n, "traffic": 1}) for n in (2048, 6144, 262_144)]
    rates = [
        bench.case("fma", api, workload={"groups": 3}, precision=p, hint=h)
        for p, h in (("fp32", "highp"), ("fp32", "mediump"), ("fp32", "precise"), ("fp16", "highp"))
    ]
    return [bench.case("canary", api, workload={}), *precise, *sizes, *rates]


@pytest.mark.parametrize("name", DRIVERS)
def test_every_probe_is_right_and_highp_is_fp32(bench: ProbeBench, name: str) -> None:
    ran = bench.run(name, _every_probe(bench, driver(name).api))
    wrong = [f"{r.case.label}: {r.verdict} {r.reason}" for r in ran if r.verdict != "pass"]
    assert not wrong, "\n".join(wrong)
    found = {p.asked: p for p in (r.precision for r in ran if r.case.kernel == "precision_probe")}
    assert {"highp", "mediump", "pack_half"} <= set(found)
    assert not [sentence(p) for p in found.values() if p.demoted]
    assert (found["highp"].delivered, found["highp"].mantissa_bits) == ("fp32", 23)
    assert found["mediump"].delivered in ("fp32", "fp16")
    for asked in ("fp16", "storage16", "pack_half"):
        if asked in found:
            assert (found[asked].delivered, found[asked].largest) == ("fp16", 65504.0)
            assert found[asked].exp_underflow == -17.0 or found[asked].subnormals == "flushed"


def test_lavapipe_has_every_precision(bench: ProbeBench) -> None:
    cases = [bench.case("precision_probe", "vulkan", workload={}, asked=a) for a in ASKED]
    assert [r.precision.asked for r in bench.run("lavapipe", cases)] == list(ASKED)


def test_g1_13_highp_on_the_fp16_grid_is_a_mismatch(
    bench: ProbeBench, probes: Mapping[str, LoadedKernel]
) -> None:
    """G1-13: llvmpipe computes mediump in fp16, so a highp probe whose variables are made mediump plays the
    driver that quietly demotes: the device's comparison says mismatch, the host what was delivered."""
    case = bench.case("precision_probe", "gles", workload={}, asked="highp")

    def demote(glsl: str) -> str:
        return glsl.replace("    highp float ", "    mediump float ").replace(
            "mediump float wide", "highp float wide"
        )

    (ran,) = bench.run("llvmpipe", [case], demote)
    assert ran.verdict == "mismatch"
    assert (ran.precision.delivered, ran.precision.demoted) == ("fp16", True)
    assert sentence(ran.precision).startswith("asked highp, got fp16")


@pytest.mark.parametrize(
    ("kernel", "workload", "old", "new"),
    [
        ("fma", {"groups": 3}, "trip < 31", "trip < 30"),
        ("fma", {"groups": 3}, "x_3 = x_3 * c + d;", "x_3 = x_3 * c;"),
        ("copy", {"bytes": 1_048_576, "traffic": 1}, "i < n;", "i + 1u < n;"),
        ("copy", {"bytes": 6144, "traffic": 1}, "sweep < SWEEPS", "sweep + 1 < SWEEPS"),
        ("copy", {"bytes": 6144, "traffic": 1}, "= src[at]", "= src[at] + uvec4(1u)"),
        ("canary", {}, "k < 1000", "k < 999"),
        ("canary", {}, "lane + 1u", "lane + 2u"),
        ("precision_probe", {}, "r = x * y;", "r = x * y * 1.0000002;"),
    ],
)
def test_a_probe_that_does_other_work_is_a_mismatch(
    bench: ProbeBench, kernel: str, workload: Mapping[str, AxisValue], old: str, new: str
) -> None:
    case = bench.case(kernel, "gles", workload=workload)
    (ran,) = bench.run("llvmpipe", [case], lambda glsl: glsl.replace(old, new))
    assert ran.verdict == "mismatch", ran.reason


def test_one_vulkan_module_copies_every_size(bench: ProbeBench) -> None:
    cases = [bench.case("copy", "vulkan", workload={"bytes": n, "traffic": 1}) for n in (2048, 262_144)]
    small, large = bench.run(VULKAN_DRIVERS[0], cases)
    assert small.job.passes[0].shader == large.job.passes[0].shader
    assert small.job.passes[0].constants != large.job.passes[0].constants
    assert small.verdict == large.verdict == "pass"


def test_points_that_do_not_exist(probes: Mapping[str, LoadedKernel]) -> None:
    def why(kernel: str, workload: Mapping[str, AxisValue], **axes: AxisValue) -> str | None:
        found = probes[kernel].kernel
        return found.invalid(make_case(found, workload, inputs=found.distributions[0], axes=axes))

    assert why("precision_probe", {}, asked="fp16") == "asked fp16 needs api vulkan"
    assert why("copy", {"bytes": 1000}) == "bytes 1000 is no multiple of 2048"
    assert why("fma", {"groups": 1}, precision="fp16", api="vulkan", hint="mediump") is not None
    assert why("fma", {"groups": 1}, hint="precise") is not None

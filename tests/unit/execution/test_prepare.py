"""From a planned case to a job that a phone can run without knowing the kernel."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orchestrator.domain.case import Case
from orchestrator.domain.digest import sha256_hex
from orchestrator.domain.kernel import NOT_FINITE_BITS, Buffer, Pass, Subgroups, Tolerance
from orchestrator.execution.module_cache import MAGIC
from orchestrator.execution.prepare import Degenerate, Prepared, Preparer, Refused, prepare_all
from orchestrator.execution.shaders import Shaders
from orchestrator.execution.spirv import SpirvCompiler
from orchestrator.planning.kernel_folder import LoadedKernel
from orchestrator.planning.matrix import Sampling
from orchestrator.storage.blobs import BlobStore
from tests.unit.execution.toy_kernel import TEMPLATE, Doubling, load, point

SAMPLING = Sampling(repeats=7, warmup=2, replays=3, deadline_s=11, warmup_ms=400, min_effect=0.03)


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore((tmp_path / "blobs").as_uri())


@pytest.fixture
def kernel() -> Doubling:
    return Doubling()


@pytest.fixture
def loaded(tmp_path: Path, kernel: Doubling) -> LoadedKernel:
    return load(tmp_path / "kernels", kernel)


@pytest.fixture
def compiler(tmp_path: Path) -> SpirvCompiler:
    return SpirvCompiler(tmp_path / "spirv")


@pytest.fixture
def preparer(store: BlobStore, compiler: SpirvCompiler) -> Iterator[Preparer]:
    with Shaders(store, compiler) as shaders:
        yield Preparer(store, shaders)


def prepare(
    preparer: Preparer, loaded: LoadedKernel, case: Case, sampling: Sampling = SAMPLING
) -> Prepared | Degenerate | Refused:
    rendered = preparer.render(loaded, case)
    return preparer.prepare(loaded, case, rendered, sampling, preparer.data(loaded.kernel, case))


def prepared(
    preparer: Preparer, loaded: LoadedKernel, case: Case | None = None, sampling: Sampling = SAMPLING
) -> Prepared:
    found = prepare(preparer, loaded, case or point(), sampling)
    assert isinstance(found, Prepared)
    return found


def test_a_job_holds_everything_by_content(
    preparer: Preparer, loaded: LoadedKernel, store: BlobStore, kernel: Doubling
) -> None:
    found = prepared(preparer, loaded)
    job, info = found.job, found.info
    x = kernel.inputs(point())["x"]
    assert (job.case_id, job.attempt, job.api, job.label) == (point().case_id, 1, "gles", point().label)
    assert (job.repeats, job.warmup, job.replays, job.deadline_ms) == (7, 2, 3, 11_000)
    assert (job.warmup_ms, info.min_effect) == (400, 0.03)
    assert [(b.name, b.role, b.dtype, b.count) for b in job.buffers] == [
        ("x", "in", "f32", 5),
        ("o", "out", "f32", 5),
    ]
    assert store.get(job.buffers[0].blob or "") == x.tobytes()
    assert job.buffers[1].blob is None
    reference = np.frombuffer(store.get(job.checks[0].reference), "<f8")
    assert reference.tolist() == (2.0 * x.astype(np.float64)).tolist()
    assert (job.checks[0].buffer, job.checks[0].atol, job.checks[0].rtol) == ("o", 1e-6, 1e-3)
    (step,) = job.passes
    assert store.get(step.shader).startswith(b"#version 310 es\nlayout(local_size_x = 8)")
    assert (step.grid, step.shared_bytes, step.buffers) == ((1, 1, 1), 32, ("x", "o"))
    assert (info.case, info.code_hash) == (point(), job.code_hash)
    assert (info.workgroup, info.shared_bytes) == ((8, 1, 1), 32)
    assert (info.dispatches, info.output_shape, info.cost.flops) == (1, {"o": [5]}, 5)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_half_inputs_are_the_halves_themselves_without_padding(
    preparer: Preparer, loaded: LoadedKernel, store: BlobStore, kernel: Doubling, n: int
) -> None:
    """The runner wants COUNT × 2 bytes exactly, also for an odd count."""
    job = prepared(preparer, loaded, point(n, precision="fp16_storage")).job
    halves = kernel.inputs(point(n, precision="fp16_storage"))["x"]
    assert store.get(job.buffers[0].blob or "") == halves.astype("<f2").tobytes()
    reference = np.frombuffer(store.get(job.checks[0].reference), "<f8")
    assert reference.tolist() == (2.0 * halves.astype(np.float64)).tolist(), "of the rounded inputs"


def test_a_fortran_ordered_input_lies_in_c_order(
    preparer: Preparer, loaded: LoadedKernel, store: BlobStore, kernel: Doubling
) -> None:
    table = np.arange(6, dtype=np.float32).reshape(2, 3)
    kernel.changed["inputs"] = lambda _value: {"x": np.asfortranarray(table)}
    job = prepared(preparer, loaded, point(6)).job
    assert store.get(job.buffers[0].blob or "") == table.tobytes()


def test_nan_in_a_reference_becomes_the_demand_not_finite(
    preparer: Preparer, loaded: LoadedKernel, store: BlobStore
) -> None:
    found = prepare(preparer, loaded, point(inputs="one_nan"))
    assert isinstance(found, Prepared)
    bits = np.frombuffer(store.get(found.job.checks[0].reference), "<u8")
    assert [int(b) == NOT_FINITE_BITS for b in bits] == [False, True, False, False, False]


def planned(cases: Sequence[Case]) -> dict[str, tuple[Case, Sampling]]:
    return {c.case_id: (c, SAMPLING) for c in cases}


def test_references_are_computed_once_for_all_variants(
    store: BlobStore, compiler: SpirvCompiler, loaded: LoadedKernel, kernel: Doubling
) -> None:
    cases = [point(n, tile=tile) for n in (5, 9) for tile in ("8", "16")]
    counts: list[int] = []
    found = prepare_all(store, compiler, {"doubling": loaded}, planned(cases), counts.append)
    assert set(found) == {c.case_id for c in cases}
    assert counts == [1, 2, 3, 4]
    assert (kernel.calls["inputs"], kernel.calls["reference"]) == (2, 2), "two workloads, four cases"
    jobs = [p.job for p in found.values() if isinstance(p, Prepared)]
    assert len({j.checks[0].reference for j in jobs}) == 2
    assert len({j.code_hash for j in jobs}) == 4


def test_variants_share_references_however_they_are_ordered(
    store: BlobStore, compiler: SpirvCompiler, loaded: LoadedKernel, kernel: Doubling
) -> None:
    interleaved = [point(n, tile=tile) for tile in ("8", "16") for n in (5, 9, 13)]
    prepare_all(store, compiler, {"doubling": loaded}, planned(interleaved), lambda _: None)
    assert kernel.calls["reference"] == 3


def test_the_same_case_gives_the_same_job_on_another_day(
    tmp_path: Path, loaded: LoadedKernel, preparer: Preparer
) -> None:
    other = BlobStore((tmp_path / "other").as_uri())
    with Shaders(other, SpirvCompiler(tmp_path / "cold")) as shaders:
        again = prepare(Preparer(other, shaders), loaded, point(api="vulkan"))
    assert again == prepare(preparer, loaded, point(api="vulkan"))


def test_the_code_hash_follows_the_code_and_not_the_inputs(
    tmp_path: Path, preparer: Preparer, loaded: LoadedKernel, kernel: Doubling
) -> None:
    first = prepared(preparer, loaded).info.code_hash
    other_seed = prepare(preparer, loaded, point(seed=2))
    assert isinstance(other_seed, Prepared)
    assert other_seed.info.code_hash == first
    faster = load(tmp_path / "edited", kernel, "#version 310 es\n// edited {{ n }} {{ workgroup[0] }}\n")
    assert prepared(preparer, faster).info.code_hash != first
    kernel.tolerance_version = "2"
    assert prepared(preparer, loaded).info.code_hash != first


@pytest.mark.parametrize("inputs", ["zeros", "tiny"])
def test_g1_02_a_reference_without_signal_is_refused(
    preparer: Preparer, loaded: LoadedKernel, inputs: str
) -> None:
    """Values decayed to 1e-19 carry no information: neither a pass nor a failure would mean anything."""
    found = prepare(preparer, loaded, point(inputs=inputs))
    assert isinstance(found, Degenerate)
    assert found.reason.startswith("reference_absmax ")
    assert found.reason.endswith(" < 1e-12")


def test_g1_02_one_output_with_signal_does_not_vouch_for_another(
    preparer: Preparer, loaded: LoadedKernel, kernel: Doubling
) -> None:
    """The smallest of all outputs counts."""
    kernel.changed["buffers"] = lambda value: (*value, Buffer("l", "out", "f32", 5))
    kernel.changed["reference"] = lambda value: value | {"l": np.full(5, 1e-19)}
    kernel.changed["tolerance"] = lambda value: value | {"l": Tolerance(0.0, 0.0, 0.0)}
    assert isinstance(prepare(preparer, loaded, point()), Degenerate)


def test_blobs_are_named_by_their_content(preparer: Preparer, loaded: LoadedKernel, store: BlobStore) -> None:
    for digest in prepared(preparer, loaded).job.blobs():
        assert sha256_hex(store.get(digest)) == digest


CONSTANT_TEMPLATE = """\
#version 310 es
{{ constants }}
layout(local_size_x = {{ workgroup[0] }}) in;
layout(std430, binding = 0) readonly buffer X { float x[]; };
layout(std430, binding = 1) buffer O { float o[]; };
void main() { int i = int(gl_GlobalInvocationID.x); if (i < int(N)) o[i] = 2.0 * x[i]; }
"""


def with_constants(value: tuple[Pass, ...]) -> tuple[Pass, ...]:
    return tuple(replace(p, constants={"N": 4 * p.grid[0], "M": 7}) for p in value)


def test_vulkan_gets_spirv_with_constants_and_one_module_for_all_shapes(
    tmp_path: Path, preparer: Preparer, kernel: Doubling, store: BlobStore
) -> None:
    kernel.changed["passes"] = with_constants
    loaded = load(tmp_path / "constant", kernel, CONSTANT_TEMPLATE)
    small, large = (prepared(preparer, loaded, point(n, api="vulkan")) for n in (8, 80))
    assert (small.job.api, small.job.passes[0].constants) == ("vulkan", (4, 7))
    assert large.job.passes[0].constants == (40, 7)
    assert small.job.passes[0].shader == large.job.passes[0].shader
    assert store.get(small.job.passes[0].shader).startswith(MAGIC)
    assert small.info.code_hash != large.info.code_hash
    gles = prepared(preparer, loaded, point(8)).job
    assert gles.passes[0].constants == ()
    assert b"const int N = 4;\nconst int M = 7;\n" in store.get(gles.passes[0].shader)


@pytest.mark.parametrize("api", ["gles", "vulkan"])
def test_dispatches_that_differ_in_values_share_a_shader(
    api: str, tmp_path: Path, preparer: Preparer, kernel: Doubling
) -> None:
    kernel.changed["passes"] = lambda v: tuple(replace(v[0], values={"N": n, "M": 1}) for n in (3, 4))
    loaded = load(tmp_path / "values", kernel, CONSTANT_TEMPLATE.replace("constants", "values"))
    first, second = prepared(preparer, loaded, point(api=api)).job.passes
    assert (first.values, second.values) == ((3, 1), (4, 1))
    assert first.shader == second.shader


def test_a_subgroup_size_travels_to_the_device(
    preparer: Preparer, loaded: LoadedKernel, kernel: Doubling
) -> None:
    plain = prepared(preparer, loaded, point(api="vulkan"))
    kernel.changed["passes"] = lambda v: (replace(v[0], subgroups=Subgroups(8, 1)),)
    fixed = prepared(preparer, loaded, point(api="vulkan"))
    assert (plain.job.passes[0].subgroup, fixed.job.passes[0].subgroup) == (0, 8)
    assert plain.info.code_hash != fixed.info.code_hash


def test_a_shader_that_does_not_compile_names_its_template_and_line(
    tmp_path: Path, store: BlobStore, compiler: SpirvCompiler, kernel: Doubling
) -> None:
    broken = load(tmp_path / "broken", kernel, CONSTANT_TEMPLATE.replace("2.0 *", "two *"))
    kernel.changed["passes"] = with_constants
    cases = planned([point(n, api="vulkan") for n in range(8, 60)])
    found = prepare_all(store, compiler, {"doubling": broken}, cases, lambda _: None)
    said = [p.message if isinstance(p, Refused) else "" for p in found.values()]
    assert len(said) == 52
    assert set(said) == {said[0]}
    expected = (
        r"doubling/double\.comp\.j2:6: glslang, line 7 of the rendered shader: 'two' .*\n  7 \| void main"
    )
    assert re.match("broken/" + expected, said[0])


def test_an_error_in_an_include_is_found_there_and_a_made_up_line_nowhere(
    tmp_path: Path, preparer: Preparer, kernel: Doubling
) -> None:
    shared = tmp_path / "k" / "_shared"
    shared.mkdir(parents=True)
    (shared / "twice.glsl.j2").write_text("// by two\nfloat twice(float x) { return two * x; }\n")
    included = TEMPLATE.replace("void main", "{% include 'twice.glsl.j2' %}\nvoid main")
    found = prepare(preparer, load(tmp_path / "k", kernel, included), point(api="vulkan"))
    assert isinstance(found, Refused)
    assert found.message.startswith("k/_shared/twice.glsl.j2:2: glslang, line 6 of the rendered shader: ")
    rendered = load(tmp_path / "k", kernel, TEMPLATE.replace("{{ n }}u", "{{ n }}x"))
    found = prepare(preparer, rendered, point(api="vulkan"))
    assert isinstance(found, Refused)
    assert found.message.startswith("k/doubling/double.comp.j2: glslang, line 5 of the rendered shader: ")


def test_many_cases_are_prepared_each_once_and_each_module_compiled_once(
    tmp_path: Path, store: BlobStore, loaded: LoadedKernel, kernel: Doubling
) -> None:
    """More cases than are rendered ahead; 3 workgroup sizes × text that holds n."""
    compiler = CountingCompiler(tmp_path / "spirv")
    kernel.changed["passes"] = with_constants
    constant = load(tmp_path / "constant", kernel, CONSTANT_TEMPLATE)
    cases = [point(n, tile=tile, api="vulkan") for n in range(5, 55) for tile in ("8", "16")]
    counts: list[int] = []
    found = prepare_all(store, compiler, {"doubling": constant}, planned(cases), counts.append)
    assert set(found) == {c.case_id for c in cases}
    assert counts == list(range(1, 101))
    assert compiler.compiled == 2, "by text: the workgroup is in it, n is a constant"


class CountingCompiler(SpirvCompiler):
    compiled = 0

    def compile(self, glsl: str, *, where: str) -> bytes:
        self.compiled += 1
        return super().compile(glsl, where=where)


def test_kept_outputs_shapes_roles_and_rests_reach_the_job(
    preparer: Preparer, loaded: LoadedKernel, kernel: Doubling
) -> None:
    kernel.role = "probe"
    kernel.changed["buffers"] = lambda value: (*value, Buffer("raw", "out", "u32", 4))
    kernel.changed["passes"] = lambda value: (replace(value[0], buffers=("x", "o", "raw")),)
    kernel.changed["kept"] = lambda _: ("raw",)
    kernel.changed["reference"] = lambda value: {"o": value["o"].reshape(3, 2)}
    rests = Sampling(replays=12, idle_replays=5, idle_ms=1500, deadline_s=11)
    found = prepared(preparer, loaded, point(6), rests)
    assert found.job.kept == ("raw",)
    assert found.job.checks[0].shape == (3, 2)
    assert (found.job.replays, found.job.idle_replays, found.job.idle_ms) == (12, 5, 1500)
    assert found.job.deadline_ms == 11_000 + 5 * 1500, "a rest is no hang"
    info = found.info
    assert (info.role, info.repeats, info.replays, info.idle_replays) == ("probe", 10, 12, 5)

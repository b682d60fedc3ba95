"""attention_flash_matrix on a driver without matrix units: its own template with matrices put in by hand.

The text of the template is kept but for its matrices: those become arrays of 8 floats an invocation, products
and what crosses lanes go through shared memory, and the only subgroup is the workgroup of 32. Invocation L
holds elements (2e + L/16, L%16), another place than any GPU's: the template must not care. Loops begin at a
zero that Mesa does not see: LLVM would compile unrolled ones for a minute. Only tiles that are one subgroup
wide can run so: barriers stand where a real subgroup needs none.
"""

import re
from dataclasses import replace
from pathlib import Path

from orchestrator.domain.case import Case
from orchestrator.domain.kernel import Cost, Pass
from orchestrator.ops.attention import AttentionKernel
from orchestrator.planning.kernel_folder import LoadedKernel

TEMPLATE = "matrix.comp.j2"

HELPERS = """
#define ZERO int(gl_WorkGroupID.z)
shared float scratch_a[256];
shared float scratch_b[256];
shared float lanes[32];

uint place(int e) {
    return uint(e) * 32u + gl_LocalInvocationIndex;
}

float[8] fill(float x) {
    float[8] m;
    for (int e = ZERO; e < 8; ++e) {
        m[e] = x;
    }
    return m;
}

float[8] times(float[8] m, float x) {
    for (int e = ZERO; e < 8; ++e) {
        m[e] *= x;
    }
    return m;
}

float[8] product(float[8] a, float[8] b, float[8] c) {
    barrier();
    for (int e = ZERO; e < 8; ++e) {
        scratch_a[place(e)] = a[e];
        scratch_b[place(e)] = b[e];
    }
    barrier();
    for (int e = ZERO; e < 8; ++e) {
        for (uint k = uint(ZERO); k < 16u; ++k) {
            c[e] += scratch_a[place(e) / 16u * 16u + k] * scratch_b[k * 16u + place(e) % 16u];
        }
    }
    return c;
}

float half_of(uvec4 word, uint i) {
    vec2 pair = vec2(unpackFloat2x16(word[i / 2u]));
    return pair[i % 2u];
}

#define LOAD_HALVES(from) \\
    float[8] m; \\
    for (int e = ZERO; e < 8; ++e) { \\
        uint i = by_rows ? place(e) / 16u : place(e) % 16u; \\
        uint j = by_rows ? place(e) % 16u : place(e) / 16u; \\
        m[e] = half_of(from[at_word + i * stride + j / 8u], j % 8u); \\
    } \\
    return m;

float[8] load_tile_words(uint at_word, uint stride, bool by_rows) {
    LOAD_HALVES(tile_words)
}

float[8] load_weights(uint at_word, uint stride, bool by_rows) {
    LOAD_HALVES(weights)
}

float[8] load_rows(uint at_word, uint stride, bool by_rows) {
    float[8] m;
    for (int e = ZERO; e < 8; ++e) {
        uint j = place(e) % 16u;
        m[e] = rows[at_word + place(e) / 16u * stride + j / 4u][j % 4u];
    }
    return m;
}

void gather(float[8] m) {
    barrier();
    for (int e = ZERO; e < 8; ++e) {
        scratch_a[place(e)] = m[e];
    }
    barrier();
}

void store_weights(float[8] m, uint at_word, uint stride, bool by_rows) {
    gather(m);
    uint lane = gl_LocalInvocationIndex;
    uvec4 word;
    for (uint i = 0u; i < 4u; ++i) {
        uint p = lane * 8u + i * 2u;
        word[i] = packFloat2x16(f16vec2(vec2(scratch_a[p], scratch_a[p + 1u])));
    }
    weights[at_word + lane / 2u * stride + lane % 2u] = word;
}

void store_rows(float[8] m, uint at_word, uint stride, bool by_rows) {
    gather(m);
    uint lane = gl_LocalInvocationIndex;
    for (uint i = 0u; i < 2u; ++i) {
        uint p = lane * 8u + i * 4u;
        vec4 four = vec4(scratch_a[p], scratch_a[p + 1u], scratch_a[p + 2u], scratch_a[p + 3u]);
        rows[at_word + lane / 2u * stride + lane % 2u * 2u + i] = four;
    }
}

float of_other_lane(float x) {
    barrier();
    lanes[gl_LocalInvocationIndex] = x;
    barrier();
    return lanes[gl_LocalInvocationIndex ^ 1u];
}

uint of_any_lane(uint x) {
    barrier();
    lanes[gl_LocalInvocationIndex] = float(x);
    barrier();
    uint found = 0u;
    for (uint i = 0u; i < 32u; ++i) {
        found |= uint(lanes[i]);
    }
    return found;
}

// Keys 0 ... n-1 are visible"""

CHANGES = (
    (r"#extension GL_KHR_(cooperative_matrix|memory_scope_semantics|shader_subgroup_\w+) : require\n", ""),
    (r"#pragma use_vulkan_memory_model\n", ""),
    (r"#define (SUMS|LEFT|RIGHT) coopmat<.*>", r"#define \1 float[8]"),
    (r"#define HALF_SUMS coopmat<.*>\n", ""),
    (r"gl_CooperativeMatrixLayoutRowMajor", "true"),
    (r"gl_CooperativeMatrixLayoutColumnMajor", "false"),
    (r"\b(SUMS|RIGHT)\((.+)\);", r"fill(float(\2));"),
    (r"= (s\{\{ r \}\}_\{\{ n \}\}) \* LOG2_SCALE;", r"= times(\1, LOG2_SCALE);"),
    (r"\[\[unroll\]\] for \(int e = 0;", "for (int e = ZERO;"),
    (r"coopMatMulAdd\(", "product("),
    (r"coopMatLoad\((.+?), (tile_words|weights|rows), ", r"\1 = load_\2("),
    (r"coopMatStore\(HALF_SUMS\((.+?)\), weights, ", r"store_weights(\1, "),
    (r"coopMatStore\(t, rows, ", "store_rows(t, "),
    (r"subgroupMemoryBarrierShared\(\)", "memoryBarrierShared()"),
    (r"subgroupBarrier\(\)", "barrier()"),
    (r"subgroupShuffleXor\(top, 1u\)", "of_other_lane(top)"),
    (r"subgroupOr\(", "of_any_lane("),
    (r"gl_SubgroupInvocationID", "gl_LocalInvocationIndex"),
    (r"gl_SubgroupID", "0u"),
    (r"// Keys 0 \.\.\. n-1 are visible", HELPERS.replace("\\", "\\\\")),
)
"""Each must find something: a template that says it in other words is not what was tested."""


def emulated(loaded: LoadedKernel, folder: Path) -> LoadedKernel:
    """The kernel with a changed template in ``folder``, which needs 16-bit types and nothing else."""
    text = (loaded.folder / TEMPLATE).read_text(encoding="utf-8")
    for pattern, by in CHANGES:
        text, times = re.subn(pattern, by, text)
        if not times:
            raise ValueError(f"{TEMPLATE} holds no {pattern}")
    (folder / TEMPLATE).write_text(text, encoding="utf-8")
    if not isinstance(loaded.kernel, AttentionKernel):
        raise TypeError(f"{loaded.kernel.name} is no attention kernel")
    return LoadedKernel(_WithoutMatrices(loaded.kernel), folder)


class _WithoutMatrices(AttentionKernel):
    """The kernel as far as the host is concerned, on any subgroup."""

    def __init__(self, real: AttentionKernel) -> None:
        self._real = real
        self.name, self.axes = real.name, real.axes
        self.online, self.half_weights = real.online, real.half_weights

    def invalid(self, case: Case) -> str | None:
        return self._real.invalid(case)

    def features(self, case: Case) -> frozenset[str]:
        return self._real.features(case) & {"float16", "storage16"}

    def passes(self, case: Case) -> tuple[Pass, ...]:
        return tuple(replace(step, subgroups=None) for step in self._real.passes(case))

    def cost(self, case: Case) -> Cost:
        return self._real.cost(case)

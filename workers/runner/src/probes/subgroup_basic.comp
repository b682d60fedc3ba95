#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
// Counts the invocations that run together: gl_SubgroupSize can lie (google/uVkCompute#43).
layout(local_size_x = 128) in;
layout(std430, binding = 0) readonly buffer In { uint words[]; } source;
layout(std430, binding = 1) buffer Out { uint said; uint counted; uint all; } result;

void main() {
    uint together = subgroupBallotBitCount(subgroupBallot(source.words[0] == 1u));
    if (subgroupElect()) {
        atomicAdd(result.all, together);
        if (gl_SubgroupID == 0u) {
            result.said = gl_SubgroupSize;
            result.counted = together;
        }
    }
}

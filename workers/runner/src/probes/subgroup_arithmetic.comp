#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums, prefix sums and maxima over a subgroup must agree with its numbering.
layout(local_size_x = 128) in;
layout(std430, binding = 0) readonly buffer In { uint words[]; } source;
layout(std430, binding = 1) writeonly buffer Out { uint words[]; } result;

void main() {
    uint i = gl_LocalInvocationIndex;
    uint one = source.words[i];
    uint sum = subgroupAdd(one);
    uint before = subgroupExclusiveAdd(one);
    uint last = subgroupMax(gl_SubgroupInvocationID * one);
    bool right = sum == gl_SubgroupSize && before == gl_SubgroupInvocationID && last + 1u == sum;
    result.words[i] = right ? 1u : 2u;
}

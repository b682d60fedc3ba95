#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// Each invocation asks its neighbour for its number and its value.
layout(local_size_x = 128) in;
layout(std430, binding = 0) readonly buffer In { uint words[]; } source;
layout(std430, binding = 1) writeonly buffer Out { uint words[]; } result;

void main() {
    uint i = gl_LocalInvocationIndex;
    uint partner = gl_SubgroupInvocationID ^ 1u;
    uint number = subgroupShuffle(gl_SubgroupInvocationID, partner);
    uint where = subgroupShuffle(i, partner);
    uint value = subgroupShuffle(source.words[i], partner);
    result.words[i] = number == partner && value == source.words[where] ? 1u : 2u;
}

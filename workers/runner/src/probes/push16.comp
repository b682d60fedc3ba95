#version 450
#extension GL_EXT_shader_16bit_storage : require
// Reads 16-bit floats from push constants.
layout(local_size_x = 1) in;
layout(push_constant, std430) uniform In { f16vec2 pairs[16]; } source;
layout(std430, binding = 1) writeonly buffer Out { uint words[]; } result;

void main() {
    uint i = gl_WorkGroupID.x;
    result.words[i] = packHalf2x16(vec2(source.pairs[i]).yx);
}

#version 450
#extension GL_EXT_shader_16bit_storage : require
// Swaps neighbours in buffers of 16-bit floats, without 16-bit arithmetic.
layout(local_size_x = 1) in;
layout(std430, binding = 0) readonly buffer In { float16_t halves[]; } source;
layout(std430, binding = 1) writeonly buffer Out { float16_t halves[]; } result;

void main() {
    uint i = gl_WorkGroupID.x;
    float low = float(source.halves[2u * i]);
    float high = float(source.halves[2u * i + 1u]);
    result.halves[2u * i] = float16_t(high);
    result.halves[2u * i + 1u] = float16_t(low);
}

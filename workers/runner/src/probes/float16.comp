#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
// 16-bit arithmetic on values that come and go in 32-bit words.
layout(local_size_x = 1) in;
layout(std430, binding = 0) readonly buffer In { uint words[]; } source;
layout(std430, binding = 1) writeonly buffer Out { uint words[]; } result;

void main() {
    uint i = gl_WorkGroupID.x;
    f16vec2 pair = unpackFloat2x16(source.words[i]);
    result.words[i] = packFloat2x16(pair * pair.yx + f16vec2(1.0hf, 0.5hf));
}

#version 450
// Swaps the halves of each word: packHalf2x16 and unpackHalf2x16, which need no feature.
layout(local_size_x = 1) in;
layout(std430, binding = 0) readonly buffer In { uint words[]; } source;
layout(std430, binding = 1) writeonly buffer Out { uint words[]; } result;

void main() {
    uint i = gl_WorkGroupID.x;
    result.words[i] = packHalf2x16(unpackHalf2x16(source.words[i]).yx);
}

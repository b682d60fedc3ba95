#version 450
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#pragma use_vulkan_memory_model
// One subgroup multiplies 16×16 by 16×16, 16-bit floats into 32-bit sums.
layout(local_size_x_id = 0) in;
layout(std430, binding = 0) readonly buffer In { float16_t halves[]; } source;
layout(std430, binding = 1) writeonly buffer Out { float sums[]; } result;

void main() {
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> b;
    coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> c;
    coopMatLoad(a, source.halves, 0u, 16u, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(b, source.halves, 256u, 16u, gl_CooperativeMatrixLayoutRowMajor);
    c = coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0.0);
    c = coopMatMulAdd(a, b, c);
    coopMatStore(c, result.sums, 0u, 16u, gl_CooperativeMatrixLayoutRowMajor);
}

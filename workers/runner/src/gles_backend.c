/* The table of the GLES backend, its extensions and its error check; see gles.h. */
#include "gles.h"

#include <string.h>

#include "gles_device.h"
#include "proof.h"

static const char *error_name(GLenum error) {
    switch (error) {
    case GL_INVALID_ENUM:
        return "GL_INVALID_ENUM";
    case GL_INVALID_VALUE:
        return "GL_INVALID_VALUE";
    case GL_INVALID_OPERATION:
        return "GL_INVALID_OPERATION";
    case GL_OUT_OF_MEMORY:
        return "GL_OUT_OF_MEMORY";
    case TF_GL_CONTEXT_LOST:
        return "GL_CONTEXT_LOST";
    default:
        return "unknown GL error";
    }
}

bool gles_check(const struct gles_device *d, const char *call, struct failure *failure) {
    GLenum first = d->gl.GetError();
    if (first == GL_NO_ERROR) {
        return true;
    }
    /* Several flags may be set; a lost context reports for ever, hence the bound. */
    for (int i = 0; i < 16 && d->gl.GetError() != GL_NO_ERROR; i++) {
    }
    enum fault kind = first == GL_OUT_OF_MEMORY     ? FAULT_MEMORY
                      : first == TF_GL_CONTEXT_LOST ? FAULT_LOST
                                                    : FAULT_DRIVER;
    return fail(failure, kind, "%s: %s (0x%04x)", call, error_name(first), first);
}

static void each_extension(struct device *device, void (*each)(void *arg, const char *name),
                           void *arg) {
    struct gles_device *d = gles_of(device);
    GLint count = 0;
    d->gl.GetIntegerv(GL_NUM_EXTENSIONS, &count);
    for (GLint i = 0; i < count; i++) {
        const GLubyte *name = d->gl.GetStringi(GL_EXTENSIONS, (GLuint)i);
        if (name != NULL) {
            each(arg, (const char *)name);
        }
    }
}

bool gles_has_extension(const struct gles_device *d, const char *name) {
    GLint count = 0;
    d->gl.GetIntegerv(GL_NUM_EXTENSIONS, &count);
    for (GLint i = 0; i < count; i++) {
        const GLubyte *have = d->gl.GetStringi(GL_EXTENSIONS, (GLuint)i);
        if (have != NULL && strcmp((const char *)have, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool one_adapter(void (*each)(void *arg, const char *adapter), void *arg,
                        struct failure *failure) {
    (void)failure;
    each(arg, "");
    return true;
}

static const char pack_half_source[] =
    "#version 310 es\n"
    "layout(local_size_x = 1) in;\n"
    "layout(std430, binding = 0) readonly buffer In { uint words[]; } source;\n"
    "layout(std430, binding = 1) writeonly buffer Out { uint words[]; } result;\n"
    "void main() {\n"
    "    uint i = gl_WorkGroupID.x;\n"
    "    vec2 pair = unpackHalf2x16(source.words[i]);\n"
    "    result.words[i] = packHalf2x16(pair.yx);\n"
    "}\n";

static bool prove_pack_half(struct device *device, struct evidence *evidence,
                            struct failure *failure) {
    (void)evidence;
    return proof_pack_half(device, pack_half_source, sizeof pack_half_source - 1, NULL, failure);
}

static bool prove_timer(struct device *device, struct evidence *evidence, struct failure *failure) {
    (void)evidence;
    return proof_timer(device, pack_half_source, sizeof pack_half_source - 1, failure);
}

static const struct proof proofs[] = {
    {.feature = FEATURE_PACK_HALF, .prove = prove_pack_half},
    {.feature = FEATURE_TIMER_QUERY, .prove = prove_timer},
};

const struct backend gles_backend = {
    .api = "gles",
    .adapters = one_adapter,
    .open = gles_open,
    .close = gles_close,
    .compile = gles_compile,
    .program_free = gles_program_free,
    .buffer_new = gles_buffer_new,
    .buffer_free = gles_buffer_free,
    .write = gles_write,
    .fill = gles_fill,
    .map = gles_map,
    .unmap = gles_unmap,
    .run = gles_run,
    .extensions = each_extension,
    .proofs = proofs,
    .proof_count = sizeof proofs / sizeof proofs[0],
};

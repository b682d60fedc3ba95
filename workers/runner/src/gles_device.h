/* What the files of the GLES backend share. */
#ifndef TILEFARM_GLES_DEVICE_H
#define TILEFARM_GLES_DEVICE_H

#include "gles_api.h"

struct gles_device {
    struct device base;
    struct egl_api egl;
    struct gl_api gl;
    EGLDisplay display;
    EGLContext context;
    EGLSurface surface; /* a 1×1 pbuffer where the driver needs one, else EGL_NO_SURFACE */
    GLuint query;       /* timer query, 0 without timer */
};

struct gles_program {
    struct program base;
    GLuint name;
    GLint values;      /* location of the array that takes a dispatch's values; -1: none */
    GLint value_count; /* that the shader reads: a driver may drop the others */
};

struct gles_buffer {
    struct gpu_buffer base;
    GLuint name;
};

static inline struct gles_device *gles_of(struct device *device) {
    return (struct gles_device *)device; /* base is the first member */
}

/* False with the reason if GL has an error pending; `call` names what was done. */
bool gles_check(const struct gles_device *d, const char *call, struct failure *failure);
bool gles_has_extension(const struct gles_device *d, const char *name);

/* gles_context.c */
struct device *gles_open(const struct opening *opening, struct failure *failure);
void gles_close(struct device *device);

/* gles_program.c */
struct program *gles_compile(struct device *device, const struct shader *source, struct log *log,
                             struct failure *failure);
void gles_program_free(struct device *device, struct program *program);

/* gles_buffer.c */
struct gpu_buffer *gles_buffer_new(struct device *device, size_t size, struct failure *failure);
void gles_buffer_free(struct device *device, struct gpu_buffer *buffer);
bool gles_write(struct device *device, struct gpu_buffer *buffer, size_t offset, const void *data,
                size_t size, struct failure *failure);
bool gles_fill(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
               uint32_t pattern, struct failure *failure);
const void *gles_map(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
                     struct failure *failure);
bool gles_unmap(struct device *device, struct gpu_buffer *buffer, struct failure *failure);

/* gles_dispatch.c */
bool gles_run(struct device *device, const struct sequence *sequence, unsigned times,
              bool gpu_timer, struct elapsed *elapsed, struct failure *failure);

#endif

/* Buffers of the GLES backend. All go through the copy targets, which no shader binding point uses.
 */
#include <stdlib.h>
#include <string.h>

#include "gles_device.h"

static GLuint bind(struct gles_device *d, struct gpu_buffer *buffer) {
    GLuint name = ((struct gles_buffer *)buffer)->name;
    d->gl.BindBuffer(GL_COPY_WRITE_BUFFER, name);
    return name;
}

struct gpu_buffer *gles_buffer_new(struct device *device, size_t size, struct failure *failure) {
    struct gles_device *d = gles_of(device);
    struct gles_buffer *b = calloc(1, sizeof *b);
    if (b == NULL) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        return NULL;
    }
    b->base.size = size;
    d->gl.GenBuffers(1, &b->name);
    (void)bind(d, &b->base);
    d->gl.BufferData(GL_COPY_WRITE_BUFFER, (GLsizeiptr)size, NULL, GL_DYNAMIC_COPY);
    if (!gles_check(d, "glBufferData", failure)) {
        gles_buffer_free(device, &b->base);
        return NULL;
    }
    return &b->base;
}

void gles_buffer_free(struct device *device, struct gpu_buffer *buffer) {
    struct gles_device *d = gles_of(device);
    d->gl.DeleteBuffers(1, &((struct gles_buffer *)buffer)->name);
    free(buffer);
}

bool gles_write(struct device *device, struct gpu_buffer *buffer, size_t offset, const void *data,
                size_t size, struct failure *failure) {
    struct gles_device *d = gles_of(device);
    (void)bind(d, buffer);
    d->gl.BufferSubData(GL_COPY_WRITE_BUFFER, (GLintptr)offset, (GLsizeiptr)size, data);
    return gles_check(d, "glBufferSubData", failure);
}

bool gles_fill(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
               uint32_t pattern, struct failure *failure) {
    struct gles_device *d = gles_of(device);
    (void)bind(d, buffer);
    uint32_t *words = d->gl.MapBufferRange(GL_COPY_WRITE_BUFFER, (GLintptr)offset, (GLsizeiptr)size,
                                           GL_MAP_WRITE_BIT | GL_MAP_INVALIDATE_RANGE_BIT);
    if (words == NULL) {
        return gles_check(d, "glMapBufferRange", failure) &&
               fail(failure, FAULT_DRIVER, "glMapBufferRange gave no memory to fill");
    }
    for (size_t i = 0; i < size / 4; i++) {
        words[i] = pattern;
    }
    return gles_unmap(device, buffer, failure);
}

const void *gles_map(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
                     struct failure *failure) {
    struct gles_device *d = gles_of(device);
    (void)bind(d, buffer);
    const void *data = d->gl.MapBufferRange(GL_COPY_WRITE_BUFFER, (GLintptr)offset,
                                            (GLsizeiptr)size, GL_MAP_READ_BIT);
    if (data == NULL && gles_check(d, "glMapBufferRange", failure)) {
        (void)fail(failure, FAULT_DRIVER, "glMapBufferRange gave no memory to read");
    }
    return data;
}

bool gles_unmap(struct device *device, struct gpu_buffer *buffer, struct failure *failure) {
    struct gles_device *d = gles_of(device);
    (void)bind(d, buffer);
    if (!d->gl.UnmapBuffer(GL_COPY_WRITE_BUFFER)) {
        return fail(failure, FAULT_DRIVER, "glUnmapBuffer: the contents were lost");
    }
    return gles_check(d, "glUnmapBuffer", failure);
}

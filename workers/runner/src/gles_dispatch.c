/* Dispatching a sequence of passes and measuring it. */
#include "clock.h"
#include "gles_device.h"

#define WAIT_NS UINT64_C(1000000000)

static void dispatch(struct gles_device *d, const struct dispatch *pass) {
    const struct gles_program *program = (const struct gles_program *)pass->program;
    d->gl.UseProgram(program->name);
    if (program->values >= 0) {
        d->gl.Uniform1uiv(program->values, program->value_count, pass->values);
    }
    for (size_t i = 0; i < pass->binding_count; i++) {
        const struct binding *b = &pass->bindings[i];
        d->gl.BindBufferRange(GL_SHADER_STORAGE_BUFFER, (GLuint)i,
                              ((struct gles_buffer *)b->buffer)->name, (GLintptr)b->offset,
                              (GLsizeiptr)b->size);
    }
    d->gl.DispatchCompute(pass->grid[0], pass->grid[1], pass->grid[2]);
    d->gl.MemoryBarrier(GL_SHADER_STORAGE_BARRIER_BIT);
}

/* Sleeps in the driver. A loop that polls would steal the cores of a software driver (measured: 50
 * % too slow on two cores). Never gives up: the parent process holds the deadline. */
static bool wait(struct gles_device *d, struct failure *failure) {
    GLsync fence = d->gl.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (fence == NULL) {
        return gles_check(d, "glFenceSync", failure) &&
               fail(failure, FAULT_DRIVER, "glFenceSync gave no fence");
    }
    GLenum state = GL_TIMEOUT_EXPIRED;
    while (state == GL_TIMEOUT_EXPIRED) {
        state = d->gl.ClientWaitSync(fence, GL_SYNC_FLUSH_COMMANDS_BIT, WAIT_NS);
    }
    d->gl.DeleteSync(fence);
    if (state == GL_WAIT_FAILED) {
        return gles_check(d, "glClientWaitSync", failure) &&
               fail(failure, FAULT_DRIVER, "glClientWaitSync failed");
    }
    return true;
}

static void read_timer(struct gles_device *d, struct elapsed *elapsed) {
    GLuint64 ns = 0;
    GLint disjoint = 0;
    d->gl.GetQueryObjectui64vEXT(d->query, GL_QUERY_RESULT, &ns);
    d->gl.GetIntegerv(TF_GL_GPU_DISJOINT, &disjoint);
    elapsed->gpu_ns = (int64_t)ns;
    elapsed->disjoint = disjoint != 0;
}

bool gles_run(struct device *device, const struct sequence *sequence, unsigned times,
              bool gpu_timer, struct elapsed *elapsed, struct failure *failure) {
    struct gles_device *d = gles_of(device);
    bool timed = gpu_timer && device->timer_bits > 0;
    GLint stale = 0;
    if (timed) {
        d->gl.GetIntegerv(TF_GL_GPU_DISJOINT, &stale); /* reading it resets it */
    }
    *elapsed = (struct elapsed){.gpu_ns = -1};
    int64_t start = clock_ns();
    if (timed) {
        d->gl.BeginQuery(TF_GL_TIME_ELAPSED, d->query);
    }
    for (unsigned t = 0; t < times; t++) {
        for (size_t i = 0; i < sequence->count; i++) {
            dispatch(d, &sequence->dispatches[i]);
        }
    }
    if (timed) {
        d->gl.EndQuery(TF_GL_TIME_ELAPSED);
    }
    bool complete = wait(d, failure);
    elapsed->wall_ns = clock_ns() - start;
    if (!complete || !gles_check(d, "dispatch", failure)) {
        return false;
    }
    if (timed) {
        read_timer(d, elapsed);
    }
    /* Later maps and uploads must see what the shaders wrote. */
    d->gl.MemoryBarrier(GL_BUFFER_UPDATE_BARRIER_BIT);
    return gles_check(d, "timer", failure);
}

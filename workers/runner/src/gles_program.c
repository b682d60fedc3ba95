/* Compute shaders of the GLES backend: compile, link, and the driver's log where it refuses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gles_device.h"

#define SOURCE_MAX (16u << 20)
#define VALUES "tilefarm_values[0]"

static void take_log(struct log *log, GLint length,
                     void(GL_APIENTRY *get)(GLuint, GLsizei, GLsizei *, GLchar *), GLuint name) {
    if (length <= 1) { /* the length counts the NUL */
        return;
    }
    log->text = malloc((size_t)length);
    if (log->text == NULL) {
        return;
    }
    GLsizei got = 0;
    get(name, length, &got, log->text);
    log->size = got > 0 ? (size_t)got : 0;
    if (log->size > LOG_MAX) {
        log->size = LOG_MAX;
        log->truncated = true;
    }
}

static GLuint compile_shader(struct gles_device *d, const void *source, size_t size,
                             struct log *log, struct failure *failure) {
    const GLchar *text = source;
    const GLint length = (GLint)size;
    GLuint shader = d->gl.CreateShader(GL_COMPUTE_SHADER);
    if (shader == 0) {
        (void)fail(failure, FAULT_DRIVER, "glCreateShader failed");
        return 0;
    }
    d->gl.ShaderSource(shader, 1, &text, &length);
    d->gl.CompileShader(shader);
    GLint good = 0, log_size = 0;
    d->gl.GetShaderiv(shader, GL_COMPILE_STATUS, &good);
    if (good == 0) {
        d->gl.GetShaderiv(shader, GL_INFO_LOG_LENGTH, &log_size);
        take_log(log, log_size, d->gl.GetShaderInfoLog, shader);
        (void)fail(failure, FAULT_COMPILE, "the driver refused the shader");
        d->gl.DeleteShader(shader);
        return 0;
    }
    return shader;
}

static bool link_program(struct gles_device *d, GLuint name, GLuint shader, struct log *log,
                         struct failure *failure) {
    d->gl.AttachShader(name, shader);
    d->gl.LinkProgram(name);
    GLint good = 0, log_size = 0;
    d->gl.GetProgramiv(name, GL_LINK_STATUS, &good);
    if (good == 0) {
        d->gl.GetProgramiv(name, GL_INFO_LOG_LENGTH, &log_size);
        take_log(log, log_size, d->gl.GetProgramInfoLog, name);
        return fail(failure, FAULT_LINK, "the driver could not link the shader");
    }
    return true;
}

static bool read_group(struct gles_device *d, struct gles_program *program,
                       struct failure *failure) {
    GLint group[3] = {0, 0, 0};
    d->gl.GetProgramiv(program->name, GL_COMPUTE_WORK_GROUP_SIZE, group);
    for (int i = 0; i < 3; i++) {
        program->base.group[i] = (uint32_t)group[i];
    }
    return gles_check(d, "compile and link", failure);
}

/* The array that takes a dispatch's values. How many it has the driver tells: those up to the last
 * one that the shader reads, at least. */
static bool find_values(struct gles_device *d, struct gles_program *program, size_t given,
                        struct log *log, struct failure *failure) {
    const GLchar *name = VALUES;
    GLuint index = GL_INVALID_INDEX;
    GLint type = 0;
    program->values = -1;
    d->gl.GetUniformIndices(program->name, 1, &name, &index);
    if (index != GL_INVALID_INDEX) {
        program->values = d->gl.GetUniformLocation(program->name, name);
        d->gl.GetActiveUniformsiv(program->name, 1, &index, GL_UNIFORM_SIZE, &program->value_count);
        d->gl.GetActiveUniformsiv(program->name, 1, &index, GL_UNIFORM_TYPE, &type);
    }
    if (!gles_check(d, "values", failure)) {
        return false;
    }
    char text[160];
    if (program->values < 0 && given == 0) {
        return true;
    }
    if (program->values < 0) {
        (void)snprintf(text, sizeof text, "the shader reads no values, and the pass gives %zu",
                       given);
    } else if (type != GL_UNSIGNED_INT) {
        (void)snprintf(text, sizeof text, "the shader's values are no uint");
    } else if ((size_t)program->value_count > given) {
        (void)snprintf(text, sizeof text, "the shader reads %d values, and the pass gives %zu",
                       program->value_count, given);
    } else {
        return true;
    }
    log->text = strdup(text);
    log->size = log->text == NULL ? 0 : strlen(log->text);
    return fail(failure, FAULT_LINK, "%s", text);
}

/* GLES has neither, so a job that asks for them is wrong. */
static bool asks_for_less(const struct shader *source, struct failure *failure) {
    if (source->constant_count > 0) {
        return fail(failure, FAULT_DRIVER, "GLES has no specialisation constants");
    }
    return source->subgroup == 0 ||
           fail(failure, FAULT_UNSUPPORTED, "GLES has no subgroups, %" PRIu32 " asked for",
                source->subgroup);
}

struct program *gles_compile(struct device *device, const struct shader *source, struct log *log,
                             struct failure *failure) {
    struct gles_device *d = gles_of(device);
    if (!asks_for_less(source, failure)) {
        return NULL;
    }
    struct gles_program *program = calloc(1, sizeof *program);
    if (program == NULL || source->size > SOURCE_MAX) {
        (void)fail(failure, FAULT_MEMORY, "shader of %zu bytes: out of memory", source->size);
        free(program);
        return NULL;
    }
    GLuint shader = compile_shader(d, source->source, source->size, log, failure);
    if (shader == 0) {
        free(program);
        return NULL;
    }
    program->name = d->gl.CreateProgram();
    bool good = link_program(d, program->name, shader, log, failure) &&
                read_group(d, program, failure) &&
                find_values(d, program, source->value_count, log, failure);
    d->gl.DeleteShader(shader);
    if (!good) {
        gles_program_free(device, &program->base);
        return NULL;
    }
    return &program->base;
}

void gles_program_free(struct device *device, struct program *program) {
    struct gles_device *d = gles_of(device);
    struct gles_program *p = (struct gles_program *)program;
    d->gl.DeleteProgram(p->name);
    free(p);
}

/* A GLES 3.1 context without a window system, and what its driver says about itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gles.h"
#include "gles_device.h"
#include "library_path.h"

#define DEVICES_MAX 16

static bool names_extension(const char *list, const char *name) {
    size_t size = strlen(name);
    for (const char *at = list; at != NULL && (at = strstr(at, name)) != NULL; at += size) {
        bool starts = at == list || at[-1] == ' ';
        if (starts && (at[size] == ' ' || at[size] == '\0')) {
            return true;
        }
    }
    return false;
}

static void drop_display(struct gles_device *d) {
    if (d->display == EGL_NO_DISPLAY) {
        return;
    }
    (void)d->egl.MakeCurrent(d->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    if (d->context != EGL_NO_CONTEXT) {
        (void)d->egl.DestroyContext(d->display, d->context);
    }
    if (d->surface != EGL_NO_SURFACE) {
        (void)d->egl.DestroySurface(d->display, d->surface);
    }
    (void)d->egl.Terminate(d->display);
    d->display = EGL_NO_DISPLAY;
    d->context = EGL_NO_CONTEXT;
    d->surface = EGL_NO_SURFACE;
}

static bool make_context(struct gles_device *d, EGLConfig config, struct failure *failure) {
    const EGLint attributes[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, 1,
                                 EGL_NONE};
    const EGLint old_attributes[] = {EGL_CONTEXT_CLIENT_VERSION, 3, EGL_NONE};
    d->context = d->egl.CreateContext(d->display, config, EGL_NO_CONTEXT, attributes);
    if (d->context == EGL_NO_CONTEXT) { /* EGL 1.4 without EGL_KHR_create_context */
        d->context = d->egl.CreateContext(d->display, config, EGL_NO_CONTEXT, old_attributes);
    }
    return d->context != EGL_NO_CONTEXT ||
           fail(failure, FAULT_DRIVER, "eglCreateContext: 0x%04x", (unsigned)d->egl.GetError());
}

static bool make_current(struct gles_device *d, EGLConfig config, struct failure *failure) {
    const EGLint one_pixel[] = {EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE};
    if (d->egl.MakeCurrent(d->display, EGL_NO_SURFACE, EGL_NO_SURFACE, d->context)) {
        return true;
    }
    d->surface = d->egl.CreatePbufferSurface(d->display, config, one_pixel);
    if (d->surface != EGL_NO_SURFACE &&
        d->egl.MakeCurrent(d->display, d->surface, d->surface, d->context)) {
        return true;
    }
    return fail(failure, FAULT_DRIVER, "eglMakeCurrent: 0x%04x", (unsigned)d->egl.GetError());
}

static bool open_context(struct gles_device *d, struct failure *failure) {
    const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                             EGL_OPENGL_ES3_BIT, EGL_NONE};
    const EGLint any[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_NONE};
    EGLConfig config = NULL;
    EGLint count = 0;
    if (!d->egl.BindAPI(EGL_OPENGL_ES_API)) {
        return fail(failure, FAULT_DRIVER, "eglBindAPI: 0x%04x", (unsigned)d->egl.GetError());
    }
    if (!d->egl.ChooseConfig(d->display, wanted, &config, 1, &count) || count == 0) {
        if (!d->egl.ChooseConfig(d->display, any, &config, 1, &count) || count == 0) {
            return fail(failure, FAULT_DRIVER, "no EGL config for GLES 3");
        }
    }
    return make_context(d, config, failure) && make_current(d, config, failure);
}

static bool try_display(struct gles_device *d, EGLDisplay display, struct failure *failure) {
    EGLint major = 0, minor = 0;
    if (display == EGL_NO_DISPLAY || !d->egl.Initialize(display, &major, &minor)) {
        return fail(failure, FAULT_DRIVER, "eglInitialize: 0x%04x", (unsigned)d->egl.GetError());
    }
    d->display = display;
    if (!open_context(d, failure)) {
        drop_display(d);
        return false;
    }
    return true;
}

static bool is_software(const struct gles_device *d, void *egl_device) {
    const char *list = d->egl.QueryDeviceStringEXT == NULL
                           ? NULL
                           : d->egl.QueryDeviceStringEXT(egl_device, EGL_EXTENSIONS);
    return list == NULL || names_extension(list, "EGL_MESA_device_software");
}

static bool try_devices(struct gles_device *d, const char *client, bool software,
                        struct failure *failure) {
    void *devices[DEVICES_MAX];
    EGLint count = 0;
    if (!names_extension(client, "EGL_EXT_platform_device") || d->egl.QueryDevicesEXT == NULL ||
        !d->egl.QueryDevicesEXT(DEVICES_MAX, devices, &count)) {
        return false;
    }
    for (EGLint i = 0; i < count; i++) {
        if (is_software(d, devices[i]) == software &&
            try_display(d, d->egl.GetPlatformDisplayEXT(TF_EGL_PLATFORM_DEVICE, devices[i], NULL),
                        failure)) {
            return true;
        }
    }
    return false;
}

/* Hardware first: on a machine with an NVIDIA GPU Mesa's surfaceless platform is there as well, and
 * it would give llvmpipe. Without platforms (Android) the default display is the only one.
 * TILEFARM_EGL_PLATFORM=surfaceless|device|default tries that platform only. */
static bool open_any(struct gles_device *d, struct failure *failure) {
    const char *client = d->egl.QueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
    const char *wanted = getenv("TILEFARM_EGL_PLATFORM");
    bool any = wanted == NULL;
    bool platforms = client != NULL && d->egl.GetPlatformDisplayEXT != NULL;
    (void)d->egl.GetError(); /* EGL 1.4 without client extensions leaves EGL_BAD_DISPLAY */
    (void)fail(failure, FAULT_DRIVER, "no EGL display of the wanted platform");
    if (platforms && (any || strcmp(wanted, "device") == 0) &&
        try_devices(d, client, false, failure)) {
        return true;
    }
    if (platforms && (any || strcmp(wanted, "surfaceless") == 0) &&
        names_extension(client, "EGL_MESA_platform_surfaceless") &&
        try_display(d,
                    d->egl.GetPlatformDisplayEXT(TF_EGL_PLATFORM_SURFACELESS,
                                                 (void *)EGL_DEFAULT_DISPLAY, NULL),
                    failure)) {
        return true;
    }
    if (platforms && (any || strcmp(wanted, "device") == 0) &&
        try_devices(d, client, true, failure)) {
        return true;
    }
    return (any || strcmp(wanted, "default") == 0) &&
           try_display(d, d->egl.GetDisplay(EGL_DEFAULT_DISPLAY), failure);
}

static void copy_text(char *to, size_t room, const GLubyte *from) {
    (void)snprintf(to, room, "%s", from == NULL ? "" : (const char *)from);
}

static bool read_driver(struct gles_device *d, struct failure *failure) {
    struct driver_info *driver = &d->base.driver;
    GLint major = 0, minor = 0;
    d->gl.GetIntegerv(GL_MAJOR_VERSION, &major);
    d->gl.GetIntegerv(GL_MINOR_VERSION, &minor);
    copy_text(driver->vendor, sizeof driver->vendor, d->gl.GetString(GL_VENDOR));
    copy_text(driver->renderer, sizeof driver->renderer, d->gl.GetString(GL_RENDERER));
    copy_text(driver->version, sizeof driver->version, d->gl.GetString(GL_VERSION));
    copy_text(driver->glsl, sizeof driver->glsl, d->gl.GetString(GL_SHADING_LANGUAGE_VERSION));
    library_path(driver->library, sizeof driver->library);
    if (major < 3 || (major == 3 && minor < 1)) {
        return fail(failure, FAULT_DRIVER, "the driver offers GLES %d.%d, compute needs 3.1", major,
                    minor);
    }
    return gles_check(d, "driver strings", failure);
}

static void read_limits(struct gles_device *d) {
    static const GLenum names[LIMIT_COUNT] = {
        [LIMIT_SHARED_BYTES] = GL_MAX_COMPUTE_SHARED_MEMORY_SIZE,
        [LIMIT_INVOCATIONS] = GL_MAX_COMPUTE_WORK_GROUP_INVOCATIONS,
        [LIMIT_STORAGE_BYTES] = GL_MAX_SHADER_STORAGE_BLOCK_SIZE,
        [LIMIT_STORAGE_ALIGN] = GL_SHADER_STORAGE_BUFFER_OFFSET_ALIGNMENT,
    };
    uint64_t *value = d->base.limits.value;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        GLint64 number = 0;
        if (names[i] != 0) {
            d->gl.GetInteger64v(names[i], &number);
            value[i] = number > 0 ? (uint64_t)number : 0;
        }
    }
    for (GLuint axis = 0; axis < 3; axis++) {
        GLint size = 0, count = 0;
        d->gl.GetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_SIZE, axis, &size);
        d->gl.GetIntegeri_v(GL_MAX_COMPUTE_WORK_GROUP_COUNT, axis, &count);
        value[LIMIT_GROUP_X + axis] = (uint64_t)(uint32_t)size;
        value[LIMIT_COUNT_X + axis] = (uint64_t)(uint32_t)count; /* some say 2^32-1, read as -1 */
    }
    GLint in_shader = 0, bindings = 0;
    d->gl.GetIntegerv(GL_MAX_COMPUTE_SHADER_STORAGE_BLOCKS, &in_shader);
    d->gl.GetIntegerv(GL_MAX_SHADER_STORAGE_BUFFER_BINDINGS, &bindings);
    value[LIMIT_STORAGE_BINDINGS] = (uint64_t)(in_shader < bindings ? in_shader : bindings);
}

static void open_timer(struct gles_device *d) {
    if (!gles_has_extension(d, "GL_EXT_disjoint_timer_query") ||
        d->gl.GetQueryObjectui64vEXT == NULL) {
        return;
    }
    GLint bits = 0;
    d->gl.GetQueryiv(TF_GL_TIME_ELAPSED, TF_GL_QUERY_COUNTER_BITS, &bits);
    if (bits > 0) {
        d->gl.GenQueries(1, &d->query);
        d->base.timer_bits = d->query != 0 ? bits : 0;
    }
}

/* EGL names no GPUs: which one answers is decided by the order in open_any. */
static bool asks_for_default(const struct opening *opening, struct failure *failure) {
    if (opening->adapter != NULL && *opening->adapter != '\0') {
        return fail(failure, FAULT_DRIVER, "GLES has no choice of adapters, \"%.100s\" asked for",
                    opening->adapter);
    }
    return opening->enable == NULL || *opening->enable == '\0' ||
           fail(failure, FAULT_DRIVER, "GLES has no features to enable, \"%.100s\" asked for",
                opening->enable);
}

struct device *gles_open(const struct opening *opening, struct failure *failure) {
    if (!asks_for_default(opening, failure)) {
        return NULL;
    }
    struct gles_device *d = calloc(1, sizeof *d);
    if (d == NULL) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        return NULL;
    }
    d->base.backend = &gles_backend;
    d->display = EGL_NO_DISPLAY;
    d->context = EGL_NO_CONTEXT;
    d->surface = EGL_NO_SURFACE;
    if (!egl_load(&d->egl, failure) || !open_any(d, failure) ||
        !gl_load(&d->egl, &d->gl, failure) || !read_driver(d, failure)) {
        gles_close(&d->base);
        return NULL;
    }
    read_limits(d);
    open_timer(d);
    d->base.advertised.has[FEATURE_PACK_HALF] = true; /* part of GLES 3.1 */
    d->base.advertised.has[FEATURE_TIMER_QUERY] = d->base.timer_bits > 0;
    if (!gles_check(d, "limits", failure)) {
        gles_close(&d->base);
        return NULL;
    }
    return &d->base;
}

void gles_close(struct device *device) {
    struct gles_device *d = gles_of(device);
    if (d->query != 0) {
        d->gl.DeleteQueries(1, &d->query);
    }
    drop_display(d);
    free(d);
}

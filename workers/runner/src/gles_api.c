/* Resolves EGL and GLES at run time; see gles_api.h. */
#include "gles_api.h"

#include <dlfcn.h>
#include <string.h>

static void *open_first(const char *const *names) {
    for (; *names != NULL; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) {
            return library;
        }
    }
    return NULL;
}

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises that the bits
 * agree. */
static void set(void *slot, void *address) {
    memcpy(slot, &address, sizeof address);
}

bool egl_load(struct egl_api *egl, struct failure *failure) {
    static const char *const names[] = {"libEGL.so.1", "libEGL.so", NULL};
    memset(egl, 0, sizeof *egl);
    void *library = open_first(names);
    if (library == NULL) {
        return fail(failure, FAULT_DRIVER, "dlopen: %s", dlerror());
    }
#define LOAD(result, name, arguments) set(&egl->name, dlsym(library, "egl" #name));
    EGL_CORE(LOAD)
#undef LOAD
#define CHECK(result, name, arguments)                                                             \
    if (egl->name == NULL) {                                                                       \
        return fail(failure, FAULT_DRIVER, "libEGL has no egl" #name);                             \
    }
    EGL_CORE(CHECK)
#undef CHECK
#define LOAD(result, name, arguments) set(&egl->name, egl->GetProcAddress("egl" #name));
    EGL_EXTRA(LOAD)
#undef LOAD
    return true;
}

/* Core functions come from the library where it has them: eglGetProcAddress answers for those only
 * since EGL 1.5, and on Android returns a stub for names that it does not know. */
static void *gl_find(const struct egl_api *egl, void *library, const char *name) {
    void *address = library == NULL ? NULL : dlsym(library, name);
    return address != NULL ? address : egl->GetProcAddress(name);
}

bool gl_load(const struct egl_api *egl, struct gl_api *gl, struct failure *failure) {
    static const char *const names[] = {"libGLESv3.so", "libGLESv2.so.2", "libGLESv2.so", NULL};
    memset(gl, 0, sizeof *gl);
    void *library = open_first(names);
#define LOAD(result, name, arguments) set(&gl->name, gl_find(egl, library, "gl" #name));
    GL_CORE(LOAD)
    GL_EXTRA(LOAD)
#undef LOAD
#define CHECK(result, name, arguments)                                                             \
    if (gl->name == NULL) {                                                                        \
        return fail(failure, FAULT_DRIVER, "the driver has no gl" #name);                          \
    }
    GL_CORE(CHECK)
#undef CHECK
    return true;
}

/* EGL and GLES entry points, resolved at run time. The types are written out here because the
 * headers of older NDKs lack the PFN… typedefs of these functions. */
#ifndef TILEFARM_GLES_API_H
#define TILEFARM_GLES_API_H

#define EGL_EGL_PROTOTYPES 0
#define GL_GLES_PROTOTYPES 0
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl31.h>

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"

/* EXT_disjoint_timer_query, KHR_robustness and EXT_platform_* values, absent from the core headers.
 */
#define TF_GL_QUERY_COUNTER_BITS 0x8864
#define TF_GL_TIME_ELAPSED 0x88BF
#define TF_GL_GPU_DISJOINT 0x8FBB
#define TF_GL_CONTEXT_LOST 0x0507
#define TF_EGL_PLATFORM_SURFACELESS 0x31DD
#define TF_EGL_PLATFORM_DEVICE 0x313F

/* result, name without prefix, arguments */
#define EGL_CORE(X)                                                                                \
    X(void *, GetProcAddress, (const char *))                                                      \
    X(EGLDisplay, GetDisplay, (EGLNativeDisplayType))                                              \
    X(EGLBoolean, Initialize, (EGLDisplay, EGLint *, EGLint *))                                    \
    X(EGLBoolean, Terminate, (EGLDisplay))                                                         \
    X(const char *, QueryString, (EGLDisplay, EGLint))                                             \
    X(EGLBoolean, BindAPI, (EGLenum))                                                              \
    X(EGLBoolean, ChooseConfig, (EGLDisplay, const EGLint *, EGLConfig *, EGLint, EGLint *))       \
    X(EGLContext, CreateContext, (EGLDisplay, EGLConfig, EGLContext, const EGLint *))              \
    X(EGLBoolean, DestroyContext, (EGLDisplay, EGLContext))                                        \
    X(EGLSurface, CreatePbufferSurface, (EGLDisplay, EGLConfig, const EGLint *))                   \
    X(EGLBoolean, DestroySurface, (EGLDisplay, EGLSurface))                                        \
    X(EGLBoolean, MakeCurrent, (EGLDisplay, EGLSurface, EGLSurface, EGLContext))                   \
    X(EGLint, GetError, (void))

/* may be missing */
#define EGL_EXTRA(X)                                                                               \
    X(EGLDisplay, GetPlatformDisplayEXT, (EGLenum, void *, const EGLint *))                        \
    X(EGLBoolean, QueryDevicesEXT, (EGLint, void **, EGLint *))                                    \
    X(const char *, QueryDeviceStringEXT, (void *, EGLint))

#define GL_CORE(X)                                                                                 \
    X(GLenum, GetError, (void))                                                                    \
    X(const GLubyte *, GetString, (GLenum))                                                        \
    X(const GLubyte *, GetStringi, (GLenum, GLuint))                                               \
    X(void, GetIntegerv, (GLenum, GLint *))                                                        \
    X(void, GetIntegeri_v, (GLenum, GLuint, GLint *))                                              \
    X(void, GetInteger64v, (GLenum, GLint64 *))                                                    \
    X(GLuint, CreateShader, (GLenum))                                                              \
    X(void, ShaderSource, (GLuint, GLsizei, const GLchar *const *, const GLint *))                 \
    X(void, CompileShader, (GLuint))                                                               \
    X(void, GetShaderiv, (GLuint, GLenum, GLint *))                                                \
    X(void, GetShaderInfoLog, (GLuint, GLsizei, GLsizei *, GLchar *))                              \
    X(void, DeleteShader, (GLuint))                                                                \
    X(GLuint, CreateProgram, (void))                                                               \
    X(void, AttachShader, (GLuint, GLuint))                                                        \
    X(void, LinkProgram, (GLuint))                                                                 \
    X(void, GetProgramiv, (GLuint, GLenum, GLint *))                                               \
    X(void, GetProgramInfoLog, (GLuint, GLsizei, GLsizei *, GLchar *))                             \
    X(void, GetUniformIndices, (GLuint, GLsizei, const GLchar *const *, GLuint *))                 \
    X(void, GetActiveUniformsiv, (GLuint, GLsizei, const GLuint *, GLenum, GLint *))               \
    X(GLint, GetUniformLocation, (GLuint, const GLchar *))                                         \
    X(void, Uniform1uiv, (GLint, GLsizei, const GLuint *))                                         \
    X(void, UseProgram, (GLuint))                                                                  \
    X(void, DeleteProgram, (GLuint))                                                               \
    X(void, GenBuffers, (GLsizei, GLuint *))                                                       \
    X(void, DeleteBuffers, (GLsizei, const GLuint *))                                              \
    X(void, BindBuffer, (GLenum, GLuint))                                                          \
    X(void, BindBufferRange, (GLenum, GLuint, GLuint, GLintptr, GLsizeiptr))                       \
    X(void, BufferData, (GLenum, GLsizeiptr, const void *, GLenum))                                \
    X(void, BufferSubData, (GLenum, GLintptr, GLsizeiptr, const void *))                           \
    X(void, CopyBufferSubData, (GLenum, GLenum, GLintptr, GLintptr, GLsizeiptr))                   \
    X(void *, MapBufferRange, (GLenum, GLintptr, GLsizeiptr, GLbitfield))                          \
    X(GLboolean, UnmapBuffer, (GLenum))                                                            \
    X(void, DispatchCompute, (GLuint, GLuint, GLuint))                                             \
    X(void, MemoryBarrier, (GLbitfield))                                                           \
    X(GLsync, FenceSync, (GLenum, GLbitfield))                                                     \
    X(GLenum, ClientWaitSync, (GLsync, GLbitfield, GLuint64))                                      \
    X(void, DeleteSync, (GLsync))                                                                  \
    X(void, GenQueries, (GLsizei, GLuint *))                                                       \
    X(void, DeleteQueries, (GLsizei, const GLuint *))                                              \
    X(void, BeginQuery, (GLenum, GLuint))                                                          \
    X(void, EndQuery, (GLenum))                                                                    \
    X(void, GetQueryiv, (GLenum, GLenum, GLint *))

#define GL_EXTRA(X) X(void, GetQueryObjectui64vEXT, (GLuint, GLenum, GLuint64 *))

#define EGL_MEMBER(result, name, arguments) result(EGLAPIENTRY *name) arguments;
#define GL_MEMBER(result, name, arguments) result(GL_APIENTRY *name) arguments;
struct egl_api {
    EGL_CORE(EGL_MEMBER)
    EGL_EXTRA(EGL_MEMBER)
};
struct gl_api {
    GL_CORE(GL_MEMBER)
    GL_EXTRA(GL_MEMBER)
};
#undef EGL_MEMBER
#undef GL_MEMBER

/* The libraries stay loaded until the process ends: drivers do not survive dlclose. */
bool egl_load(struct egl_api *egl, struct failure *failure);
/* Needs a display that was initialised. */
bool gl_load(const struct egl_api *egl, struct gl_api *gl, struct failure *failure);

#endif

/* What the runner needs of a GPU API. GLES (gles_*.c) and Vulkan (vk_*.c) implement it.
 * Tests link a fake instead. Everything behind it runs in the child process and may crash or hang
 * there. */
#ifndef TILEFARM_BACKEND_H
#define TILEFARM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "facts.h"
#include "gpu_features.h"
#include "limits.h"

enum fault {
    FAULT_NONE,
    FAULT_COMPILE, /* the shader was refused; the log tells why */
    FAULT_LINK,
    FAULT_MEMORY,
    FAULT_LOST,       /* the context is gone: this child is of no more use */
    FAULT_DRIVER,     /* a call failed that should not have */
    FAULT_UNSUPPORTED /* more was asked for than this driver offers; nothing is wrong with either */
};

struct failure {
    enum fault kind;
    char reason[256];
};

struct driver_info {
    char vendor[128], renderer[256], version[256], glsl[128];
    char library[512]; /* path of the driver really loaded, from the process itself */
    /* The rest is empty where an API has no such thing. */
    char adapter[80]; /* by which opening.adapter finds this GPU */
    char device_type[16];
    char id[16], name[256], info[256], conformance[24]; /* VkPhysicalDeviceDriverProperties */
};

struct device {
    const struct backend *backend;
    struct driver_info driver;
    struct limits limits;
    int timer_bits;             /* 0: no GPU timer */
    struct features advertised; /* the driver's word; what a shader proved is in the profile */
    struct facts facts;
};

struct program {
    uint32_t group[3]; /* workgroup size: as the driver reports it after linking, or from SPIR-V */
};

/* One shader to compile. Constants and subgroup size are Vulkan's; GLES refuses them. */
struct shader {
    const void *source; /* GLSL ES text, or SPIR-V */
    size_t size;
    const uint32_t *constants; /* values of specialisation constants 0, 1, ... */
    size_t constant_count;
    size_t value_count; /* that every dispatch of it will bring */
    size_t binding_count;
    uint32_t subgroup; /* required subgroup size; 0: any */
};

/* Which GPU, and what to switch on when it is opened. */
struct opening {
    const char *adapter; /* NULL or "": the first one */
    const char *enable;  /* names of proven features, separated by commas; NULL or "": none */
};

struct gpu_buffer {
    size_t size;
};

struct log {
    char *text; /* not terminated; freed by the caller */
    size_t size;
    bool truncated;
};
#define LOG_MAX (16u << 10)

struct binding {
    struct gpu_buffer *buffer;
    size_t offset, size; /* bytes; offset is a multiple of LIMIT_STORAGE_ALIGN */
};

struct dispatch {
    struct program *program;
    uint32_t grid[3];
    const struct binding *bindings; /* the i-th at binding i */
    size_t binding_count;
    const uint32_t *values; /* as many as the program was compiled for */
    size_t value_count;
};

/* All passes of a case, in order, each waiting for the writes of the one before. */
struct sequence {
    const struct dispatch *dispatches;
    size_t count;
};

struct elapsed {
    int64_t wall_ns; /* submit to completion */
    int64_t gpu_ns;  /* -1: not measured */
    bool disjoint;   /* the GPU's clock changed meanwhile: gpu_ns is worth nothing */
};

/* What proofs measured on their way. */
struct evidence {
    uint32_t subgroup; /* invocations counted by a ballot; 0: not measured */
};

/* How a feature of an API is proven: on a device that was opened with `enable`, by a shader that
 * uses it and a result that is right. */
struct proof {
    enum feature feature;
    const char *enable; /* as in opening; NULL: nothing */
    /* NULL: no compute shader can prove it, so the driver's word is all there is */
    bool (*prove)(struct device *device, struct evidence *evidence, struct failure *failure);
};

/* Functions that can fail fill *failure and give NULL or false. */
struct backend {
    const char *api;
    /* Calls back once for each GPU of this API, in the loader's order; a backend without a choice
     * names "". False if the API cannot be loaded at all. */
    bool (*adapters)(void (*each)(void *arg, const char *adapter), void *arg,
                     struct failure *failure);
    struct device *(*open)(const struct opening *opening, struct failure *failure);
    void (*close)(struct device *device);

    struct program *(*compile)(struct device *device, const struct shader *shader, struct log *log,
                               struct failure *failure);
    void (*program_free)(struct device *device, struct program *program);

    struct gpu_buffer *(*buffer_new)(struct device *device, size_t size, struct failure *failure);
    void (*buffer_free)(struct device *device, struct gpu_buffer *buffer);
    bool (*write)(struct device *device, struct gpu_buffer *buffer, size_t offset, const void *data,
                  size_t size, struct failure *failure);
    /* offset and size are multiples of 4 */
    bool (*fill)(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
                 uint32_t pattern, struct failure *failure);
    const void *(*map)(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
                       struct failure *failure);
    /* False: what was read through the mapping is worth nothing. */
    bool (*unmap)(struct device *device, struct gpu_buffer *buffer, struct failure *failure);

    /* Runs the sequence `times` times back to back and blocks (without spinning: a software driver
     * needs the core) until all are complete. */
    bool (*run)(struct device *device, const struct sequence *sequence, unsigned times,
                bool gpu_timer, struct elapsed *elapsed, struct failure *failure);

    /* Calls back once for each extension that the driver names. */
    void (*extensions)(struct device *device, void (*each)(void *arg, const char *name), void *arg);
    /* All features that this API can have, in the order in which they are tried. */
    const struct proof *proofs;
    size_t proof_count;
};

/* NULL if this runner was built without that API. */
const struct backend *backend_find(const char *api);

/* Opens a device with limits lowered after `impose` (TILEFARM_IMPOSE or NULL). */
struct device *device_open(const char *api, const struct opening *opening, const char *impose,
                           struct failure *failure);

/* Fills *failure. Always false, so that callers can return it. */
bool __attribute__((format(printf, 3, 4)))
fail(struct failure *failure, enum fault kind, const char *format, ...);

#endif

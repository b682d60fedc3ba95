/* Sensors of NVIDIA's GPUs through NVML, the library behind nvidia-smi; see sensors.h. Its few
 * functions are declared here as in NVIDIA's nvml.h, so that no header of theirs is needed. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sensors.h"

typedef void *nvml_device;

#define NVML_CLOCK_SM 1u
#define NVML_TEMPERATURE_GPU 0u
#define UUID_DIGITS 32u
/* Reasons why the clock is lower than it could be. Software power cap, hardware slowdown, software
 * and hardware thermal slowdown, hardware power brake. Not: idle (0x1), clocks that somebody set
 * (0x2, 0x100), sync boost (0x10). */
#define HELD_BACK (0x4u | 0x8u | 0x20u | 0x40u | 0x80u)

struct nvml {
    void *library;
    nvml_device gpu; /* NULL: none was chosen */
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, nvml_device *gpu);
    /* NULL where the library is older or newer than the function. */
    int (*by_uuid)(const char *uuid, nvml_device *gpu);
    int (*clock)(nvml_device gpu, unsigned type, unsigned *mhz);
    int (*temperature)(nvml_device gpu, unsigned type, unsigned *degrees);
    int (*reasons)(nvml_device gpu, unsigned long long *reasons);
};

/* ISO C knows no cast from an object's to a function's address; POSIX promises that both look
 * alike. */
static bool find(void *function, void *library, const char *name) {
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static bool load(struct nvml *n) {
    void *l = n->library;
    (void)find(&n->by_uuid, l, "nvmlDeviceGetHandleByUUID");
    (void)find(&n->clock, l, "nvmlDeviceGetClockInfo");
    (void)find(&n->temperature, l, "nvmlDeviceGetTemperature");
    (void)(find(&n->reasons, l, "nvmlDeviceGetCurrentClocksEventReasons") ||
           find(&n->reasons, l, "nvmlDeviceGetCurrentClocksThrottleReasons"));
    return find(&n->init, l, "nvmlInit_v2") && find(&n->shutdown, l, "nvmlShutdown") &&
           find(&n->count, l, "nvmlDeviceGetCount_v2") &&
           find(&n->by_index, l, "nvmlDeviceGetHandleByIndex_v2");
}

struct nvml *nvml_open(const char *path) {
    void *library = dlopen(path == NULL ? "libnvidia-ml.so.1" : path, RTLD_NOW | RTLD_LOCAL);
    struct nvml *n = library == NULL ? NULL : calloc(1, sizeof *n);
    if (n != NULL) {
        n->library = library;
        if (load(n) && n->init() == 0) {
            return n;
        }
        free(n);
    }
    if (library != NULL) {
        (void)dlclose(library);
    }
    return NULL;
}

/* "4-0a1b…" (DRIVER_ID-DEVICE_UUID, vk_adapter.c) → "GPU-0a1b…": NVIDIA's drivers give Vulkan the
 * bytes of NVML's UUID. */
static bool uuid_of(const char *adapter, char uuid[64]) {
    const char *digits = strchr(adapter, '-');
    size_t size = digits == NULL ? 0 : strspn(digits + 1, "0123456789abcdef");
    if (size != UUID_DIGITS) {
        return false;
    }
    digits++;
    (void)snprintf(uuid, 64, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", digits, digits + 8, digits + 12,
                   digits + 16, digits + 20);
    return true;
}

bool nvml_choose(struct nvml *n, const char *adapter) {
    unsigned count = 0;
    char uuid[64];
    n->gpu = NULL;
    bool found = n->count(&count) == 0;
    if (found && count == 1) {
        found = n->by_index(0, &n->gpu) == 0;
    } else { /* GLES names no GPU: better no reading than a neighbour's */
        found =
            found && n->by_uuid != NULL && uuid_of(adapter, uuid) && n->by_uuid(uuid, &n->gpu) == 0;
    }
    n->gpu = found ? n->gpu : NULL;
    return n->gpu != NULL;
}

struct reading nvml_read(const struct nvml *n) {
    struct reading r = {.gpu_hz = -1, .temp_mc = -1, .throttled = -1};
    unsigned mhz = 0, degrees = 0;
    unsigned long long reasons = 0;
    if (n->gpu == NULL) {
        return r;
    }
    if (n->clock != NULL && n->clock(n->gpu, NVML_CLOCK_SM, &mhz) == 0) {
        r.gpu_hz = (int64_t)mhz * 1000000;
    }
    if (n->temperature != NULL && n->temperature(n->gpu, NVML_TEMPERATURE_GPU, &degrees) == 0) {
        r.temp_mc = (int64_t)degrees * 1000;
    }
    if (n->reasons != NULL && n->reasons(n->gpu, &reasons) == 0) {
        r.throttled = (reasons & HELD_BACK) != 0;
    }
    return r;
}

void nvml_close(struct nvml *n) {
    if (n != NULL) {
        (void)n->shutdown();
        (void)dlclose(n->library);
        free(n);
    }
}

/* Opening a device whatever its API; see backend.h. */
#include "backend.h"

#include <stdarg.h>
#include <stdio.h>

bool fail(struct failure *failure, enum fault kind, const char *format, ...) {
    va_list args;
    va_start(args, format);
    failure->kind = kind;
    (void)vsnprintf(failure->reason, sizeof failure->reason, format, args);
    va_end(args);
    return false;
}

struct device *device_open(const char *api, const struct opening *opening, const char *impose,
                           struct failure *failure) {
    const struct backend *backend = backend_find(api);
    if (backend == NULL) {
        (void)fail(failure, FAULT_DRIVER, "this runner has no backend for api %s", api);
        return NULL;
    }
    struct device *device = backend->open(opening, failure);
    if (device == NULL) {
        return NULL;
    }
    char reason[LIMIT_REASON_SIZE];
    if (!limits_impose(&device->limits, impose, reason)) {
        (void)fail(failure, FAULT_DRIVER, "TILEFARM_IMPOSE: %s", reason);
        backend->close(device);
        return NULL;
    }
    return device;
}

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

/* A feature that TILEFARM_IMPOSE takes away cannot be switched on. */
static bool enable_is_left(const struct limits *limits, const char *enable,
                           struct failure *failure) {
    struct features asked;
    char reason[FEATURE_REASON_SIZE];
    if (!features_parse(enable, &asked, reason)) {
        return fail(failure, FAULT_DRIVER, "enable: %s", reason);
    }
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (asked.has[i] && limits->without[i]) {
            return fail(failure, FAULT_UNSUPPORTED, "lacks %s", feature_name((enum feature)i));
        }
    }
    return true;
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
    bool good = limits_impose(&device->limits, impose, reason) ||
                fail(failure, FAULT_DRIVER, "TILEFARM_IMPOSE: %s", reason);
    if (!good || !enable_is_left(&device->limits, opening->enable, failure)) {
        backend->close(device);
        return NULL;
    }
    if (device->limits.without[FEATURE_TIMER_QUERY]) {
        device->timer_bits = 0;
    }
    return device;
}

/* What a device can do, as numbers: reported, lowered by TILEFARM_IMPOSE, and checked before a
 * dispatch. A kernel beyond a limit may "succeed" and write nothing (gfx-rs/wgpu#7429), so limits
 * are never left to the driver. */
#ifndef TILEFARM_LIMITS_H
#define TILEFARM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_features.h"
#include "job.h"

enum limit {
    LIMIT_SHARED_BYTES,
    LIMIT_INVOCATIONS,
    LIMIT_GROUP_X,
    LIMIT_GROUP_Y,
    LIMIT_GROUP_Z,
    LIMIT_COUNT_X,
    LIMIT_COUNT_Y,
    LIMIT_COUNT_Z,
    LIMIT_STORAGE_BYTES,
    LIMIT_STORAGE_BINDINGS,
    LIMIT_STORAGE_ALIGN, /* a minimum, so it cannot be imposed */
    LIMIT_COUNT
};

struct limits {
    uint64_t value[LIMIT_COUNT];
    bool imposed[LIMIT_COUNT];
    bool without[FEATURE_COUNT]; /* features taken away by TILEFARM_IMPOSE */
};

#define LIMIT_REASON_SIZE 96

const char *limit_name(enum limit limit);

/* Lowers limits after "name=value,name=value" (NULL: none) and takes features away after
 * "name=0". False with a reason if the text is wrong; a value above the device's own changes
 * nothing. */
bool limits_impose(struct limits *limits, const char *spec, char reason[LIMIT_REASON_SIZE]);

/* Each is true if it fits; else the reason names both numbers: "shared_bytes 36864 > 16384". */
bool limits_fit(const struct limits *limits, enum limit limit, uint64_t need,
                char reason[LIMIT_REASON_SIZE]);
bool limits_fit_case(const struct limits *limits, const struct job_case *c,
                     char reason[LIMIT_REASON_SIZE]);
bool limits_fit_group(const struct limits *limits, const uint32_t group[3],
                      char reason[LIMIT_REASON_SIZE]);

#endif

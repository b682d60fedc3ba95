/* Limits of a device; see limits.h. */
#include "limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

static const char *const names[LIMIT_COUNT] = {
    "shared_bytes", "invocations", "group_x",       "group_y",          "group_z",       "count_x",
    "count_y",      "count_z",     "storage_bytes", "storage_bindings", "storage_align",
};

const char *limit_name(enum limit limit) {
    return names[limit];
}

/* A feature can only be taken away: none can be given to a driver that lacks it. */
static bool take_away(struct limits *limits, const char *name, uint64_t value,
                      char reason[LIMIT_REASON_SIZE]) {
    enum feature feature = FEATURE_COUNT;
    if (!feature_find(name, &feature)) {
        (void)snprintf(reason, LIMIT_REASON_SIZE,
                       "\"%.40s\" is no limit or feature that can be imposed", name);
        return false;
    }
    if (value != 0) {
        (void)snprintf(reason, LIMIT_REASON_SIZE, "%s: a feature can only be set to 0", name);
        return false;
    }
    limits->without[feature] = true;
    return true;
}

static bool impose_one(struct limits *limits, char *item, char reason[LIMIT_REASON_SIZE]) {
    char *equals = strchr(item, '=');
    uint64_t value = 0;
    if (equals == NULL || !word_u64(equals + 1, 0, UINT64_MAX, &value)) {
        (void)snprintf(reason, LIMIT_REASON_SIZE, "\"%.40s\" is not NAME=NUMBER", item);
        return false;
    }
    *equals = '\0';
    for (int i = 0; i < LIMIT_STORAGE_ALIGN; i++) {
        if (strcmp(item, names[i]) == 0) {
            if (value < limits->value[i]) {
                limits->value[i] = value;
                limits->imposed[i] = true;
            }
            return true;
        }
    }
    return take_away(limits, item, value, reason);
}

bool limits_impose(struct limits *limits, const char *spec, char reason[LIMIT_REASON_SIZE]) {
    if (spec == NULL || *spec == '\0') {
        return true;
    }
    char *copy = strdup(spec);
    if (copy == NULL) {
        (void)snprintf(reason, LIMIT_REASON_SIZE, "out of memory");
        return false;
    }
    bool good = true;
    for (char *item = copy; good && item != NULL;) {
        char *comma = strchr(item, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        good = impose_one(limits, item, reason);
        item = comma == NULL ? NULL : comma + 1;
    }
    free(copy);
    return good;
}

bool limits_fit(const struct limits *limits, enum limit limit, uint64_t need,
                char reason[LIMIT_REASON_SIZE]) {
    if (need <= limits->value[limit]) {
        return true;
    }
    (void)snprintf(reason, LIMIT_REASON_SIZE, "%s %" PRIu64 " > %" PRIu64, names[limit], need,
                   limits->value[limit]);
    return false;
}

bool limits_fit_case(const struct limits *limits, const struct job_case *c,
                     char reason[LIMIT_REASON_SIZE]) {
    for (size_t i = 0; i < c->pass_count; i++) {
        const struct job_pass *pass = &c->passes[i];
        if (!limits_fit(limits, LIMIT_SHARED_BYTES, pass->shared_bytes, reason) ||
            !limits_fit(limits, LIMIT_STORAGE_BINDINGS, pass->binding_count, reason) ||
            !limits_fit(limits, LIMIT_COUNT_X, pass->grid[0], reason) ||
            !limits_fit(limits, LIMIT_COUNT_Y, pass->grid[1], reason) ||
            !limits_fit(limits, LIMIT_COUNT_Z, pass->grid[2], reason)) {
            return false;
        }
    }
    for (size_t i = 0; i < c->buffer_count; i++) {
        if (!limits_fit(limits, LIMIT_STORAGE_BYTES, job_buffer_bytes(&c->buffers[i]), reason)) {
            return false;
        }
    }
    return true;
}

bool limits_fit_group(const struct limits *limits, const uint32_t group[3],
                      char reason[LIMIT_REASON_SIZE]) {
    uint64_t invocations = (uint64_t)group[0] * group[1] * group[2];
    return limits_fit(limits, LIMIT_GROUP_X, group[0], reason) &&
           limits_fit(limits, LIMIT_GROUP_Y, group[1], reason) &&
           limits_fit(limits, LIMIT_GROUP_Z, group[2], reason) &&
           limits_fit(limits, LIMIT_INVOCATIONS, invocations, reason);
}

/* Names of features; see gpu_features.h. */
#include "gpu_features.h"

#include <stdio.h>
#include <string.h>

static const char *const names[FEATURE_COUNT] = {
    [FEATURE_PACK_HALF] = "pack_half",
    [FEATURE_TIMER_QUERY] = "timer_query",
    [FEATURE_FLOAT16] = "float16",
    [FEATURE_STORAGE16] = "storage16",
    [FEATURE_UNIFORM16] = "uniform16",
    [FEATURE_PUSH16] = "push16",
    [FEATURE_IO16] = "io16",
    [FEATURE_SUBGROUP_BASIC] = "subgroup_basic",
    [FEATURE_SUBGROUP_ARITHMETIC] = "subgroup_arithmetic",
    [FEATURE_SUBGROUP_SHUFFLE] = "subgroup_shuffle",
    [FEATURE_SUBGROUP_SIZE_CONTROL] = "subgroup_size_control",
    [FEATURE_FLOAT_CONTROLS] = "float_controls",
    [FEATURE_COOPERATIVE_MATRIX] = "cooperative_matrix",
};

const char *feature_name(enum feature feature) {
    return names[feature];
}

static bool find(const char *name, size_t size, enum feature *feature) {
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) {
            *feature = (enum feature)i;
            return true;
        }
    }
    return false;
}

bool feature_find(const char *name, enum feature *feature) {
    return find(name, strlen(name), feature);
}

bool features_parse(const char *list, struct features *features, char reason[FEATURE_REASON_SIZE]) {
    *features = (struct features){.has = {false}};
    const char *at = list;
    while (at != NULL && *list != '\0') {
        enum feature feature = FEATURE_COUNT;
        size_t size = strcspn(at, ",");
        if (!find(at, size, &feature)) {
            (void)snprintf(reason, FEATURE_REASON_SIZE, "\"%.*s\" is no feature",
                           (int)(size > 40 ? 40 : size), at);
            return false;
        }
        features->has[feature] = true;
        at = at[size] == ',' ? at + size + 1 : NULL;
    }
    return true;
}

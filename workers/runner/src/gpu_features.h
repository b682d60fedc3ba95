/* The features that a probe asks about, by the names of docs/wire-formats.md. Each capability is a
 * fact of its own: a driver may do 16-bit arithmetic and not 16-bit storage (gpuweb/gpuweb#5006).
 */
#ifndef TILEFARM_GPU_FEATURES_H
#define TILEFARM_GPU_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

enum feature {
    FEATURE_PACK_HALF,
    FEATURE_TIMER_QUERY,
    FEATURE_FLOAT16, /* 16-bit arithmetic */
    FEATURE_STORAGE16,
    FEATURE_UNIFORM16,
    FEATURE_PUSH16,
    FEATURE_IO16,
    FEATURE_SUBGROUP_BASIC,
    FEATURE_SUBGROUP_ARITHMETIC,
    FEATURE_SUBGROUP_SHUFFLE,
    FEATURE_SUBGROUP_SIZE_CONTROL,
    FEATURE_FLOAT_CONTROLS,
    FEATURE_COOPERATIVE_MATRIX,
    FEATURE_COUNT
};

struct features {
    bool has[FEATURE_COUNT];
};

#define FEATURE_REASON_SIZE 96

const char *feature_name(enum feature feature);
bool feature_find(const char *name, enum feature *feature);

/* Reads "NAME,NAME"; NULL or "" is none. False with a reason at a name that is none. */
bool features_parse(const char *list, struct features *features, char reason[FEATURE_REASON_SIZE]);

#endif

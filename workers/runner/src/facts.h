/* What a driver declares about a GPU beyond limits and features; the profile record shows it. */
#ifndef TILEFARM_FACTS_H
#define TILEFARM_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOAT_CONTROLS_MAX 24
#define MATRICES_MAX 64

struct float_control {
    const char *name;
    bool on;
};

struct facts {
    double timer_period_ns;              /* length of one tick of the GPU's clock; 0: unknown */
    uint32_t subgroup;                   /* invocations that run together; 0: unknown */
    uint32_t subgroup_min, subgroup_max; /* sizes that a shader may ask for; 0: none */
    struct float_control float_controls[FLOAT_CONTROLS_MAX];
    size_t float_control_count;
    char matrices[MATRICES_MAX][40]; /* "MxNxK A B C R", multiplied by a whole subgroup */
    size_t matrix_count;
};

#endif

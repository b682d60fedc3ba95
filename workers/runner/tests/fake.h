/* What the two files of the fake backend share: its programs, and the state of its one process. */
#ifndef TILEFARM_TESTS_FAKE_H
#define TILEFARM_TESTS_FAKE_H

#include "backend.h"

struct fake_program {
    struct program base;
    char text[256];
    uint32_t constants[JOB_CONSTANTS_MAX];
    size_t constant_count, value_count, binding_count;
    uint32_t subgroup;
};

struct fake_buffer {
    struct gpu_buffer base;
    uint8_t *bytes;
};

/* Of this process: a fresh child starts anew. */
struct fake_state {
    unsigned runs, dispatches, rested, buffers, timed;
    bool lost;         /* every call fails from now on */
    bool lost_on_free; /* and this is when it begins */
};
extern struct fake_state fake;

uint8_t *fake_bytes(struct gpu_buffer *b);
/* A word of the program that starts so, and what follows there; NULL if it has none. */
const char *fake_option(const char *text, const char *start);
bool fake_says(const char *text, const char *start);
/* crash=WHERE and hang=WHERE. */
void fake_misfortune(const char *text, const char *where);
/* Sleeps for as many ms as stand after that word. */
void fake_nap(const char *text, const char *word);
/* True, with the failure, once the device is lost. */
bool fake_is_lost(struct failure *failure);

/* fake_kernel.c */
bool fake_dispatch(const struct dispatch *pass, struct failure *failure);
/* What the GPU timer says of a sequence that took wall_ns; -1: nothing. */
int64_t fake_gpu_ns(const char *text, int64_t wall_ns);

#endif

/* What a child keeps open across the cases of its batch: the device, blobs, compiled shaders,
 * sensors. */
#ifndef TILEFARM_SESSION_H
#define TILEFARM_SESSION_H

#include "backend.h"
#include "blobs.h"
#include "job.h"
#include "sensors.h"
#include "stage.h"

struct compiled {
    const struct job_pass *pass; /* shader, constants, subgroup size, bindings and number of values
                                  * it was made for */
    struct program *program;
    int64_t compile_ns;
};

struct session {
    const struct job *job;
    const char *impose; /* TILEFARM_IMPOSE or NULL */
    struct stage_board *board;
    int fd; /* records go here */
    struct device *device;
    struct blobs blobs;
    struct sensors sensors;
    struct compiled *programs;
    size_t program_count;
    int64_t spent_ns[STAGE_COUNT]; /* of the open case; opening the device counts for its first */
    int64_t stage_since_ns;        /* 0: between two cases */
};

/* The case enters that stage; the time of the one before is noted. */
void session_stage(struct session *s, enum stage stage);
/* The stages of a case are told, and those of the next one begin. */
void session_stages_done(struct session *s);
/* Opens the device of that API if it is not the one that is open. *opened: a driver record is due.
 */
bool session_device(struct session *s, const char *api, bool *opened, struct failure *failure);
/* True if one program serves both passes. */
bool session_same_program(const struct job_pass *a, const struct job_pass *b);
/* Compiles the shader of a pass, or finds it among those of this session. The entry stays valid
 * until session_trim; the pointer only until the next call. */
const struct compiled *session_program(struct session *s, const struct job_pass *pass,
                                       const struct blob *source, struct log *log,
                                       struct failure *failure);
/* Between cases: forgets shaders and blobs beyond a bound. */
void session_trim(struct session *s);
void session_close(struct session *s);

#endif

/* Heads of the case records, which both the child and the parent write. */
#ifndef TILEFARM_RECORD_H
#define TILEFARM_RECORD_H

#include <stddef.h>

#include "job.h"
#include "json_out.h"

/* The whole record without its newline. */
void record_start(struct json *j, const struct job_case *c, size_t index);
/* Leaves the object open for the fields that belong to the status. */
void record_end(struct json *j, const struct job_case *c, size_t index, const char *status);

#endif

/* What the parent itself says about a case, and what it accepts from a child. */
#ifndef TILEFARM_VERDICTS_H
#define TILEFARM_VERDICTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chatter.h"
#include "job.h"
#include "stream.h"

struct verdict {
    const char *status;
    int stage;
    const char *reason;     /* or NULL */
    const char *number_key; /* "signal", "exit_code", "deadline_ms" or NULL */
    int64_t number;
    const struct chatter *log; /* or NULL */
};

/* Writes the end record, after a start record if the child had not written one. */
bool verdict_write(struct stream *out, const struct job_case *c, size_t index, bool started,
                   const struct verdict *verdict);

enum line_kind { LINE_BAD, LINE_DRIVER, LINE_START, LINE_END };

/* Start and end records count only with the id and index of the case that is due (NULL: none). */
enum line_kind line_kind(const char *line, size_t size, const struct job_case *due, size_t index);

#endif

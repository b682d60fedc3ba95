/* The profile record (docs/wire-formats.md). */
#ifndef TILEFARM_PROFILE_JSON_H
#define TILEFARM_PROFILE_JSON_H

#include "json_out.h"
#include "probe_child.h"

/* The first half, which needs the device open. */
void profile_json_begin(struct device *device, struct json *j);
/* The second half, once the proofs are done; of the device only its facts are used. */
void profile_json_end(const struct device *facts, const struct probe_board *board, struct json *j);

#endif

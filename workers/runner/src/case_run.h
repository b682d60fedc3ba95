/* One case while it runs in the child: its buffers on the device, its programs, and what came out.
 * Every function gives false after noting status, stage and reason in the run. */
#ifndef TILEFARM_CASE_RUN_H
#define TILEFARM_CASE_RUN_H

#include "compare.h"
#include "json_out.h"
#include "session.h"
#include "sha256.h"
#include "timing.h"

#define GUARD_BYTES 1024u /* at either end of a buffer, more if the device aligns coarser */
#define GUARD_WORD UINT32_C(0xa5a5a5a5)
#define HASHES_MAX 64 /* distinct results of one output that are told by name */

enum case_status { CASE_OK, CASE_COMPILE_FAILED, CASE_UNSUPPORTED, CASE_CRASHED, CASE_ERROR };

struct hash_count {
    char hash[SHA256_HEX_SIZE]; /* "others": of all results beyond HASHES_MAX */
    unsigned count;
    unsigned idle; /* of them, after a rest */
};

/* What is known of an output (a buffer with check or keep). */
struct output {
    uint8_t *first; /* bytes of the first verified sequence */
    struct hash_count hashes[HASHES_MAX + 1];
    size_t hash_count;
    uint8_t *differs; /* a bit an element that differs from `first` in any execution */
    struct metrics metrics;
    bool kept;
    char keep_error[128];
};

struct case_buffer {
    const struct job_buffer *spec;
    size_t bytes;       /* on the device, without guards */
    size_t value_bytes; /* count × element size: what is hashed and kept */
    size_t front;       /* size of the guard before the data */
    struct gpu_buffer *gpu;
    struct blob blob, reference;
    struct output *output; /* NULL: neither checked nor kept */
    bool damaged;          /* a guard was written to */
};

struct case_run {
    struct session *session;
    const struct job_case *spec;
    struct case_buffer *buffers; /* as in spec */
    struct dispatch *dispatches; /* one a pass */
    struct binding *bindings;    /* of all passes, in order */
    int64_t *compile_ns;         /* one a distinct shader */
    size_t compile_count, reused;
    struct timing timing;
    int64_t *gpu_hz, *temp_mc; /* one before each timed sequence and one after the last */
    size_t gpu_hz_count, temp_count;
    int throttled;   /* 1, 0, or -1: unknown */
    bool dispatched; /* something of this case was handed to the GPU */
    bool rested;     /* the sequence that runs came after a rest */
    enum case_status status;
    struct failure failure; /* unless ok */
    struct log log;
};

/* Notes the failure and gives false: so `return case_fail(run)` after a call that filled
 * run->failure. */
bool case_fail(struct case_run *run);
/* The same for a lack of host memory. */
bool case_no_memory(struct case_run *run);

/* case_programs.c: blobs of shaders, compile, link, workgroup limits */
bool case_compile(struct case_run *run);

/* case_buffers.c */
bool case_allocate(struct case_run *run);
bool case_prefill(struct case_run *run);      /* out, scratch and inout as at the start */
bool case_refill_inout(struct case_run *run); /* only those */
bool case_check_guards(struct case_run *run); /* of the buffers that are no outputs */
/* Reads every output, checks its guards and hands its bytes to output_note. */
bool case_read_outputs(struct case_run *run);
void case_free_buffers(struct case_run *run);

/* output.c */
/* One execution's bytes; idle: it came after a rest. False: no memory. */
bool output_note(struct case_buffer *b, const uint8_t *data, bool idle);
/* Elements that differ between any two executions. */
struct difference {
    uint64_t count, first, last;
    uint64_t low[JOB_DIMENSIONS_MAX], high[JOB_DIMENSIONS_MAX]; /* coordinates in the shape */
};
struct difference output_difference(const struct case_buffer *b);
void output_keep(struct case_buffer *b, const struct job *job, const struct job_case *c,
                 bool failed);
void output_free(struct output *o);

/* case_timing.c */
bool case_run_once(struct case_run *run, unsigned times, bool timer, struct elapsed *elapsed);
bool case_time(struct case_run *run);

enum case_fate {
    CASE_CLOSED,
    CASE_LOST, /* so was the context: the device is of no more use */
    CASE_AGAIN /* the context was lost by an earlier case: no record, another process must run it */
};
/* case_run.c: all of it, then the end record. `fresh`: no case ran in this process before. */
enum case_fate case_execute(struct session *session, const struct job_case *c, size_t index,
                            bool fresh, struct json *record);

/* case_record.c */
void case_record(const struct case_run *run, size_t index, struct json *j);

/* case_outputs.c: the fields "outputs" and "kept" of the record */
void case_put_outputs(const struct case_run *run, struct json *j);

#endif

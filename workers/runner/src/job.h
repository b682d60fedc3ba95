/* The job file (docs/wire-formats.md, "Job folder"): its model and its parser. */
#ifndef TILEFARM_JOB_H
#define TILEFARM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_ID_SIZE 81   /* 80 characters and a NUL */
#define JOB_HASH_SIZE 65 /* 64 hex digits and a NUL */
#define JOB_LINE_MAX 4096
#define JOB_FILE_MAX (64u << 20)
#define JOB_BINDINGS_MAX 64
#define JOB_CONSTANTS_MAX 64
#define JOB_VALUES_MAX 32 /* 128 bytes of push constants: what every Vulkan device offers */
#define JOB_DIMENSIONS_MAX 8

enum buffer_role { ROLE_IN, ROLE_OUT, ROLE_INOUT, ROLE_SCRATCH };
enum dtype { DTYPE_F32, DTYPE_F16, DTYPE_U32 };
enum keep { KEEP_NEVER, KEEP_ALWAYS, KEEP_FAILED };

struct job_buffer {
    char name[JOB_ID_SIZE];
    enum buffer_role role;
    enum dtype dtype;
    uint64_t count;           /* elements */
    char blob[JOB_HASH_SIZE]; /* "" for out and scratch */
    bool checked;
    char reference[JOB_HASH_SIZE];
    double atol, rtol, nmse;
    enum keep keep;
    size_t dimension_count; /* 0: no shape was given */
    uint64_t dimensions[JOB_DIMENSIONS_MAX];
};

struct job_pass {
    char shader[JOB_HASH_SIZE];
    uint32_t grid[3];
    uint64_t shared_bytes;
    size_t binding_count;
    uint32_t *bindings; /* indices of buffers; the i-th is bound at binding i */
    size_t constant_count;
    uint32_t *constants; /* values of specialisation constants 0, 1, ... */
    size_t value_count;
    uint32_t *values;  /* numbers of this dispatch, which need no program of their own */
    unsigned subgroup; /* size that the pass must run with; 0: any */
};

struct job_case {
    char id[JOB_ID_SIZE];
    char api[JOB_ID_SIZE];
    unsigned deadline_ms, warmup, repeats, replays;
    unsigned warmup_ms;             /* the warm-up goes on until so long after its start */
    unsigned idle_replays, idle_ms; /* further replays, each after so long a rest */
    struct job_buffer *buffers;
    size_t buffer_count;
    struct job_pass *passes;
    size_t pass_count;
};

struct job {
    char run[JOB_ID_SIZE];
    char *dir;   /* JOB_DIR */
    char *blobs; /* the blob folder, already joined with dir */
    unsigned heartbeat_ms;
    char adapter_api[JOB_ID_SIZE]; /* of which API the adapter is one; "": none was named */
    char adapter[JOB_ID_SIZE];
    char *enable; /* features to switch on, separated by commas; NULL: none */
    struct job_case *cases;
    size_t case_count;
};

struct job_error {
    char text[512]; /* "job.txt:LINE: what" */
};

/* Both give NULL on error, with the reason in *error. The text is changed while it is read. */
struct job *job_parse(char *text, size_t size, const char *dir, struct job_error *error);
struct job *job_load(const char *dir, struct job_error *error);
void job_free(struct job *job);

uint64_t job_element_bytes(enum dtype dtype);
/* Size on the device: count × element size, rounded up to 4. */
uint64_t job_buffer_bytes(const struct job_buffer *buffer);
const char *job_dtype_name(enum dtype dtype);

#endif

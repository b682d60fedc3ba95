/* Job folders for tests: blobs by content, statements, and what a run of them printed. */
#ifndef TILEFARM_TESTS_JOB_FOLDER_H
#define TILEFARM_TESTS_JOB_FOLDER_H

#include "job.h"
#include "supervise.h"

struct job_folder {
    char path[64];
    char text[65536]; /* job.txt so far */
    unsigned cases;
};

void folder_open(struct job_folder *f);
void folder_close(struct job_folder *f); /* removes it */
/* Writes the blob; gives its name in static memory that the 8th next call reuses. */
const char *folder_blob(struct job_folder *f, const void *data, size_t size);
void folder_add(struct job_folder *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A case that doubles 8 floats from x to y, checked exactly, with this program of the fake backend.
 */
void folder_case(struct job_folder *f, const char *id, const char *program, const char *extra);
/* The same for words of our own: `count` inputs x, as many outputs y of `dtype`, no check yet. */
void folder_buffers(struct job_folder *f, const char *id, const char *api, const char *dtype,
                    size_t count);
struct job *folder_load(struct job_folder *f);

/* Supervises the job and gives all that was printed, in static memory. */
const char *supervised(const struct job *job, const struct work *work, bool *finished);
/* Runs the job's cases on the fake backend, in supervised children. */
const char *executed(struct job_folder *f, const char *impose);
/* The end record of a case in that text, in static memory. */
const char *end_of(const char *text, const char *id);

#endif

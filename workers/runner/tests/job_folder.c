/* Job folders for tests; see job_folder.h. */
#include "job_folder.h"

#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "execute.h"
#include "sha256.h"

void folder_open(struct job_folder *f) {
    char blobs[80];
    memset(f, 0, sizeof *f);
    (void)snprintf(f->path, sizeof f->path, "/tmp/runner-job-XXXXXX");
    CHECK(mkdtemp(f->path) != NULL);
    (void)snprintf(blobs, sizeof blobs, "%s/blobs", f->path);
    CHECK(mkdir(blobs, 0755) == 0);
    folder_add(f, "tilefarm-job 1\nrun test\nblobs blobs\nheartbeat_ms 50\n");
}

static int drop(const char *path, const struct stat *info, int type, struct FTW *where) {
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

void folder_close(struct job_folder *f) {
    CHECK(nftw(f->path, drop, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

const char *folder_blob(struct job_folder *f, const void *data, size_t size) {
    static char names[8][SHA256_HEX_SIZE];
    static unsigned turn;
    char path[160];
    char *name = names[turn++ % 8];
    sha256_of(data, size, name);
    (void)snprintf(path, sizeof path, "%s/blobs/%s", f->path, name);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(data, 1, size, file) == size && fclose(file) == 0);
    return name;
}

void folder_add(struct job_folder *f, const char *format, ...) {
    size_t used = strlen(f->text);
    va_list args;
    va_start(args, format);
    int added = vsnprintf(f->text + used, sizeof f->text - used, format, args);
    va_end(args);
    CHECK(added >= 0 && (size_t)added < sizeof f->text - used);
}

void folder_case(struct job_folder *f, const char *id, const char *program, const char *extra) {
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const double y[8] = {2, 4, 6, 8, 10, 12, 14, 16};
    folder_add(f, "case %s\napi gles\ndeadline_ms 1000\nwarmup 1\nrepeats 2\n", id);
    folder_add(f, "buffer x in f32 8 %s\nbuffer y out f32 8\n", folder_blob(f, x, sizeof x));
    folder_add(f, "pass %s 1 1 1 64 x,y\n", folder_blob(f, program, strlen(program)));
    folder_add(f, "check y %s 0 0 0\nkeep y failed\n%sendcase\n", folder_blob(f, y, sizeof y),
               extra);
    f->cases++;
}

void folder_buffers(struct job_folder *f, const char *id, const char *api, const char *dtype,
                    size_t count) {
    float *x = calloc(count, sizeof *x);
    CHECK(x != NULL);
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)(i + 1);
    }
    const char *blob = folder_blob(f, x, count * sizeof *x);
    folder_add(f, "case %s\napi %s\ndeadline_ms 20000\n", id, api);
    folder_add(f, "buffer x in f32 %zu %s\nbuffer y out %s %zu\n", count, blob, dtype, count);
    free(x);
    f->cases++;
}

struct job *folder_load(struct job_folder *f) {
    struct job_error error = {""};
    char path[80];
    folder_add(f, "end %u\n", f->cases);
    (void)snprintf(path, sizeof path, "%s/job.txt", f->path);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(f->text, file) >= 0 && fclose(file) == 0);
    struct job *job = job_load(f->path, &error);
    CHECK_TEXT(error.text, "");
    return job;
}

const char *supervised(const struct job *job, const struct work *work, bool *finished) {
    static char text[1 << 20];
    struct stream out;
    FILE *file = tmpfile();
    CHECK(file != NULL);
    stream_open(&out, fileno(file));
    *finished = stream_hello(&out, job->run) && supervise(job, &out, work) && stream_final(&out);
    CHECK(out.ends == job->case_count || !*finished);
    rewind(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    CHECK(fclose(file) == 0);
    return text;
}

const char *executed(struct job_folder *f, const char *impose) {
    static struct stage_board *board;
    bool finished = false;
    board = board == NULL ? stage_board_new() : board;
    CHECK(board != NULL);
    struct job *job = folder_load(f);
    struct execution e = {
        .job = job, .impose = impose, .sysfs_root = "/nonexistent", .board = board};
    const struct work work = {.run = execute_batch, .arg = &e, .board = board};
    const char *text = supervised(job, &work, &finished);
    CHECK(finished);
    job_free(job);
    return text;
}

const char *end_of(const char *text, const char *id) {
    static char line[65536];
    char head[160];
    (void)snprintf(head, sizeof head, "{\"type\":\"end\",\"case\":\"%s\",", id);
    const char *start = strstr(text, head);
    CHECK(start != NULL && strstr(start + 1, head) == NULL); /* exactly one */
    size_t size = strcspn(start, "\n");
    CHECK(size < sizeof line);
    memcpy(line, start, size);
    line[size] = '\0';
    return line;
}

/* What a case says of executions that should all be the same: hashes, boxes, power states, and
 * outputs that nobody checks. On the fake backend. */
#include <signal.h>

#include "check.h"
#include "job_folder.h"

#define SIDE 8

/* A case whose output is SIDE × SIDE floats, with 2x as the reference. */
static void square(struct job_folder *f, const char *id, const char *program,
                   const char *statements) {
    double y[SIDE * SIDE];
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        y[i] = 2.0 * (double)(i + 1);
    }
    folder_buffers(f, id, "gles", "f32", SIDE * SIDE);
    folder_add(f, "pass %s 1 1 1 0 x,y\n", folder_blob(f, program, strlen(program)));
    folder_add(f, "check y %s 0 0 0\n%sendcase\n", folder_blob(f, y, sizeof y), statements);
}

static const char *one(const char *program, const char *statements) {
    struct job_folder f;
    folder_open(&f);
    square(&f, "c", program, statements);
    const char *record = end_of(executed(&f, NULL), "c");
    folder_close(&f);
    return record;
}

/* How often a text is in another. */
static unsigned times(const char *text, const char *part) {
    unsigned count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

/* Field case G1-01: 23 of 100 executions leave a wrong block, each otherwise. */
static void bands_that_come_and_go(void) {
    const char *record =
        one("double corrupt_block=2,4,3,7,8,100", "replays 100\nshape y 8,8\nkeep y failed\n");
    CHECK_HAS(record, "\":77,\"");
    CHECK(times(record, "\":1,\"") + times(record, "\":1}") >= 23);
    CHECK_HAS(record, "\"differs\":{\"count\":8,\"first\":20,\"last\":31,\"box\":[[2,3],[4,7]]}");
    CHECK_HAS(record, "\"failing\":0,\"kept\":true"); /* the first one was right */
    CHECK_LACKS(record, "idle_hashes");
    record = one("double corrupt_block=0,0,7,0,8,100", "replays 100\nshape y 2,4,4,2\n");
    CHECK_HAS(record, "\"box\":[[0,1],[0,3],[0,0],[0,0]]}"); /* column 0 of 8 */
    CHECK_LACKS(one("double corrupt_block=2,4,3,7,8,100", "replays 100\n"), "box");
    CHECK_LACKS(one("double", "replays 100\nshape y 64\n"), "differs");
}

/* More results than are told by name: each execution is still counted once. */
static void more_results_than_names(void) {
    const char *record = one("double corrupt_block=0,0,0,0,8,23", "replays 100\n");
    CHECK(times(record, "\":1,\"") + times(record, "\":1}") >= 64);
    CHECK_HAS(record, "\"others\":36},"); /* 100 results, 64 of them by name */
}

/* Field case G1-02: never wrong while busy, sometimes wrong after a rest. */
static void wrong_after_a_rest(void) {
    const char *record = one("double idle_corrupt=10,3/50", "replays 50\nidle_replays 50 15\n");
    CHECK_HAS(record, "\":97,\"");
    CHECK_HAS(record, "\"idle_hashes\":{");
    CHECK_HAS(strstr(record, "idle_hashes"), "\":47,\"");
    CHECK_HAS(record, "\"differs\":{\"count\":1,\"first\":5,\"last\":5}");
    record = one("double", "replays 2\nidle_replays 3 1\n");
    CHECK_HAS(record, "\":5},\"idle_hashes\":{");
    CHECK_HAS(strstr(record, "idle_hashes"), "\":3},\"guard\"");
}

static const char *kept(const char *program, const char *dtype, const char *statements) {
    struct job_folder f;
    folder_open(&f);
    folder_buffers(&f, "c", "gles", dtype, 8);
    folder_add(&f, "pass %s 1 1 1 0 x,y\n%skeep y always\nendcase\n",
               folder_blob(&f, program, strlen(program)), statements);
    const char *record = end_of(executed(&f, NULL), "c");
    folder_close(&f);
    return record;
}

static void kept_without_a_check(void) {
    const char *record = kept("double", "f32", "replays 3\n");
    CHECK_HAS(record, "\"outputs\":[],\"kept\":{\"y\":{\"dtype\":\"f32\",\"count\":8,\"hash\":\"");
    CHECK_HAS(record, "\":3},\"guard\":\"ok\",\"unwritten\":0,\"kept\":true}}}");
    record = kept("double corrupt=2", "f32", "replays 3\n");
    CHECK_HAS(record, "\":2,\"");
    CHECK_HAS(record, "\"differs\":{\"count\":1,\"first\":5,\"last\":5}");
    CHECK_HAS(kept("double guard=after", "f32", ""), "\"guard\":\"damaged\"");
}

/* Field case G1-15: what a dispatch does not write is noticed whatever the type, with a reference
 * of zeros, and without a reference. */
static void nothing_written(void) {
    static const char *const dtypes[] = {"f32", "f16", "u32"};
    static const char *const untouched = "\"unwritten\":8,\"unwritten_first\":0,";
    const double zeros[8] = {0, 0, 0, 0, 0, 0, 0, 1e-3}; /* mostly */
    for (size_t i = 0; i < 3; i++) {
        struct job_folder f;
        folder_open(&f);
        folder_buffers(&f, "c", "gles", dtypes[i], 8);
        folder_add(&f, "pass %s 1 1 1 0 x,y\n", folder_blob(&f, "none", 4));
        folder_add(&f, "check y %s 1e300 1 1e300\nkeep y failed\nendcase\n",
                   folder_blob(&f, zeros, sizeof zeros));
        const char *record = end_of(executed(&f, NULL), "c");
        CHECK_HAS(record, untouched);
        CHECK_HAS(record, "\"kept\":true}],"); /* so it failed, with any tolerance */
        folder_close(&f);
        CHECK_HAS(kept("none", dtypes[i], ""), untouched);
    }
    CHECK_HAS(kept("half", "f32", ""), "\"unwritten\":4,\"unwritten_first\":4,");
    CHECK_HAS(kept("zeros", "u32", ""), "\"unwritten\":0,");
}

int main(void) {
    (void)signal(SIGPIPE, SIG_IGN);
    bands_that_come_and_go();
    more_results_than_names();
    wrong_after_a_rest();
    kept_without_a_check();
    nothing_written();
    return 0;
}

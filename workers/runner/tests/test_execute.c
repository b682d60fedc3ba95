/* Whole jobs on the fake backend: through supervised children, and once in this process, so that
 * the sanitizers see what a child would leak. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "clock.h"
#include "execute.h"
#include "fake.h"
#include "job_folder.h"
#include "probe.h"
#include "probe_child.h"

static struct stage_board *board;

/* Runs one case with that program; gives its end record. */
static const char *one(const char *program, const char *extra, const char *impose) {
    struct job_folder f;
    folder_open(&f);
    folder_case(&f, "c", program, extra);
    const char *record = end_of(executed(&f, impose), "c");
    folder_close(&f);
    return record;
}

static void a_right_kernel(void) {
    const char *record = one("double gpu=good slow=60", "replays 3\n", NULL);
    CHECK_HAS(record, "\"status\":\"ok\"");
    CHECK_HAS(record, "\"failing\":0,\"kept\":false}],\"kept\":{}}");
    CHECK_HAS(record,
              "\":4},\"guard\":\"ok\",\"unwritten\":0,"); /* 3 replays and the timed block */
    CHECK_HAS(record, "\"gpu_timer\":\"trusted\"");
    CHECK_HAS(record, "\"sensors\":{\"gpu_hz\":[],\"temp_mc\":[],\"throttled\":null}");
    CHECK_LACKS(record, "differs");
    CHECK_HAS(record, "\"spent_ns\":{\"context\":"); /* the first case of its process */
    CHECK_HAS(record, ",\"verify\":");
    CHECK_LACKS(record, "\"rest\":");
    CHECK_HAS(one("double gpu=stuck", "", NULL), "\"gpu_timer\":\"disagrees\"");
    CHECK_HAS(one("double gpu=stuck slow=3", "", NULL),
              "\"slope_n\":0,\"gpu_timer\":\"disagrees\"");
    CHECK_HAS(one("double", "", NULL), "\"gpu_timer\":\"absent\"");
}

/* Field case G1-15: a dispatch that does nothing must not read as "max error 0". */
static void a_kernel_that_writes_nothing(void) {
    const char *record = one("none", "", NULL);
    CHECK_HAS(record, "\"unwritten\":8,\"unwritten_first\":0,\"nan\":8,");
    CHECK_HAS(record, "\"nonfinite_mismatch\":8,\"max_abs\":\"nan\"");
    CHECK_HAS(record, "\"failing\":8,\"first_bad\":{\"index\":0,\"got\":\"nan\",\"ref\":2}");
    CHECK_HAS(one("half", "", NULL), "\"unwritten\":4,\"unwritten_first\":4,");
}

static void a_kernel_that_is_wrong_sometimes(void) {
    /* Dispatches: 1 verified, 2 warm-up, 3–4 timed, then slopes, then replays: 1 in 2 is wrong. */
    const char *record = one("double corrupt=2", "replays 6\n", NULL);
    CHECK_HAS(record, "\"differs\":{\"count\":1,\"first\":5,\"last\":5}");
    CHECK_HAS(record, "\"failing\":0,\"kept\":true}");
}

static void a_kernel_that_leaves_its_buffer(void) {
    CHECK_HAS(one("double guard=before", "", NULL), "\"guard\":\"damaged\"");
    CHECK_HAS(one("double guard=after", "", NULL), "\"guard\":\"damaged\"");
}

static void a_nan(void) {
    const char *record = one("double nan=3", "", NULL);
    CHECK_HAS(record, "\"worst\":{\"index\":3,\"got\":\"nan\",\"ref\":8},\"kept\":true");
}

static void refusals(void) {
    const char *record = one("bad=compile", "", NULL);
    CHECK_HAS(record,
              "\"status\":\"compile_failed\",\"stage\":\"compile\",\"log\":\"0:1: \\u001b[31m<"
              "script>\\u00e2\\u0080\\u00ae\\u0022\\u005c\\u000a\\u0000end");
    CHECK_HAS(one("bad=link", "", NULL), "\"status\":\"compile_failed\",\"stage\":\"link\"");
    CHECK_HAS(one("bad=long", "", NULL), "\"log_truncated\":true}");
    CHECK_HAS(one("double group=32,2,32", "", NULL),
              "\"status\":\"unsupported\",\"reason\":\"invocations 2048 > 1024\"}");
    CHECK_HAS(one("double group=16,16,1", "", "invocations=128"), "\"invocations 256 > 128\"");
    CHECK_HAS(one("double", "", "shared_bytes=32"), "\"reason\":\"shared_bytes 64 > 32\"}");
    CHECK_HAS(
        one("double lost=now", "", NULL),
        "\"status\":\"crashed\",\"stage\":\"dispatch\",\"reason\":\"fake: the device was lost\"");
}

static void crashes_and_hangs_cost_one_case(void) {
    struct job_folder f;
    folder_open(&f);
    folder_case(&f, "first", "double", "");
    folder_case(&f, "crash", "double crash=dispatch", "");
    folder_case(&f, "compiler", "crash=compile", "");
    folder_case(&f, "hang", "double hang=dispatch", "");
    folder_case(&f, "lost", "double lost=now", "");
    folder_case(&f, "last", "double", "");
    const char *text = executed(&f, NULL);
    CHECK_HAS(end_of(text, "first"), "\"status\":\"ok\"");
    CHECK_HAS(end_of(text, "crash"), "\"crashed\",\"stage\":\"dispatch\",\"signal\":6,\"log\":"
                                     "\"fake driver: assertion failed in dispatch\\u000a");
    CHECK_HAS(end_of(text, "compiler"), "\"crashed\",\"stage\":\"compile\",\"signal\":6,\"log\":"
                                        "\"fake driver: assertion failed in compile\\u000a");
    CHECK_HAS(end_of(text, "hang"), "\"hung\",\"stage\":\"dispatch\"");
    CHECK_HAS(end_of(text, "last"), "\"status\":\"ok\"");
    CHECK_HAS(text, "\"renderer\":\"fake\\u001b<script>\"");
    folder_close(&f);
}

static void inout_and_scratch(void) {
    struct job_folder f;
    const float y[] = {1, 2, 3};
    const double wanted[] = {3, 4, 5};
    folder_open(&f);
    folder_add(&f, "case c\napi gles\ndeadline_ms 1000\nwarmup 2\nrepeats 2\nreplays 2\n");
    folder_add(&f, "buffer y inout f32 3 %s\n", folder_blob(&f, y, sizeof y));
    folder_add(&f, "pass %s 1 1 1 0 y\n", folder_blob(&f, "inc", 3));
    folder_add(&f, "pass %s 1 1 1 0 y\n", folder_blob(&f, "inc", 3));
    folder_add(&f, "check y %s 0 0 0\nendcase\n", folder_blob(&f, wanted, sizeof wanted));
    folder_add(&f, "case odd\napi gles\ndeadline_ms 1000\n");
    folder_add(&f, "buffer h in f16 3 %s\nbuffer t scratch f16 3\n", folder_blob(&f, y, 6));
    folder_add(&f, "pass %s 1 1 1 0 h,t\nkeep t always\nendcase\n", folder_blob(&f, "none", 4));
    f.cases = 2;
    const char *text = executed(&f, NULL);
    const char *record = end_of(text, "c");
    CHECK_HAS(record,
              "\":2},\"guard\":\"ok\",\"unwritten\":0,"); /* the timed block is not counted */
    CHECK_HAS(record, "\"failing\":0");
    CHECK_HAS(record, "\"compile_ns\":["); /* one shader, two passes */
    CHECK_HAS(end_of(text, "odd"),
              "\"outputs\":[],\"kept\":{\"t\":{\"dtype\":\"f16\",\"count\":3,");
    char path[128];
    uint8_t kept[8] = {0};
    (void)snprintf(path, sizeof path, "%s/tensors/odd.t.bin", f.path);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fread(kept, 1, sizeof kept, file) == 6 && fclose(file) == 0);
    CHECK(memcmp(kept, "\x5a\x7e\x5a\x7e\x5a\x7e", 6) == 0); /* the prefill, untouched */
    folder_close(&f);
}

static void bad_blobs(void) {
    struct job_folder f;
    char path[160];
    const float x[2] = {0};
    folder_open(&f);
    folder_add(&f, "case short\napi gles\ndeadline_ms 1000\n");
    const char *name = folder_blob(&f, x, sizeof x);
    folder_add(&f, "buffer x in f32 3 %s\npass %s 1 1 1 0 x\nendcase\n", name,
               folder_blob(&f, "none", 4));
    f.cases = 1;
    folder_case(&f, "corrupt", "double", "");
    const char *program = folder_blob(&f, "double", 6);
    (void)snprintf(path, sizeof path, "%s/blobs/%s", f.path, program);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs("double nan=1", file) >= 0 && fclose(file) == 0);
    const char *text = executed(&f, NULL);
    CHECK_HAS(end_of(text, "short"), "a buffer of 12 bytes was expected, not 8");
    CHECK_HAS(end_of(text, "corrupt"), "\"status\":\"error\",\"stage\":\"buffers\"");
    CHECK_HAS(end_of(text, "corrupt"), "its content has another sha256");
    folder_close(&f);
}

/* The host removes what was not used for longest: it sees that by the time of the file. */
static void a_blob_that_is_read_is_used_now(void) {
    struct job_folder f;
    char path[160];
    const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct stat info;
    folder_open(&f);
    folder_case(&f, "c", "double", "");
    (void)snprintf(path, sizeof path, "%s/blobs/%s", f.path, folder_blob(&f, "double", 6));
    CHECK(utimensat(AT_FDCWD, path, long_ago, 0) == 0);
    CHECK_HAS(end_of(executed(&f, NULL), "c"), "\"status\":\"ok\"");
    CHECK(stat(path, &info) == 0 && info.st_mtim.tv_sec > 1000);
    folder_close(&f);
}

static void no_driver(void) {
    CHECK(setenv("FAKE_OPEN", "fail", 1) == 0);
    CHECK_HAS(one("double", "", NULL),
              "\"error\",\"stage\":\"context\",\"reason\":\"the fake driver is told to fail\"}");
    CHECK(setenv("FAKE_OPEN", "crash", 1) == 0);
    CHECK_HAS(one("double", "", NULL),
              "\"error\",\"stage\":\"context\",\"reason\":\"the process died");
    CHECK(unsetenv("FAKE_OPEN") == 0);
    CHECK(setenv("FAKE_BUFFERS", "2", 1) == 0);
    CHECK_HAS(one("double", "", NULL),
              "\"error\",\"stage\":\"buffers\",\"reason\":\"fake: out of memory\"}");
    CHECK(unsetenv("FAKE_BUFFERS") == 0);
}

/* What children leave to _exit would show here as leaks. */
static void in_this_process(void) {
    static const char *const programs[] = {"double", "none corrupt=2", "bad=link",
                                           "double lost=now"};
    struct job_folder f;
    folder_open(&f);
    static const char *const ids[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        folder_case(&f, ids[i], programs[i], "replays 3\n");
    }
    struct job *job = folder_load(&f);
    struct execution e = {.job = job, .sysfs_root = "", .board = board};
    int null = open("/dev/null", O_WRONLY);
    CHECK(null >= 0);
    CHECK(execute_batch(null, 0, &e) == CHILD_RENEW);
    struct probe_board probe_board = {.reasons = {{0}}};
    struct probe_target target = {.backend = backend_find("gles"),
                                  .adapter = "",
                                  .impose = "invocations=7",
                                  .board = &probe_board};
    CHECK(probe_child(null, 0, &target) == CHILD_DONE);
    CHECK(close(null) == 0);
    job_free(job);
    folder_close(&f);
}

/* One case in this process, from a fresh count. */
static void run_here(const char *program, const char *extra) {
    struct job_folder f;
    folder_open(&f);
    folder_case(&f, "c", program, extra);
    struct job *job = folder_load(&f);
    struct execution e = {.job = job, .sysfs_root = "/nonexistent", .board = board};
    int null = open("/dev/null", O_WRONLY);
    CHECK(null >= 0);
    fake.runs = fake.dispatches = 0;
    CHECK(execute_batch(null, 0, &e) == CHILD_DONE && close(null) == 0);
    job_free(job);
    folder_close(&f);
}

/* One verified sequence, one of warm-up and two timed ones; of this length none for a slope. */
static void warm_up_by_time(void) {
    run_here("double slow=3", "");
    CHECK(fake.dispatches == 4);
    int64_t start = clock_ms();
    run_here("double slow=3", "warmup_ms 40\n");
    CHECK(fake.dispatches > 4 && clock_ms() - start >= 40 + 3 * 3);
    run_here("double slow=9", "warmup_ms 8\n"); /* the counted one took that long */
    CHECK(fake.dispatches == 4);
    run_here("double", "warmup_ms 200\n");
    CHECK(fake.dispatches > 4 * fake.runs); /* a short kernel keeps the GPU busy */
}

static void probing(void) {
    char text[4096];
    struct probe probe = {.api = "gles", .impose = "invocations=7"};
    FILE *file = tmpfile();
    CHECK(file != NULL && probe_run(&probe, fileno(file)) == 0);
    rewind(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    CHECK_HAS(text, "{\"type\":\"profile\",\"format\":1,\"api\":\"gles\"");
    CHECK_HAS(text, "\"invocations\":7,");
    CHECK_HAS(text, "\"imposed\":true,\"imposed_limits\":[\"invocations\"]");
    CHECK_HAS(text, "\"extensions\":[\"FAKE_one\",\"FAKE_\\u0022two\"]");
    CHECK_HAS(text, "\"advertised\":{},\"features\":{},\"unproven\":{}");
    CHECK_HAS(text, "{\"type\":\"final\",\"cases\":0,\"bytes\":");
    CHECK(setenv("FAKE_OPEN", "crash", 1) == 0 && probe_run(&probe, fileno(file)) == 3);
    CHECK(unsetenv("FAKE_OPEN") == 0 && fclose(file) == 0);
}

int main(void) {
    (void)signal(SIGPIPE, SIG_IGN);
    board = stage_board_new();
    CHECK(board != NULL);
    a_right_kernel();
    a_kernel_that_writes_nothing();
    a_kernel_that_is_wrong_sometimes();
    a_kernel_that_leaves_its_buffer();
    a_nan();
    refusals();
    crashes_and_hangs_cost_one_case();
    inout_and_scratch();
    bad_blobs();
    a_blob_that_is_read_is_used_now();
    no_driver();
    probing();
    warm_up_by_time();
    in_this_process(); /* last, because it leaves the fake device lost */
    return 0;
}

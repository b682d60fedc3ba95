/* The job parser: a good file in full, and the exact message for each way to be wrong. */
#include "check.h"
#include "job.h"

#define H "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD "tilefarm-job 1\nrun r.1\nblobs ../blobs\nheartbeat_ms 500\n"
#define BUFS "buffer x in f32 16 " H "\nbuffer y out f16 7\nbuffer s scratch u32 4\n"
#define NUMBERS_32                                                                                 \
    "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32"
#define PASS "pass " H " 4 2 1 256 x,y,s\n"
#define CASE "case c\napi gles\ndeadline_ms 100\n"

static struct job *parse(const char *text, struct job_error *error) {
    size_t size = strlen(text);
    char *copy = malloc(size + 1);
    CHECK(copy != NULL);
    memcpy(copy, text, size + 1);
    struct job *job = job_parse(copy, size, "/jobs/1", error);
    free(copy);
    return job;
}

static void good_file(void) {
    struct job_error error = {""};
    struct job *job = parse(
        "\n# a comment\n" HEAD CASE "warmup 2\nrepeats 3\nreplays 4\n" BUFS PASS "check y " H
        " 1e-3 0 0.5\nkeep y failed\nkeep s always\nendcase\n" CASE BUFS PASS "endcase\nend 2\n",
        &error);
    CHECK_TEXT(error.text, "job.txt:29: end: case c is given twice");
    CHECK(job == NULL);
    job = parse("\n# a comment\n" HEAD CASE "warmup 2\nrepeats 3\nreplays 4\n" BUFS PASS
                "check y " H " 1e-3 0 0.5\nkeep y failed\nkeep s always\nendcase\nend 1\n# end\n",
                &error);
    CHECK(job != NULL && job->case_count == 1);
    CHECK_TEXT(job->run, "r.1");
    CHECK_TEXT(job->blobs, "/jobs/1/../blobs");
    CHECK(job->heartbeat_ms == 500);
    const struct job_case *c = &job->cases[0];
    CHECK(c->warmup_ms == 0 && c->warmup == 2 && c->repeats == 3 && c->replays == 4 &&
          c->deadline_ms == 100);
    CHECK(c->buffer_count == 3 && c->pass_count == 1);
    CHECK(c->buffers[0].role == ROLE_IN && c->buffers[2].role == ROLE_SCRATCH);
    CHECK(c->buffers[1].checked && c->buffers[1].atol == 1e-3 && c->buffers[1].nmse == 0.5);
    CHECK(c->buffers[1].keep == KEEP_FAILED && c->buffers[2].keep == KEEP_ALWAYS);
    CHECK(job_buffer_bytes(&c->buffers[1]) == 16); /* 7 halves are 14 bytes */
    CHECK(c->passes[0].grid[0] == 4 && c->passes[0].grid[1] == 2 && c->passes[0].grid[2] == 1);
    CHECK(c->passes[0].shared_bytes == 256 && c->passes[0].binding_count == 3);
    CHECK(c->passes[0].bindings[2] == 2);
    job_free(job);
}

static void every_statement_of_vulkan(void) {
    struct job_error error = {""};
    struct job *job = parse(HEAD "adapter vulkan 13-0a1b\nenable float16,storage16\n" CASE
                                 "warmup_ms 60000\nidle_replays 50 60000\n" BUFS PASS
                                 "constants 0,4294967295\nvalues 9\nsubgroup 32\n" PASS
                                 "values 4294967295,0,3\ncheck y " H
                                 " 0 0 0\nshape y 1,7\nkeep y failed\nendcase\nend 1\n",
                            &error);
    CHECK_TEXT(error.text, "");
    CHECK_TEXT(job->adapter_api, "vulkan");
    CHECK_TEXT(job->adapter, "13-0a1b");
    CHECK_TEXT(job->enable, "float16,storage16");
    const struct job_case *c = &job->cases[0];
    CHECK(c->idle_replays == 50 && c->idle_ms == 60000 && c->warmup_ms == 60000);
    CHECK(c->passes[0].constant_count == 2 && c->passes[0].subgroup == 32);
    CHECK(c->passes[0].constants[0] == 0 && c->passes[0].constants[1] == UINT32_MAX);
    CHECK(c->passes[1].constant_count == 0 && c->passes[1].subgroup == 0);
    CHECK(c->passes[0].value_count == 1 && c->passes[0].values[0] == 9);
    CHECK(c->passes[1].value_count == 3 && c->passes[1].values[0] == UINT32_MAX);
    CHECK(c->passes[1].values[1] == 0 && c->passes[1].values[2] == 3);
    CHECK(c->buffers[1].dimension_count == 2 && c->buffers[1].dimensions[1] == 7);
    job_free(job);
}

static const struct {
    const char *text, *error;
} wrong[] = {
    {"", "job.txt:1: the file is truncated: no \"end N\""},
    {"run r\n", "job.txt:1: the first statement must be \"tilefarm-job 1\""},
    {"tilefarm-job 2\n", "job.txt:1: format version \"2\" is unknown (this runner knows: 1)"},
    {"tilefarm-job 1\ncase c\n", "job.txt:2: case: run, blobs and heartbeat_ms must come before"},
    {"tilefarm-job 1\nend 0\n", "job.txt:2: end: run, blobs and heartbeat_ms must come before"},
    {"tilefarm-job 1\nrun a\nrun b\n", "job.txt:3: run: is given twice"},
    {"tilefarm-job 1\nrun a/b\n",
     "job.txt:2: run: \"a/b\" is not an id ([A-Za-z0-9._-], 1 to 80 characters)"},
    {"tilefarm-job 1\nrun\n", "job.txt:2: run: expected: run RUN_ID"},
    {"tilefarm-job 1\nrun  a\n",
     "job.txt:2: words must be separated by one space, with none at either end"},
    {"tilefarm-job 1\nrun a \n",
     "job.txt:2: words must be separated by one space, with none at either end"},
    {"tilefarm-job 1\nrun a\r\n", "job.txt:2: byte 0x0d is not printable ASCII"},
    {"tilefarm-job 1\nrun \xc3\xa9\n", "job.txt:2: byte 0xc3 is not printable ASCII"},
    {"tilefarm-job 1\nrun a", "job.txt:2: the file is truncated inside this line"},
    {"tilefarm-job 1\n1 2 3 4 5 6 7 8 9\n", "job.txt:2: too many words"},
    {"tilefarm-job 1\nfrobnicate 1\n", "job.txt:2: unknown statement \"frobnicate\""},
    {"tilefarm-job 1\nheartbeat_ms 0\n",
     "job.txt:2: heartbeat_ms: \"0\" is not a whole number from 1 to 3600000"},
    {HEAD "api gles\n", "job.txt:5: api: only between case and endcase"},
    {HEAD "endcase\n", "job.txt:5: endcase: only between case and endcase"},
    {HEAD "end 1\n", "job.txt:5: end: says 1 cases, but 0 are given"},
    {HEAD "end 0\nend 0\n", "job.txt:6: nothing may follow \"end\""},
    {HEAD CASE "case d\n", "job.txt:8: case: case c has no endcase"},
    {HEAD CASE "end 1\n", "job.txt:8: end: case c has no endcase"},
    {HEAD CASE "run r\n", "job.txt:8: run: case c has no endcase"},
    {HEAD CASE "endcase\n", "job.txt:8: endcase: case c has no \"buffer\""},
    {HEAD "case c\nendcase\n", "job.txt:6: endcase: case c has no \"api\""},
    {HEAD "case c\napi gles\nendcase\n", "job.txt:7: endcase: case c has no \"deadline_ms\""},
    {HEAD CASE BUFS "endcase\n", "job.txt:11: endcase: case c has no \"pass\""},
    {HEAD CASE "replays 0\n", "job.txt:8: replays: \"0\" is not a whole number from 1 to 100000"},
    {HEAD CASE "warmup_ms 60001\n",
     "job.txt:8: warmup_ms: \"60001\" is not a whole number from 0 to 60000"},
    {HEAD CASE "warmup_ms 1\nwarmup_ms 1\n", "job.txt:9: warmup_ms: is given twice"},
    {HEAD CASE "buffer x in f32 4\n", "job.txt:8: buffer: role in needs a BLOB"},
    {HEAD CASE "buffer x out f32 4 " H "\n", "job.txt:8: buffer: role out takes no BLOB"},
    {HEAD CASE "buffer x in f32 4 abc\n",
     "job.txt:8: buffer: \"abc\" is not a blob name (64 lower-case hex digits)"},
    {HEAD CASE "buffer x out f64 4\n",
     "job.txt:8: buffer: \"f64\" is unknown (known: f32, f16, u32)"},
    {HEAD CASE "buffer x any f32 4\n",
     "job.txt:8: buffer: \"any\" is unknown (known: in, out, inout, scratch)"},
    {HEAD CASE "buffer x out f32 0\n",
     "job.txt:8: buffer: COUNT: \"0\" is not a whole number from 1 to 68719476736"},
    {HEAD CASE BUFS "buffer x out f32 4\n", "job.txt:11: buffer: \"x\" is declared twice"},
    {HEAD CASE BUFS "pass " H " 1 1 1 0 x,z\n",
     "job.txt:11: pass: no buffer \"z\" was declared above"},
    {HEAD CASE BUFS "pass " H " 1 1 1 0 x,\n",
     "job.txt:11: pass: no buffer \"\" was declared above"},
    {HEAD CASE BUFS "pass " H " 1 0 1 0 x\n",
     "job.txt:11: pass: GY: \"0\" is not a whole number from 1 to 4294967295"},
    {HEAD CASE BUFS "check x " H " 0 0 0\n", "job.txt:11: check: \"x\" is neither out nor inout"},
    {HEAD CASE BUFS "check y " H " nan 0 0\n",
     "job.txt:11: check: ATOL \"nan\" is not a finite number >= 0"},
    {HEAD CASE BUFS "check y " H " 0 0 -1\n",
     "job.txt:11: check: NMSE \"-1\" is not a finite number >= 0"},
    {HEAD CASE BUFS "check y " H " 0 0 0\ncheck y " H " 0 0 0\n",
     "job.txt:12: check: \"y\" is checked twice"},
    {HEAD CASE BUFS "keep x always\n", "job.txt:11: keep: \"x\" is an input"},
    {HEAD CASE BUFS "keep y failed\n",
     "job.txt:11: keep: \"y\" has no check above that could fail"},
    {HEAD CASE BUFS "keep y sometimes\n",
     "job.txt:11: keep: \"sometimes\" is unknown (known: always, failed)"},
    {HEAD CASE BUFS "keep y always\nkeep y always\n", "job.txt:12: keep: \"y\" is kept twice"},
    {HEAD "adapter vulkan\n", "job.txt:5: adapter: expected: adapter API ADAPTER"},
    {HEAD "adapter vulkan a\nadapter vulkan b\n", "job.txt:6: adapter: is given twice"},
    {HEAD "adapter vulkan a/b\n",
     "job.txt:5: adapter: \"a/b\" is not an id ([A-Za-z0-9._-], 1 to 80 characters)"},
    {HEAD "enable float16,\n", "job.txt:5: enable: \"\" is not the name of a feature"},
    {HEAD "enable float16,,b\n", "job.txt:5: enable: \"\" is not the name of a feature"},
    {HEAD "enable a\nenable b\n", "job.txt:6: enable: is given twice"},
    {HEAD CASE BUFS PASS "endcase\nenable a\n", "job.txt:13: enable: only before the first case"},
    {HEAD CASE BUFS PASS "endcase\nadapter vulkan a\n",
     "job.txt:13: adapter: only before the first case"},
    {HEAD CASE "idle_replays 2\n", "job.txt:8: idle_replays: expected: idle_replays N IDLE_MS"},
    {HEAD CASE "idle_replays 2 0\n", "job.txt:8: idle_replays: 2 of them need an IDLE_MS above 0"},
    {HEAD CASE "idle_replays -1 5\n",
     "job.txt:8: idle_replays: N: \"-1\" is not a whole number from 0 to 100000"},
    {HEAD CASE "idle_replays 1 3600001\n",
     "job.txt:8: idle_replays: IDLE_MS: \"3600001\" is not a whole number from 0 to 3600000"},
    {HEAD CASE BUFS "constants 1\n", "job.txt:11: constants: no pass above"},
    {HEAD CASE BUFS "subgroup 1\n", "job.txt:11: subgroup: no pass above"},
    {HEAD CASE BUFS PASS "constants 1,x\n",
     "job.txt:12: constants: V1: \"x\" is not a whole number from 0 to 4294967295"},
    {HEAD CASE BUFS PASS "constants 4294967296\n",
     "job.txt:12: constants: V0: \"4294967296\" is not a whole number from 0 to 4294967295"},
    {HEAD CASE BUFS PASS "constants 1\nconstants 2\n",
     "job.txt:13: constants: are given twice for one pass"},
    {HEAD CASE BUFS "values 1\n", "job.txt:11: values: no pass above"},
    {HEAD CASE BUFS PASS "values\n", "job.txt:12: values: expected: values V0[,V1...]"},
    {HEAD CASE BUFS PASS "values 1,-1\n",
     "job.txt:12: values: V1: \"-1\" is not a whole number from 0 to 4294967295"},
    {HEAD CASE BUFS PASS "values 1\nvalues 2\n",
     "job.txt:13: values: are given twice for one pass"},
    {HEAD CASE BUFS PASS "values " NUMBERS_32 "\nvalues 2\n",
     "job.txt:13: values: are given twice for one pass"},
    {HEAD CASE BUFS PASS "values " NUMBERS_32 ",1\n", "job.txt:12: values: more than 32"},
    {HEAD CASE BUFS PASS "constants " NUMBERS_32 "," NUMBERS_32 ",1\n",
     "job.txt:12: constants: more than 64"},
    {HEAD CASE BUFS PASS "subgroup 24\n", "job.txt:12: subgroup: 24 is no power of two"},
    {HEAD CASE BUFS PASS "subgroup 0\n",
     "job.txt:12: subgroup: \"0\" is not a whole number from 1 to 1024"},
    {HEAD CASE BUFS PASS "subgroup 8\nsubgroup 8\n",
     "job.txt:13: subgroup: is given twice for one pass"},
    {HEAD CASE BUFS "shape y 7\n", "job.txt:11: shape: \"y\" has no check above"},
    {HEAD CASE BUFS "shape z 7\n", "job.txt:11: shape: no buffer \"z\" was declared above"},
    {HEAD CASE BUFS "check y " H " 0 0 0\nshape y 2,3\n",
     "job.txt:12: shape: its product is not the 7 elements of \"y\""},
    {HEAD CASE BUFS "check y " H " 0 0 0\nshape y 7,7\n",
     "job.txt:12: shape: its product is not the 7 elements of \"y\""},
    {HEAD CASE BUFS "check y " H " 0 0 0\nshape y 7,0\n",
     "job.txt:12: shape: D1: \"0\" is not a whole number from 1 to 7"},
    {HEAD CASE BUFS "check y " H " 0 0 0\nshape y 7,1,1,1,1,1,1,1,1\n",
     "job.txt:12: shape: more than 8 dimensions"},
    {HEAD CASE BUFS "check y " H " 0 0 0\nshape y 7\nshape y 7\n",
     "job.txt:13: shape: of \"y\" is given twice"},
    {HEAD CASE "buffer y out f32 68719476736\ncheck y " H
               " 0 0 0\nshape y 68719476736,68719476736\n",
     "job.txt:10: shape: its product is not the 68719476736 elements of \"y\""},
    {HEAD CASE BUFS PASS "endcase\n", "job.txt:13: the file is truncated: no \"end N\""},
};

static void each_error(void) {
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct job_error error = {""};
        CHECK(parse(wrong[i].text, &error) == NULL);
        CHECK_TEXT(error.text, wrong[i].error);
    }
}

static void long_lines_and_nuls(void) {
    struct job_error error;
    char text[JOB_LINE_MAX + 40];
    memset(text, 'a', sizeof text);
    memcpy(text, "tilefarm-job 1\n", 15);
    text[15 + JOB_LINE_MAX + 1] = '\n';
    CHECK(job_parse(text, 15 + JOB_LINE_MAX + 2, ".", &error) == NULL);
    CHECK_TEXT(error.text, "job.txt:2: line of 4097 bytes (at most 4096)");
    char nul[] = "tilefarm-job 1\nrun a\0b\n";
    CHECK(job_parse(nul, sizeof nul - 1, ".", &error) == NULL);
    CHECK_TEXT(error.text, "job.txt:2: byte 0x00 is not printable ASCII");
    CHECK(job_load("/nonexistent", &error) == NULL);
    CHECK_TEXT(error.text, "job.txt: /nonexistent/job.txt: No such file or directory");
}

int main(void) {
    good_file();
    every_statement_of_vulkan();
    each_error();
    long_lines_and_nuls();
    return 0;
}

/* What a job asks of the device: which GPU, which features, which constants; and what happens to
 * the other cases when that device is lost. On the fake backend. */
#include <signal.h>

#include "check.h"
#include "job_folder.h"

static void toy(struct job_folder *f, const char *id, const char *api, const char *program,
                const char *statements) {
    folder_buffers(f, id, api, "f32", 8);
    folder_add(f, "pass %s 1 1 1 0 x,y\n%skeep y always\nendcase\n",
               folder_blob(f, program, strlen(program)), statements);
}

static const char *driver_of(const char *header, const char *api) {
    static char text[4096];
    struct job_folder f;
    folder_open(&f);
    folder_add(&f, "%s", header);
    toy(&f, "c", api, "double", "");
    (void)snprintf(text, sizeof text, "%s", executed(&f, NULL));
    folder_close(&f);
    return text;
}

static void adapters(void) {
    CHECK_HAS(driver_of("", "vulkan"), "\"renderer\":\"fake GPU 0\",\"version\":\"enabled: \"");
    CHECK_HAS(driver_of("adapter vulkan fake-1\nenable float16,storage16\n", "vulkan"),
              "\"renderer\":\"fake GPU 1\",\"version\":\"enabled: float16,storage16\"");
    CHECK_HAS(driver_of("adapter vulkan fake-7\n", "vulkan"),
              "\"error\",\"stage\":\"context\",\"reason\":\"fake: no adapter fake-7\"}");
    /* A job may hold cases of both APIs: only one of them knows the adapter. */
    CHECK_HAS(driver_of("adapter vulkan fake-7\nenable float16\n", "gles"), "\"status\":\"ok\"");
}

static void expect(const struct job_folder *f, const char *id, const float wanted[8]) {
    char path[128];
    float y[8];
    (void)snprintf(path, sizeof path, "%s/tensors/%s.y.bin", f->path, id);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL && fread(y, sizeof y[0], 8, file) == 8 && fclose(file) == 0);
    CHECK(memcmp(y, wanted, sizeof y) == 0);
}

/* One shader with other constants or another subgroup size is another program, and compiled once.
 */
static void constants_and_subgroups(void) {
    struct job_folder f;
    folder_open(&f);
    toy(&f, "plain", "vulkan", "echo", "");
    toy(&f, "three", "vulkan", "echo", "constants 7,0,16777216\n");
    toy(&f, "other", "vulkan", "echo", "constants 7,1,16777216\n");
    toy(&f, "sized", "vulkan", "echo", "subgroup 32\nconstants 7,0,16777216\n");
    toy(&f, "again", "vulkan", "echo", "constants 7,0,16777216\n");
    toy(&f, "lacks", "vulkan", "bad=unsupported", "subgroup 64\n");
    const char *text = executed(&f, NULL);
    CHECK_HAS(end_of(text, "three"), "\"reused\":0");
    CHECK_HAS(end_of(text, "other"), "\"reused\":0");
    CHECK_HAS(end_of(text, "sized"), "\"reused\":0");
    CHECK_HAS(end_of(text, "again"), "\"reused\":1");
    CHECK_HAS(end_of(text, "lacks"),
              "\"status\":\"unsupported\",\"reason\":\"subgroup_size 64 > 32\"}");
    expect(&f, "plain", (const float[8]){0, 0, 0, 0, 0, 0, 0, 2});
    expect(&f, "three", (const float[8]){7, 0, 16777216, 0, 0, 0, 0, 2});
    expect(&f, "other", (const float[8]){7, 1, 16777216, 0, 0, 0, 0, 2});
    expect(&f, "sized", (const float[8]){7, 0, 16777216, 0, 0, 0, 32, 2});
    expect(&f, "again", (const float[8]){7, 0, 16777216, 0, 0, 0, 0, 2});
    folder_close(&f);
}

/* Field case G1-17: variant 7 of 40 loses the device, and each later call of that process fails. */
static void one_of_forty_loses_the_device(const char *how, size_t blamed) {
    struct job_folder f;
    char id[8];
    folder_open(&f);
    for (size_t i = 0; i < 40; i++) {
        (void)snprintf(id, sizeof id, "v%zu", i);
        toy(&f, id, "vulkan", i == 7 ? how : "double", "");
    }
    const char *text = executed(&f, NULL);
    for (size_t i = 0; i < 40; i++) {
        (void)snprintf(id, sizeof id, "v%zu", i);
        CHECK_HAS(end_of(text, id), i == blamed ? "\"status\":\"crashed\"" : "\"status\":\"ok\"");
    }
    folder_close(&f);
}

static void timers(void) {
    static const struct {
        const char *program, *says;
    } cases[] = {
        {"double slow=60 gpu=good", "\"gpu_timer\":\"trusted\""},
        {"double slow=1 gpu=zero", "\"gpu_timer\":\"disagrees\""},
        {"double slow=1 gpu=stuck", "\"gpu_timer\":\"disagrees\""},
        {"double slow=1 gpu=wrap", "\"gpu_timer\":\"disagrees\""},
        {"double slow=60 gpu=wrap", "\"gpu_timer\":\"disagrees\""},
        {"double slow=60 gpu=zero", "\"gpu_timer\":\"disagrees\""},
        {"double slow=1", "\"gpu_ns\":[],"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_folder f;
        folder_open(&f);
        toy(&f, "c", "vulkan", cases[i].program, "repeats 5\n");
        CHECK_HAS(end_of(executed(&f, NULL), "c"), cases[i].says);
        folder_close(&f);
    }
}

/* Values go with the dispatch: one program serves all of them, also across cases. */
static void values(void) {
    struct job_folder f;
    folder_open(&f);
    toy(&f, "one", "vulkan", "values", "values 7,8388608\n");
    toy(&f, "other", "vulkan", "values", "values 0,1\n");
    toy(&f, "more", "vulkan", "values", "values 0,1,2\n");
    toy(&f, "none", "gles", "values", "");
    toy(&f, "gles", "gles", "values", "values 3\n");
    const char *text = executed(&f, NULL);
    CHECK_HAS(end_of(text, "one"), "\"reused\":0");
    CHECK_HAS(end_of(text, "other"), "\"reused\":1");
    CHECK_HAS(end_of(text, "more"), "\"reused\":0"); /* it might not suit the shader */
    CHECK_HAS(end_of(text, "gles"), "\"status\":\"ok\"");
    expect(&f, "one", (const float[8]){8, 8388610, 3, 4, 5, 6, 7, 2});
    expect(&f, "other", (const float[8]){1, 3, 3, 4, 5, 6, 7, 2});
    expect(&f, "more", (const float[8]){1, 3, 5, 4, 5, 6, 7, 3});
    expect(&f, "none", (const float[8]){1, 2, 3, 4, 5, 6, 7, 0});
    expect(&f, "gles", (const float[8]){4, 2, 3, 4, 5, 6, 7, 1});
    folder_close(&f);
}

int main(void) {
    (void)signal(SIGPIPE, SIG_IGN);
    adapters();
    constants_and_subgroups();
    values();
    one_of_forty_loses_the_device("double lost=now", 7);
    one_of_forty_loses_the_device("double lost=free", 40); /* nobody: the next case only finds it */
    timers();
    return 0;
}

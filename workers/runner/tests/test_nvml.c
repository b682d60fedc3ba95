/* Sensors of NVIDIA's GPUs, against a library that stands in for NVML (fake_nvml.c), and their way
 * into a case's record. */
#include <signal.h>

#include "check.h"
#include "job_folder.h"
#include "sensors.h"

#define GLES "NVIDIA Corporation"
#define VULKAN "NVIDIA"
#define ADAPTER "4-0a1b2c3d4e5f60718293a4b5c6d7e8f9"
#define UUID "GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"

static void say(const char *name, const char *value) {
    CHECK((value == NULL ? unsetenv(name) : setenv(name, value, 1)) == 0);
}

/* What is read of that GPU by a runner that begins now. */
static struct reading read_of(const char *library, const char *vendor, const char *adapter) {
    struct sensors s = {.open = false};
    say("TILEFARM_NVML", library);
    sensors_open(&s, "/nonexistent");
    sensors_follow(&s, vendor, adapter);
    struct reading r = sensors_read(&s);
    sensors_close(&s);
    return r;
}

static bool is(struct reading r, int64_t hz, int64_t mc, int throttled) {
    return r.gpu_hz == hz && r.temp_mc == mc && r.throttled == throttled;
}

static void one_gpu(void) {
    CHECK(is(read_of(FAKE_NVML, GLES, ""), 1980000000, 40000, 0));
    CHECK(is(read_of(FAKE_NVML, VULKAN, ADAPTER), 1980000000, 40000, 0));
    /* The same machine's software driver has no clock, least of all this one. */
    CHECK(is(read_of(FAKE_NVML, "Mesa", ""), -1, -1, -1));
}

static void reasons_of_a_low_clock(void) {
    static const struct {
        const char *reasons;
        int throttled;
    } cases[] = {{"0x0", 0},   {"0x1", 0},  {"0x2", 0},  {"0x10", 0}, {"0x100", 0},
                 {"0x113", 0}, {"0x4", 1},  {"0x8", 1},  {"0x20", 1}, {"0x40", 1},
                 {"0x80", 1},  {"0x41", 1}, {"0x200", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        say("FAKE_NVML_REASONS", cases[i].reasons);
        CHECK(read_of(FAKE_NVML, GLES, "").throttled == cases[i].throttled);
        CHECK(read_of(OLD_NVML, GLES, "").throttled == cases[i].throttled);
    }
    say("FAKE_NVML_REASONS", NULL);
}

static void libraries_that_lack_something(void) {
    CHECK(is(read_of(OLD_NVML, GLES, ""), 1980000000, -1, 0));
    CHECK(is(read_of("/nonexistent/nvml.so", GLES, ""), -1, -1, -1));
    CHECK(is(read_of("libm.so.6", GLES, ""), -1, -1, -1));
}

static void calls_that_fail(void) {
    static const struct {
        const char *call;
        int64_t hz, mc;
        int throttled;
    } cases[] = {{"init", -1, -1, -1},
                 {"count", -1, -1, -1},
                 {"handle", -1, -1, -1},
                 {"clock", -1, 40000, 0},
                 {"temperature", 1980000000, -1, 0},
                 {"reasons", 1980000000, 40000, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        say("FAKE_NVML_FAIL", cases[i].call);
        CHECK(is(read_of(FAKE_NVML, GLES, ""), cases[i].hz, cases[i].mc, cases[i].throttled));
    }
    say("FAKE_NVML_FAIL", NULL);
}

/* Which of them runs the kernels, GLES does not say; Vulkan's adapter has the UUID. */
static void two_gpus(void) {
    say("FAKE_NVML_GPUS", "2");
    say("FAKE_NVML_UUID", UUID);
    CHECK(is(read_of(FAKE_NVML, GLES, ""), -1, -1, -1));
    CHECK(is(read_of(FAKE_NVML, VULKAN, ADAPTER), 1979000000, 41000, 0));
    CHECK(is(read_of(FAKE_NVML, VULKAN, ADAPTER "-2"), 1979000000, 41000, 0));
    CHECK(is(read_of(FAKE_NVML, VULKAN, "4-ffff"), -1, -1, -1));
    CHECK(is(read_of(FAKE_NVML, VULKAN, ADAPTER "0"), -1, -1, -1));
    CHECK(is(read_of(OLD_NVML, VULKAN, ADAPTER), -1, -1, -1));
    say("FAKE_NVML_UUID", NULL);
    CHECK(is(read_of(FAKE_NVML, VULKAN, ADAPTER), -1, -1, -1));
    say("FAKE_NVML_GPUS", "0");
    CHECK(is(read_of(FAKE_NVML, GLES, ""), -1, -1, -1));
    say("FAKE_NVML_GPUS", NULL);
}

/* A process runs cases of both APIs, one after the other, and may come back. */
static void another_gpu_in_between(void) {
    struct sensors s = {.open = false};
    say("TILEFARM_NVML", FAKE_NVML);
    sensors_open(&s, "/nonexistent");
    sensors_follow(&s, GLES, "");
    CHECK(sensors_read(&s).gpu_hz == 1980000000);
    sensors_follow(&s, "Mesa", "13-0000");
    CHECK(sensors_read(&s).gpu_hz == -1);
    sensors_follow(&s, VULKAN, ADAPTER);
    CHECK(sensors_read(&s).gpu_hz == 1980000000);
    sensors_close(&s);
}

static const char *sensors_of_a_case(const char *vendor) {
    struct job_folder f;
    say("FAKE_VENDOR", vendor);
    say("TILEFARM_NVML", FAKE_NVML);
    folder_open(&f);
    folder_case(&f, "c", "double", "warmup_ms 5\n");
    const char *record = end_of(executed(&f, NULL), "c");
    folder_close(&f);
    return record;
}

static void records_have_a_reading_around_each_sequence(void) {
    say("FAKE_NVML_REASONS", "0x21");
    CHECK_HAS(sensors_of_a_case(GLES), "\"sensors\":{\"gpu_hz\":[1980000000,1980000000,1980000000],"
                                       "\"temp_mc\":[40000,40000,40000],\"throttled\":true}");
    CHECK_HAS(sensors_of_a_case("Mesa"),
              "\"sensors\":{\"gpu_hz\":[],\"temp_mc\":[],\"throttled\":null}");
}

int main(void) {
    (void)signal(SIGPIPE, SIG_IGN);
    one_gpu();
    reasons_of_a_low_clock();
    libraries_that_lack_something();
    calls_that_fail();
    two_gpus();
    another_gpu_in_between();
    records_have_a_reading_around_each_sequence();
    return 0;
}

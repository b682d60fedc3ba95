/* What is said about devices: limits, timer trust, sensors, the path of the driver. */
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "library_path.h"
#include "limits.h"
#include "sensors.h"
#include "timing.h"

static struct limits roomy(void) {
    struct limits limits = {.value = {0}};
    for (int i = 0; i < LIMIT_COUNT; i++) {
        limits.value[i] = 1024;
    }
    return limits;
}

static void limits_are_imposed(void) {
    struct limits limits = roomy();
    char reason[LIMIT_REASON_SIZE];
    CHECK(limits_impose(&limits, NULL, reason) && limits_impose(&limits, "", reason));
    CHECK(limits_impose(&limits, "invocations=128,shared_bytes=4096", reason));
    CHECK(limits.value[LIMIT_INVOCATIONS] == 128 && limits.imposed[LIMIT_INVOCATIONS]);
    CHECK(limits.value[LIMIT_SHARED_BYTES] == 1024 && !limits.imposed[LIMIT_SHARED_BYTES]);
    CHECK(!limits_impose(&limits, "invocations=128,", reason));
    CHECK_TEXT(reason, "\"\" is not NAME=NUMBER");
    CHECK(!limits_impose(&limits, "invocations=many", reason));
    CHECK_TEXT(reason, "\"invocations=many\" is not NAME=NUMBER");
    CHECK(!limits_impose(&limits, "warp=32", reason));
    CHECK_TEXT(reason, "\"warp\" is no limit or feature that can be imposed");
}

static void features_are_taken_away(void) {
    struct limits limits = roomy();
    struct features features;
    char reason[LIMIT_REASON_SIZE], why[FEATURE_REASON_SIZE];
    CHECK(limits_impose(&limits, "float16=0,invocations=128", reason));
    CHECK(limits.without[FEATURE_FLOAT16] && !limits.without[FEATURE_STORAGE16]);
    CHECK(!limits_impose(&limits, "storage16=1", reason));
    CHECK_TEXT(reason, "storage16: a feature can only be set to 0");
    CHECK(features_parse(NULL, &features, why) && !features.has[FEATURE_FLOAT16]);
    CHECK(features_parse("", &features, why));
    CHECK(features_parse("storage16,float16", &features, why));
    CHECK(features.has[FEATURE_FLOAT16] && features.has[FEATURE_STORAGE16]);
    CHECK(!features.has[FEATURE_IO16]);
    CHECK(!features_parse("float16,", &features, why));
    CHECK_TEXT(why, "\"\" is no feature");
    CHECK(!features_parse("float1", &features, why));
    CHECK_TEXT(why, "\"float1\" is no feature");
}

/* Field case G1-15: 32×2×32 where 1,024 are allowed, 16×16 where 128 are. */
static void reasons_carry_both_numbers(void) {
    struct limits limits = roomy();
    char reason[LIMIT_REASON_SIZE];
    const uint32_t big[] = {32, 2, 32}, square[] = {16, 16, 1}, flat[] = {1, 1, 65};
    CHECK(!limits_fit_group(&limits, big, reason));
    CHECK_TEXT(reason, "invocations 2048 > 1024");
    limits.value[LIMIT_INVOCATIONS] = 128;
    CHECK(!limits_fit_group(&limits, square, reason));
    CHECK_TEXT(reason, "invocations 256 > 128");
    limits.value[LIMIT_GROUP_Z] = 64;
    CHECK(!limits_fit_group(&limits, flat, reason));
    CHECK_TEXT(reason, "group_z 65 > 64");
    const uint32_t overflow[] = {1u << 16, 1u << 16, 1};
    limits.value[LIMIT_GROUP_X] = limits.value[LIMIT_GROUP_Y] = UINT32_MAX;
    CHECK(!limits_fit_group(&limits, overflow, reason));
    CHECK_TEXT(reason, "invocations 4294967296 > 128");
}

static void cases_are_checked_before_they_run(void) {
    struct limits limits = roomy();
    char reason[LIMIT_REASON_SIZE];
    struct job_buffer buffer = {.dtype = DTYPE_F32, .count = 16};
    struct job_pass pass = {.grid = {1, 1, 1}, .binding_count = 1};
    struct job_case c = {.buffers = &buffer, .buffer_count = 1, .passes = &pass, .pass_count = 1};
    CHECK(limits_fit_case(&limits, &c, reason));
    pass.grid[2] = 1025;
    CHECK(!limits_fit_case(&limits, &c, reason));
    CHECK_TEXT(reason, "count_z 1025 > 1024");
    pass.shared_bytes = 36864;
    CHECK(!limits_fit_case(&limits, &c, reason));
    CHECK_TEXT(reason, "shared_bytes 36864 > 1024");
    pass.grid[2] = 1;
    pass.shared_bytes = 0;
    buffer.count = 257;
    CHECK(!limits_fit_case(&limits, &c, reason));
    CHECK_TEXT(reason, "storage_bytes 1028 > 1024");
}

static void timers_are_judged(void) {
    int64_t wall[] = {5000000, 5100000, 4900000}, one[] = {1, 1, 1},
            good[] = {4800000, 4700000, 5000000};
    struct timing t = {.wall_ns = wall, .count = 3, .gpu_ns = one, .gpu_count = 3};
    CHECK(timing_slope_n(&t) == 0 && timing_trust_without_slope(&t) == TIMER_DISAGREES);
    t.gpu_ns = good;
    CHECK(timing_slope_n(&t) == 4);
    CHECK(timing_agrees(4800000, 4900000) && !timing_agrees(4800000, 9000000));
    t.disjoint = true;
    CHECK(timing_slope_n(&t) == 0 && timing_trust_without_slope(&t) == TIMER_DISJOINT);
    t = (struct timing){.wall_ns = wall, .count = 3};
    CHECK(timing_slope_n(&t) == 0 && timing_trust_without_slope(&t) == TIMER_ABSENT);
    CHECK(timing_median(NULL, 0) == -1 && timing_least(wall, 3) == 4900000);
    int64_t slow[] = {80000000}, slow_gpu[] = {79000000};
    t = (struct timing){.wall_ns = slow, .count = 1, .gpu_ns = slow_gpu, .gpu_count = 1};
    CHECK(timing_slope_n(&t) == 0 && timing_trust_without_slope(&t) == TIMER_TRUSTED);
    /* The slack for short kernels excuses no timer that stands still. */
    CHECK(!timing_agrees(1, 15000) && !timing_agrees(1, 0) && timing_agrees(5000, 15000));
    CHECK(timing_slope(1000, 100, 10) == 100 && timing_slope(50, 100, 2) == 0);
}

static void put(const char *root, const char *path, const char *text) {
    char full[512];
    (void)snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static int drop(const char *path, const struct stat *info, int type, struct FTW *where) {
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static void warm_up_submissions_are_of_5_ms(void) {
    CHECK(timing_warmup_n(1, 60000000, 1) == 1);
    CHECK(timing_warmup_n(1, 2000000, 1) == 2);
    CHECK(timing_warmup_n(1, 50000, 1) == 8); /* mostly the cost of submitting: grows in steps */
    CHECK(timing_warmup_n(8, 80000, 1) == 64);
    CHECK(timing_warmup_n(512, 2500000, 1) == 1024);
    CHECK(timing_warmup_n(64, 40000000, 1) == 8); /* and shrinks at once */
    CHECK(timing_warmup_n(4096, 5000, 1) == 4096 && timing_warmup_n(4096, 5000, 3) == 1365);
    CHECK(timing_warmup_n(1, 5000, 5000) == 1 && timing_warmup_n(2, 0, 1) == 16);
}

static void sensors_of_phones(void) {
    char adreno[] = "/tmp/runner-adreno-XXXXXX", mali[] = "/tmp/runner-mali-XXXXXX";
    struct sensors s = {.open = false};
    CHECK(mkdtemp(adreno) != NULL && mkdtemp(mali) != NULL);
    put(adreno, "/sys/class/kgsl/kgsl-3d0/gpuclk", "903000000\n");
    put(adreno, "/sys/class/kgsl/kgsl-3d0/thermal_pwrlevel", "2\n");
    put(adreno, "/sys/class/thermal/thermal_zone0/type", "battery\n");
    put(adreno, "/sys/class/thermal/thermal_zone0/temp", "31000\n");
    put(adreno, "/sys/class/thermal/thermal_zone7/type", "gpuss-0\n");
    put(adreno, "/sys/class/thermal/thermal_zone7/temp", "52300\n");
    sensors_open(&s, adreno);
    struct reading r = sensors_read(&s);
    CHECK(r.gpu_hz == 903000000 && r.temp_mc == 52300 && r.throttled == 1);
    put(adreno, "/sys/class/kgsl/kgsl-3d0/gpuclk", "garbage\n");
    put(adreno, "/sys/class/kgsl/kgsl-3d0/thermal_pwrlevel", "0\n");
    r = sensors_read(&s);
    CHECK(r.gpu_hz == -1 && r.throttled == 0);
    sensors_close(&s);
    put(mali, "/sys/class/misc/mali0/device/clock", "848\n");
    sensors_open(&s, mali);
    r = sensors_read(&s);
    CHECK(r.gpu_hz == 848000000 && r.temp_mc == -1 && r.throttled == -1);
    sensors_close(&s);
    CHECK(nftw(adreno, drop, 8, FTW_DEPTH | FTW_PHYS) == 0);
    CHECK(nftw(mali, drop, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

static void driver_in_the_memory_map(void) {
    char path[512];
    FILE *maps = tmpfile();
    CHECK(maps != NULL);
    CHECK(fputs("7f00-7f01 r-xp 0 fd:00 1 /system/lib64/libEGL.so\n"
                "7f01-7f02 rw-p 0 00:00 0 [stack]\n"
                "7f02-7f03 r-xp 0 fd:00 2 /vendor/lib64/egl/libGLESv2_adreno.so\n"
                "7f03-7f04 r-xp 0 fd:00 3 /vendor/lib64/egl/libEGL_adreno.so\n",
                maps) >= 0);
    rewind(maps);
    library_path_from(maps, path, sizeof path);
    CHECK_TEXT(path, "/vendor/lib64/egl/libGLESv2_adreno.so");
    CHECK(fclose(maps) == 0);
    library_path(path, sizeof path);
    CHECK_TEXT(path, ""); /* no driver in this process */
}

int main(void) {
    limits_are_imposed();
    features_are_taken_away();
    reasons_carry_both_numbers();
    cases_are_checked_before_they_run();
    timers_are_judged();
    warm_up_submissions_are_of_5_ms();
    sensors_of_phones();
    driver_in_the_memory_map();
    return 0;
}

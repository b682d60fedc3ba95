/* Probing a made-up API whose proofs pass, fail, crash and hang: each costs its feature only. */
#include <signal.h>
#include <unistd.h>

#include "backend.h"
#include "check.h"
#include "child.h"
#include "probe.h"

static bool two_adapters(void (*each)(void *arg, const char *adapter), void *arg,
                         struct failure *failure) {
    (void)failure;
    each(arg, "first");
    each(arg, "second");
    return true;
}

static struct device *open_device(const struct opening *opening, struct failure *failure);

static void close_device(struct device *d) {
    free(d);
    if (getenv("LEAK") != NULL) {
        _exit(CHILD_INVALID); /* as the Vulkan backend does */
    }
}

static void no_extensions(struct device *d, void (*each)(void *arg, const char *name), void *arg) {
    (void)d;
    (void)each;
    (void)arg;
}

static bool proves(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)d;
    (void)failure;
    evidence->subgroup = 16;
    return true;
}

static bool fails(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)d;
    (void)evidence;
    return fail(failure, FAULT_COMPILE, "the compiler choked");
}

static bool crashes(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)d;
    (void)evidence;
    (void)failure;
    (void)raise(SIGKILL);
    return true;
}

static bool hangs(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)evidence;
    (void)failure;
    if (getenv("HANG") != NULL && strcmp(d->driver.adapter, getenv("HANG")) == 0) {
        (void)pause(); /* no signal will come but the last */
    }
    return true;
}

static bool complains(struct device *d, struct evidence *evidence, struct failure *failure) {
    (void)d;
    (void)evidence;
    return getenv("COMPLAIN") == NULL || fail(failure, FAULT_DRIVER, "validation: a rule broken");
}

static const struct proof proofs[] = {
    {FEATURE_PACK_HALF, NULL, proves},       {FEATURE_FLOAT16, "float16", crashes},
    {FEATURE_STORAGE16, "storage16", fails}, {FEATURE_UNIFORM16, NULL, proves},
    {FEATURE_PUSH16, "float16", crashes},    {FEATURE_IO16, NULL, NULL},
    {FEATURE_TIMER_QUERY, NULL, hangs},      {FEATURE_SUBGROUP_SHUFFLE, NULL, complains},
};

static const struct backend backend = {
    .api = "vulkan",
    .adapters = two_adapters,
    .open = open_device,
    .close = close_device,
    .extensions = no_extensions,
    .proofs = proofs,
    .proof_count = sizeof proofs / sizeof proofs[0],
};

static struct device *open_device(const struct opening *opening, struct failure *failure) {
    if (getenv("BROKEN") != NULL && strcmp(opening->adapter, getenv("BROKEN")) == 0) {
        (void)fail(failure, FAULT_DRIVER, "no such luck");
        return NULL;
    }
    struct device *d = calloc(1, sizeof *d);
    CHECK(d != NULL);
    d->backend = &backend;
    (void)snprintf(d->driver.adapter, sizeof d->driver.adapter, "%s", opening->adapter);
    for (int i = 0; i < FEATURE_COUNT; i++) {
        d->advertised.has[i] = i != FEATURE_UNIFORM16;
    }
    return d;
}

const struct backend *backend_find(const char *api) {
    return strcmp(api, backend.api) == 0 ? &backend : NULL;
}

static int run(const char *impose, char *text, size_t room) {
    const struct probe probe = {.impose = impose, .proof_ms = 2000};
    FILE *file = tmpfile();
    CHECK(file != NULL);
    int code = probe_run(&probe, fileno(file));
    rewind(file);
    size_t size = fread(text, 1, room - 1, file);
    text[size] = '\0';
    CHECK(fclose(file) == 0);
    return code;
}

/* Field case G1-23: a feature whose compiler aborts is isolated in a process of its own. */
static void a_crash_or_hang_costs_its_feature(void) {
    char text[16384];
    CHECK(setenv("HANG", "second", 1) == 0 && run(NULL, text, sizeof text) == 0);
    CHECK_HAS(text, "\"adapter\":\"first\"");
    CHECK_HAS(text, "\"adapter\":\"second\"");
    CHECK_HAS(text, "\"advertised\":{\"pack_half\":true,\"float16\":true,\"storage16\":true,"
                    "\"uniform16\":false,\"push16\":true,\"io16\":true,\"timer_query\":true,"
                    "\"subgroup_shuffle\":true}");
    CHECK_HAS(text, "\"features\":{\"pack_half\":true,\"float16\":false,\"storage16\":false,"
                    "\"uniform16\":false,\"push16\":false,\"io16\":false,\"timer_query\":false,"
                    "\"subgroup_shuffle\":true}");
    CHECK_HAS(text, "\"unproven\":{\"float16\":\"the driver crashed with signal 9\","
                    "\"storage16\":\"the compiler choked\","
                    "\"push16\":\"the driver crashed with signal 9\","
                    "\"timer_query\":\"the driver hung\"}");
    CHECK_HAS(text, "\"measured\":16");
    CHECK(unsetenv("HANG") == 0);
}

static void a_feature_taken_away_is_not_tried(void) {
    char text[16384];
    CHECK(run("float16=0,pack_half=0", text, sizeof text) == 0);
    CHECK_HAS(text, "\"imposed\":true,\"imposed_limits\":[\"pack_half\",\"float16\"]");
    CHECK_HAS(text, "\"advertised\":{\"pack_half\":false,\"float16\":false,\"storage16\":true,");
    CHECK_HAS(text, "\"features\":{\"pack_half\":false,\"float16\":false,");
    /* push16's proof needs float16, which cannot be enabled now */
    CHECK_HAS(text,
              "\"unproven\":{\"storage16\":\"the compiler choked\",\"push16\":\"lacks float16\"}");
}

static void one_gpu_that_does_not_open(void) {
    char text[16384];
    CHECK(setenv("BROKEN", "first", 1) == 0 && run(NULL, text, sizeof text) == 0);
    CHECK_LACKS(text, "\"adapter\":\"first\"");
    CHECK_HAS(text, "\"adapter\":\"second\"");
    CHECK(unsetenv("BROKEN") == 0);
}

/* What the validation layer says is a mistake of the runner: no profile is worth anything then. */
static void a_validation_message_fails_the_probe(void) {
    char text[16384];
    CHECK(setenv("COMPLAIN", "1", 1) == 0 && run(NULL, text, sizeof text) == 3);
    CHECK_LACKS(text, "\"profile\"");
    CHECK(unsetenv("COMPLAIN") == 0);
    CHECK(setenv("LEAK", "1", 1) == 0 && run(NULL, text, sizeof text) == 3);
    CHECK_LACKS(text, "\"profile\"");
    CHECK(unsetenv("LEAK") == 0);
}

int main(void) {
    a_crash_or_hang_costs_its_feature();
    a_feature_taken_away_is_not_tried();
    one_gpu_that_does_not_open();
    a_validation_message_fails_the_probe();
    return 0;
}

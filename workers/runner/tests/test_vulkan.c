/* The Vulkan backend in this process, on every driver of the machine and under the validation
 * layer: what it forgets to free shows under AddressSanitizer. */
#include <dlfcn.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "vk.h"

#define probe_pack_half pack_half /* the backend has the one of that name */
#include "probe_pack_half.h"

#define WORDS 64u
#define ADAPTERS_MAX 8

static char adapters[ADAPTERS_MAX][80];
static size_t adapter_count;

static void add_adapter(void *arg, const char *adapter) {
    (void)arg;
    CHECK(adapter_count < ADAPTERS_MAX);
    (void)snprintf(adapters[adapter_count++], sizeof adapters[0], "%s", adapter);
}

const struct backend *backend_find(const char *api) {
    return strcmp(api, vk_backend.api) == 0 ? &vk_backend : NULL;
}

static struct program *compile(struct device *d, const void *source, size_t size,
                               struct failure *failure) {
    const struct shader shader = {.source = source, .size = size, .binding_count = 2};
    struct log log = {.text = NULL};
    struct program *program = d->backend->compile(d, &shader, &log, failure);
    free(log.text);
    return program;
}

static void run_on(struct device *d, struct program *program, struct gpu_buffer *from,
                   struct gpu_buffer *to, size_t passes) {
    const struct binding bindings[] = {{.buffer = from, .size = WORDS * 4},
                                       {.buffer = to, .size = WORDS * 4}};
    struct dispatch dispatches[16];
    struct failure failure = {.kind = FAULT_NONE};
    struct elapsed elapsed;
    for (size_t i = 0; i < passes; i++) {
        dispatches[i] = (struct dispatch){
            .program = program, .grid = {WORDS, 1, 1}, .bindings = bindings, .binding_count = 2};
    }
    const struct sequence sequence = {.dispatches = dispatches, .count = passes};
    CHECK(d->backend->fill(d, to, 0, WORDS * 4, 0, &failure));
    CHECK(d->backend->run(d, &sequence, 2, true, &elapsed, &failure));
    CHECK(elapsed.wall_ns > 0);
    const uint32_t *words = d->backend->map(d, to, 4, 8, &failure);
    CHECK(words != NULL && words[0] == 0x00010002u && words[1] == 0x00020003u);
    CHECK(d->backend->unmap(d, to, &failure));
}

/* Drivers and layers that were unloaded would have no name by which lsan.supp knows their leaks. */
static int keep_loaded(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    (void)arg;
    if (info->dlpi_name != NULL && *info->dlpi_name == '/') {
        (void)dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }
    return 0;
}

static void a_whole_life(const char *adapter) {
    const struct opening opening = {.adapter = adapter};
    struct failure failure = {.kind = FAULT_NONE};
    struct device *d = vk_backend.open(&opening, &failure);
    CHECK(d != NULL);
    (void)dl_iterate_phdr(keep_loaded, NULL);
    CHECK_TEXT(d->driver.adapter, adapter);
    struct program *program = compile(d, pack_half, sizeof pack_half, &failure);
    struct gpu_buffer *from = d->backend->buffer_new(d, WORDS * 4, &failure);
    struct gpu_buffer *to = d->backend->buffer_new(d, WORDS * 4, &failure);
    CHECK(program != NULL && from != NULL && to != NULL);
    uint32_t words[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = (i + 1) << 16 | i; /* subnormal halves: only moved */
    }
    CHECK(d->backend->write(d, from, 0, words, sizeof words, &failure));
    CHECK(compile(d, "no SPIR-V at all", 16, &failure) == NULL && failure.kind == FAULT_COMPILE);
    CHECK(d->backend->buffer_new(d, (size_t)1 << 60, &failure) == NULL);
    CHECK(failure.kind == FAULT_UNSUPPORTED);
    CHECK_HAS(failure.reason, "allocation_bytes 1152921504606846976 > ");
    run_on(d, program, from, to, 1);
    run_on(d, program, from, to, 16); /* more descriptors than before */
    run_on(d, program, from, to, 1);
    d->backend->buffer_free(d, from);
    d->backend->buffer_free(d, to);
    d->backend->program_free(d, program);
    d->backend->close(d);
}

static void openings_that_fail(const char *adapter) {
    const struct opening nobody = {.adapter = "0-none"}, nothing = {adapter, "no_such_feature"},
                         beyond = {adapter, "io16,cooperative_matrix"};
    struct failure failure = {.kind = FAULT_NONE};
    CHECK(vk_backend.open(&nobody, &failure) == NULL && failure.kind == FAULT_DRIVER);
    CHECK_TEXT(failure.reason, "no Vulkan adapter \"0-none\" here; `probe` lists them");
    CHECK(vk_backend.open(&nothing, &failure) == NULL && failure.kind == FAULT_DRIVER);
    CHECK_TEXT(failure.reason, "enable: \"no_such_feature\" is no feature");
    CHECK(vk_backend.open(&beyond, &failure) == NULL && failure.kind == FAULT_UNSUPPORTED);
    CHECK_HAS(failure.reason, "lacks ");
}

/* In a process of its own, before any driver is loaded here. */
static void a_forgotten_buffer_ends_the_process(void) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        const struct opening opening = {.adapter = NULL};
        struct failure failure = {.kind = FAULT_NONE};
        struct device *d = vk_backend.open(&opening, &failure);
        if (d != NULL && d->backend->buffer_new(d, WORDS * 4, &failure) != NULL) {
            d->backend->close(d);
        }
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_INVALID);
}

/* What a driver keeps in its own variables is lost with its library, and then counted as leaked by
 * nobody: no suppression has a name for it. */
static void drivers_stay_loaded(void) {
    CHECK(dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE) != NULL);
}

int main(void) {
    drivers_stay_loaded();
    a_forgotten_buffer_ends_the_process();
    struct failure failure = {.kind = FAULT_NONE};
    CHECK(vk_backend.adapters(add_adapter, NULL, &failure) && adapter_count > 0);
    for (size_t i = 0; i < adapter_count; i++) {
        a_whole_life(adapters[i]);
        openings_that_fail(adapters[i]);
    }
    return 0;
}

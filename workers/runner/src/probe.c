/* The probe command's parent; see probe.h. */
#include "probe.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "clock.h"
#include "exit_codes.h"
#include "lines.h"
#include "probe_child.h"
#include "stream.h"

#define OPEN_MS 60000
#define PROOF_MS 20000
#define ADAPTERS_MAX 32

static const char *const apis[] = {"gles", "vulkan"};

struct adapters {
    char *names[ADAPTERS_MAX];
    size_t count;
};

struct probing {
    const struct probe *probe;
    struct stream out;
    struct probe_board *board;
    size_t profiles;
    bool invalid; /* the validation layer complained about this program */
};

/* Takes a line of a child; true if the child's work is done with it. */
typedef bool take_line(void *arg, const char *line, size_t size);

/* Waits until the pipe can be read. False after `left_ms`. */
static bool wait_for(int fd, int64_t left_ms) {
    struct pollfd pipe = {.fd = fd, .events = POLLIN};
    return left_ms > 0 && poll(&pipe, 1, (int)left_ms) != 0;
}

/* Hands on the child's lines until it is done or its pipe ends; false if it was silent too long. */
static bool follow(const struct child *child, int proof_ms, take_line *take, void *arg) {
    struct lines lines = {.data = NULL};
    int64_t deadline = clock_ms() + OPEN_MS;
    bool open = true, in_time = true;
    while (open && in_time) {
        in_time = wait_for(child->fd, deadline - clock_ms());
        enum lines_state state = in_time ? lines_read(&lines, child->fd) : LINES_NOTHING;
        const char *line = NULL;
        size_t size = 0;
        open = state != LINES_EOF && state != LINES_BAD;
        while (in_time && (line = lines_next(&lines, &size)) != NULL) {
            deadline = clock_ms() + proof_ms;
            open = !take(arg, line, size) && open;
        }
    }
    lines_free(&lines);
    return in_time;
}

/* Runs a child to its end. `how` says in words how it ended if it did not end well by itself. */
static bool run_child(const struct probing *s, child_main *run, size_t first, void *run_arg,
                      take_line *take, void *take_arg, char how[64]) {
    struct child child = {.fd = -1};
    int status = 0;
    how[0] = '\0';
    if (!child_start(&child, run, first, run_arg)) {
        perror("tilefarm-runner: fork");
        return false;
    }
    int proof_ms = s->probe->proof_ms > 0 ? s->probe->proof_ms : PROOF_MS;
    if (!follow(&child, proof_ms, take, take_arg)) {
        (void)snprintf(how, 64, "the driver hung");
    } else if (child_reap(&child, 1000, &status) && WIFSIGNALED(status)) {
        (void)snprintf(how, 64, "the driver crashed with signal %d", WTERMSIG(status));
    }
    child_kill(&child);
    child_close(&child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_INVALID) {
        atomic_store(&s->board->invalid, true);
    }
    return how[0] == '\0' && WIFEXITED(status) && WEXITSTATUS(status) == CHILD_DONE;
}

static bool take_adapter(void *arg, const char *line, size_t size) {
    struct adapters *adapters = arg;
    char *name = adapters->count < ADAPTERS_MAX ? strndup(line, size) : NULL;
    if (name != NULL) {
        adapters->names[adapters->count++] = name;
    }
    return false;
}

/* The profile record; true once it is there. */
static bool take_profile(void *arg, const char *line, size_t size) {
    struct probing *s = arg;
    if (size == 0 || line[0] != '{') {
        return false;
    }
    s->profiles += stream_write(&s->out, line, size + 1) ? 1 : 0;
    return true;
}

/* Blames the proof that was running when the child ended. False if none was. */
static bool blame(struct probe_board *board, const struct backend *backend, const char *how,
                  size_t *next) {
    for (size_t i = 0; i < backend->proof_count; i++) {
        enum feature feature = backend->proofs[i].feature;
        if (atomic_load(&board->states[feature]) == PROOF_RUNNING) {
            (void)snprintf(board->reasons[feature], sizeof board->reasons[0], "%s", how);
            atomic_store(&board->states[feature], PROOF_FAILED);
            *next = i + 1;
            return true;
        }
    }
    return false;
}

static void probe_adapter(struct probing *s, const struct backend *backend, const char *adapter) {
    struct probe_target target = {
        .backend = backend, .adapter = adapter, .impose = s->probe->impose, .board = s->board};
    char how[64];
    size_t next = 0;
    memset(s->board, 0, sizeof *s->board);
    while (!run_child(s, probe_child, next, &target, take_profile, s, how)) {
        if (how[0] == '\0') { /* the child said why */
            s->invalid = s->invalid || atomic_load(&s->board->invalid);
            return;
        }
        if (!blame(s->board, backend, how, &next)) {
            (void)fprintf(stderr, "tilefarm-runner: %s %s: %s\n", backend->api, adapter, how);
            return;
        }
    }
}

static void probe_api(struct probing *s, const char *api) {
    const struct backend *backend = backend_find(api);
    struct adapters adapters = {.count = 0};
    char how[64];
    if (backend == NULL) {
        return;
    }
    struct probe_target target = {.backend = backend, .board = s->board};
    memset(s->board, 0, sizeof *s->board);
    if (!run_child(s, probe_list_child, 0, &target, take_adapter, &adapters, how) &&
        how[0] != '\0') {
        (void)fprintf(stderr, "tilefarm-runner: %s: %s while its GPUs were listed\n", api, how);
    }
    for (size_t i = 0; i < adapters.count; i++) {
        probe_adapter(s, backend, adapters.names[i]);
        free(adapters.names[i]);
    }
}

int probe_run(const struct probe *probe, int out_fd) {
    struct probing s = {.probe = probe};
    s.board =
        mmap(NULL, sizeof *s.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.board == MAP_FAILED) {
        perror("tilefarm-runner: mmap");
        return EXIT_NO_DRIVER;
    }
    stream_open(&s.out, out_fd);
    for (size_t i = 0; i < sizeof apis / sizeof apis[0]; i++) {
        if (probe->api == NULL || strcmp(probe->api, apis[i]) == 0) {
            probe_api(&s, apis[i]);
        }
    }
    (void)munmap(s.board, sizeof *s.board);
    if (s.out.broken) {
        return EXIT_NO_READER;
    }
    if (s.profiles == 0 || s.invalid) {
        return EXIT_NO_DRIVER;
    }
    return stream_final(&s.out) ? EXIT_FINAL : EXIT_NO_READER;
}

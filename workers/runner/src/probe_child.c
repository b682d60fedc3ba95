/* Proofs and the profile record; see probe_child.h. */
#include "probe_child.h"

#include <stdio.h>
#include <string.h>

#include "child.h"
#include "driver_json.h"
#include "profile_json.h"
#include "stream.h"

/* Under TILEFARM_VALIDATE a message says nothing about the driver: it is a mistake here. */
static bool is_validation(const char *reason) {
    return strncmp(reason, "validation:", strlen("validation:")) == 0;
}

static int give_up(const struct probe_target *target, const char *reason) {
    (void)fprintf(stderr, "tilefarm-runner: %s %s: %s\n", target->backend->api,
                  target->adapter == NULL ? "" : target->adapter, reason);
    if (is_validation(reason)) {
        atomic_store(&target->board->invalid, true);
    }
    return CHILD_NO_DEVICE;
}

struct listing {
    int fd;
    bool good;
};

static void list_one(void *arg, const char *adapter) {
    struct listing *listing = arg;
    char line[256];
    int size = snprintf(line, sizeof line, "%s\n", adapter);
    listing->good = listing->good && size > 0 && (size_t)size < sizeof line &&
                    write_all(listing->fd, line, (size_t)size);
}

int probe_list_child(int fd, size_t first, void *arg) {
    const struct probe_target *target = arg;
    struct listing listing = {.fd = fd, .good = true};
    struct failure failure = {.kind = FAULT_NONE};
    (void)first;
    if (!target->backend->adapters(list_one, &listing, &failure)) {
        return give_up(target, failure.reason);
    }
    return listing.good ? CHILD_DONE : CHILD_BROKEN;
}

static struct device *open_target(const struct probe_target *target, const char *enable,
                                  struct failure *failure) {
    const struct opening opening = {.adapter = target->adapter, .enable = enable};
    return device_open(target->backend->api, &opening, target->impose, failure);
}

static bool prove_on(struct device *d, const struct proof *proof, struct probe_board *board,
                     struct failure *failure) {
    struct evidence evidence = {.subgroup = 0};
    if (!proof->prove(d, &evidence, failure)) {
        return false;
    }
    if (evidence.subgroup != 0) {
        atomic_store(&board->subgroup, evidence.subgroup);
    }
    return true;
}

/* Each proof has a device of its own, opened with nothing but what it needs: what one leaves behind
 * cannot help or hurt the next. */
static void try(const struct probe_target *target, const struct proof *proof) {
    struct probe_board *board = target->board;
    struct failure failure = {.kind = FAULT_NONE};
    atomic_store(&board->states[proof->feature], PROOF_RUNNING);
    struct device *d = open_target(target, proof->enable, &failure);
    bool good = d != NULL && prove_on(d, proof, board, &failure);
    if (d != NULL) {
        target->backend->close(d);
    }
    if (!good) {
        (void)snprintf(board->reasons[proof->feature], sizeof board->reasons[0], "%s",
                       failure.reason);
    }
    atomic_store(&board->states[proof->feature], good ? PROOF_GOOD : PROOF_FAILED);
}

static bool prove_all(const struct probe_target *target, const struct device *d, int fd,
                      size_t first) {
    for (size_t i = first; i < target->backend->proof_count; i++) {
        const struct proof *proof = &target->backend->proofs[i];
        if (proof->prove == NULL || !d->advertised.has[proof->feature] ||
            d->limits.without[proof->feature]) {
            continue;
        }
        if (!write_all(fd, ".\n", 2)) {
            return false;
        }
        try(target, proof);
    }
    return true;
}

/* The device is closed before the proofs: EGL has one display, and whoever closes a second device
 * closes the first. */
static bool begin_record(const struct probe_target *target, struct device *facts, struct json *j,
                         struct failure *failure) {
    struct device *d = open_target(target, NULL, failure);
    if (d == NULL) {
        return false;
    }
    profile_json_begin(d, j);
    *facts = *d;
    target->backend->close(d);
    return true;
}

static int end_record(const struct probe_target *target, const struct device *facts, int fd,
                      struct json *j) {
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (is_validation(target->board->reasons[i])) {
            return give_up(target, target->board->reasons[i]);
        }
    }
    profile_json_end(facts, target->board, j);
    return json_ok(j) && write_all(fd, j->data, j->size) ? CHILD_DONE : CHILD_BROKEN;
}

int probe_child(int fd, size_t first, void *arg) {
    const struct probe_target *target = arg;
    struct failure failure = {.kind = FAULT_NONE};
    struct json j = {0};
    struct device facts;
    int code = CHILD_BROKEN;
    if (!begin_record(target, &facts, &j, &failure)) {
        code = give_up(target, failure.reason);
    } else if (write_all(fd, ".\n", 2) && prove_all(target, &facts, fd, first)) {
        code = end_record(target, &facts, fd, &j);
    }
    json_free(&j);
    return code;
}

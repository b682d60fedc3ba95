/* What a shader of the fake backend does when it runs; the words are explained in fake_backend.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "clock.h"
#include "fake.h"

#define ODD_ELEMENT 5
#define NUMBERS_MAX 6

/* Whole numbers separated by single characters; gives how many. */
static size_t numbers(const char *at, unsigned long values[NUMBERS_MAX]) {
    size_t count = 0;
    while (at != NULL && count < NUMBERS_MAX) {
        char *end = NULL;
        values[count++] = strtoul(at, &end, 10);
        at = *end == ',' || *end == '/' ? end + 1 : NULL;
    }
    return count;
}

/* Spreads p of q evenly, beginning with the right ones. */
static bool strikes(unsigned n, unsigned long p, unsigned long q) {
    return n * p % q < p;
}

/* Waiting for the processor is no rest: only a sleep gives it up by itself. */
static unsigned long rest_ms(void) {
    static int64_t last_ns;
    static long last_sleeps;
    struct rusage usage;
    int64_t now = clock_ns(), before = last_ns;
    (void)getrusage(RUSAGE_SELF, &usage);
    bool slept = usage.ru_nvcsw != last_sleeps;
    last_sleeps = usage.ru_nvcsw;
    last_ns = now;
    return slept && before != 0 ? (unsigned long)((now - before) / 1000000) : 0;
}

static void put(uint8_t *out, size_t i, float value) {
    memcpy(out + 4 * i, &value, sizeof value);
}

static void compute(const char *text, const uint8_t *in, uint8_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float value;
        memcpy(&value, in + 4 * i, sizeof value);
        put(out, i, fake_says(text, "inc") ? value + 1 : 2 * value);
    }
}

static void echo(const struct fake_program *p, uint8_t *out, size_t count) {
    memset(out, 0, 4 * count);
    for (size_t i = 0; i < p->constant_count; i++) {
        put(out, i, (float)p->constants[i]);
    }
    put(out, count - 2, (float)p->subgroup);
    put(out, count - 1, (float)p->binding_count);
}

/* Adds, so that several dispatches on one buffer show what each was given. */
static void add_values(const struct fake_program *p, const struct dispatch *pass, const uint8_t *in,
                       uint8_t *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        float y;
        memcpy(&y, in + 4 * i, sizeof y);
        put(out, i, y + (i < pass->value_count ? (float)pass->values[i] : 0));
    }
    put(out, count - 1, (float)p->value_count);
}

/* Each time with other values, as a race leaves them. */
static void corrupt(const char *text, uint8_t *out) {
    const char *every = fake_option(text, "corrupt=");
    const char *block = fake_option(text, "corrupt_block=");
    const char *idle = fake_option(text, "idle_corrupt=");
    unsigned long n[NUMBERS_MAX], rest = rest_ms();
    if (every != NULL && fake.dispatches % strtoul(every, NULL, 10) == 0) {
        put(out, ODD_ELEMENT, 77);
    }
    if (block != NULL && numbers(block, n) == 6 && strikes(fake.dispatches, 23, n[5])) {
        for (size_t row = n[0]; row <= n[2]; row++) {
            for (size_t column = n[1]; column <= n[3]; column++) {
                put(out, row * n[4] + column, (float)(1000 + fake.dispatches));
            }
        }
    }
    if (idle != NULL && numbers(idle, n) == 3 && rest >= n[0] &&
        strikes(++fake.rested, n[1], n[2])) {
        put(out, ODD_ELEMENT, (float)(1000 + fake.rested));
    }
}

static void run(const struct fake_program *p, const struct dispatch *pass) {
    const struct binding *last = &pass->bindings[pass->binding_count - 1];
    uint8_t *out = fake_bytes(last->buffer) + last->offset;
    const uint8_t *in = fake_bytes(pass->bindings[0].buffer) + pass->bindings[0].offset;
    size_t count = last->size / 4;
    const char *nan = fake_option(p->text, "nan=");
    if (fake_says(p->text, "zeros")) {
        memset(out, 0, last->size);
    } else if (fake_says(p->text, "echo")) {
        echo(p, out, count);
    } else if (fake_says(p->text, "values")) {
        add_values(p, pass, in, out, count);
    } else if (!fake_says(p->text, "none")) {
        compute(p->text, in, out, fake_says(p->text, "half") ? count / 2 : count);
    }
    corrupt(p->text, out);
    if (nan != NULL) {
        put(out, strtoul(nan, NULL, 10), NAN);
    }
    if (fake_says(p->text, "guard=before")) {
        out[-1] = 0;
    }
    if (fake_says(p->text, "guard=after")) {
        out[last->size + 1023] = 0; /* the last byte of the band */
    }
}

void fake_nap(const char *text, const char *word) {
    const char *ms = fake_option(text, word);
    if (ms != NULL) {
        const struct timespec nap = {.tv_nsec = (long)strtoul(ms, NULL, 10) * 1000000};
        (void)nanosleep(&nap, NULL);
    }
}

bool fake_dispatch(const struct dispatch *pass, struct failure *failure) {
    const struct fake_program *p = (const struct fake_program *)pass->program;
    fake.dispatches++;
    fake_misfortune(p->text, "dispatch");
    fake_nap(p->text, "slow=");
    fake.lost_on_free = fake.lost_on_free || fake_says(p->text, "lost=free");
    fake.lost = fake.lost || fake_says(p->text, "lost=now");
    if (fake_is_lost(failure)) {
        return false;
    }
    run(p, pass);
    return true;
}

int64_t fake_gpu_ns(const char *text, int64_t wall_ns) {
    fake.timed++;
    if (fake_says(text, "gpu=zero")) {
        return 0;
    }
    if (fake_says(text, "gpu=stuck")) {
        return 1;
    }
    if (fake_says(text,
                  "gpu=wrap")) { /* a 32-bit counter of ns that nobody unwrapped, now and then */
        return wall_ns + (fake.timed % 4 == 0 ? INT64_C(1) << 32 : 0);
    }
    return fake_says(text, "gpu=good") ? wall_ns : -1;
}

/* GPU timestamps: every way in which two of them can fail to be a duration. */
#include <math.h>

#include "check.h"
#include "vk_time.h"

static int64_t between(uint64_t from, uint64_t to, unsigned bits, double period) {
    const struct vk_timestamp start = {from, 1}, end = {to, 1};
    return vk_time_ns(&start, &end, bits, period);
}

static void ticks_become_nanoseconds(void) {
    CHECK(between(1000, 4500, 64, 1.0) == 3500);
    CHECK(between(1000, 1100, 64, 52.083333) == 5208); /* a 19.2 MHz clock */
    CHECK(between(1, 3, 64, 0.26) == 1);               /* 0.52 ns: to the nearest */
}

static void no_valid_bits_is_no_timer(void) {
    CHECK(between(1000, 4500, 0, 1.0) == -1);
}

static void a_period_that_is_none(void) {
    CHECK(between(1000, 4500, 64, 0.0) == -1);
    CHECK(between(1000, 4500, 64, -1.0) == -1);
    CHECK(between(1000, 4500, 64, (double)NAN) == -1);
}

static void bits_beyond_the_valid_ones_are_ignored(void) {
    const uint64_t noise = UINT64_C(0xabc) << 52;
    CHECK(between(1000 | noise, 4500, 36, 1.0) == 3500);
    CHECK(between(1000, 4500 | noise, 36, 1.0) == 3500);
}

static void the_counter_wraps_around(void) {
    CHECK(between((UINT64_C(1) << 36) - 100, 200, 36, 1.0) == 300);
    CHECK(between(UINT64_MAX - 99, 200, 64, 1.0) == 300);
    CHECK(between(UINT64_MAX - 99, 200, 80, 1.0) == 300); /* more bits than there are */
}

static void zero_is_a_timestamp_that_was_never_written(void) {
    CHECK(between(0, 4500, 64, 1.0) == -1);
    CHECK(between(1000, 0, 64, 1.0) == -1);
    CHECK(between(0, 0, 64, 1.0) == -1);
    CHECK(between(UINT64_C(1) << 40, 4500, 36, 1.0) == -1); /* zero in the bits that count */
}

static void a_clock_that_stands_still_is_measured(void) {
    CHECK(between(1000, 1000, 64, 1.0) == 0);
}

static void a_result_that_is_not_available(void) {
    const struct vk_timestamp start = {1000, 1}, no_start = {1000, 0};
    const struct vk_timestamp end = {4500, 1}, no_end = {4500, 0};
    CHECK(vk_time_ns(&start, &end, 64, 1.0) == 3500);
    CHECK(vk_time_ns(&no_start, &end, 64, 1.0) == -1);
    CHECK(vk_time_ns(&start, &no_end, 64, 1.0) == -1);
}

/* End before start on a full counter would be centuries: no int64 of nanoseconds holds them. */
static void time_that_runs_backwards(void) {
    CHECK(between(4500, 1000, 64, 1.0) == -1);
}

int main(void) {
    ticks_become_nanoseconds();
    no_valid_bits_is_no_timer();
    a_period_that_is_none();
    bits_beyond_the_valid_ones_are_ignored();
    the_counter_wraps_around();
    zero_is_a_timestamp_that_was_never_written();
    a_clock_that_stands_still_is_measured();
    a_result_that_is_not_available();
    time_that_runs_backwards();
    return 0;
}

/* Arithmetic on GPU timestamps; see vk_time.h. */
#include "vk_time.h"

#include <math.h>
#include <stdbool.h>

int64_t vk_time_ns(const struct vk_timestamp *start, const struct vk_timestamp *end,
                   unsigned valid_bits, double period_ns) {
    bool has_period = isfinite(period_ns) && period_ns > 0;
    if (valid_bits == 0 || !has_period || start->available == 0 || end->available == 0) {
        return -1;
    }
    uint64_t mask = valid_bits >= 64 ? UINT64_MAX : (UINT64_C(1) << valid_bits) - 1;
    uint64_t from = start->ticks & mask, to = end->ticks & mask;
    if (from == 0 || to == 0) {
        return -1;
    }
    double ns = (double)((to - from) & mask) * period_ns;
    return ns < (double)INT64_MAX ? (int64_t)(ns + 0.5) : -1;
}

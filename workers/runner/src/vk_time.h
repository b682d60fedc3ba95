/* From two GPU timestamps to nanoseconds, with every way in which they can be worthless. */
#ifndef TILEFARM_VK_TIME_H
#define TILEFARM_VK_TIME_H

#include <stdint.h>

/* One query's result, as VK_QUERY_RESULT_64_BIT with VK_QUERY_RESULT_WITH_AVAILABILITY_BIT writes
 * it. */
struct vk_timestamp {
    uint64_t ticks, available;
};

/* Nanoseconds from start to end; -1 if that was not measured: no valid bits, no period, a result
 * that is not available, or a timestamp of zero (some drivers write none at all). Bits beyond
 * `valid_bits` (VkQueueFamilyProperties.timestampValidBits) are undefined and ignored; a counter
 * that wrapped around between the two is unwrapped once. Equal timestamps are 0 ns: measured, and
 * not to be believed without the wall clock. `period_ns` is VkPhysicalDeviceLimits.timestampPeriod.
 */
int64_t vk_time_ns(const struct vk_timestamp *start, const struct vk_timestamp *end,
                   unsigned valid_bits, double period_ns);

#endif

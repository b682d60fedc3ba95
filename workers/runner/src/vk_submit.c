/* The device's command buffer: filled, submitted, waited for. */
#include "clock.h"
#include "vk_device.h"

#define WAIT_NS UINT64_C(1000000000)

static void wait_for_all(struct vk_device *d, VkPipelineStageFlags next, VkAccessFlags access) {
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                     .dstAccessMask = access};
    d->api.CmdPipelineBarrier(d->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, next, 0, 1, &barrier,
                              0, NULL, 0, NULL);
}

bool vk_begin(struct vk_device *d, struct failure *failure) {
    const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                           .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    if (!vk_good(d->api.ResetCommandPool(d->handle, d->pool, 0), "vkResetCommandPool", failure) ||
        !vk_good(d->api.BeginCommandBuffer(d->commands, &info), "vkBeginCommandBuffer", failure)) {
        return false;
    }
    wait_for_all(d, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                 VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT);
    return true;
}

/* Sleeps in the driver: a loop that polls would steal the cores of a software driver. Never gives
 * up: the parent process holds the deadline. */
static bool wait(struct vk_device *d, struct failure *failure) {
    VkResult result = VK_TIMEOUT;
    while (result == VK_TIMEOUT) {
        result = d->api.WaitForFences(d->handle, 1, &d->fence, VK_TRUE, WAIT_NS);
    }
    return vk_good(result, "vkWaitForFences", failure);
}

bool vk_submit(struct vk_device *d, int64_t *wall_ns, struct failure *failure) {
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &d->commands};
    wait_for_all(d, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    if (!vk_good(d->api.EndCommandBuffer(d->commands), "vkEndCommandBuffer", failure) ||
        !vk_good(d->api.ResetFences(d->handle, 1, &d->fence), "vkResetFences", failure)) {
        return false;
    }
    int64_t start = clock_ns();
    if (!vk_good(d->api.QueueSubmit(d->queue, 1, &info, d->fence), "vkQueueSubmit", failure) ||
        !wait(d, failure)) {
        return false;
    }
    *wall_ns = clock_ns() - start;
    return true;
}

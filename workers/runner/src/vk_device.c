/* Opening and closing a Vulkan device. */
#include "vk_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "vk.h"

static bool choose(struct vk_device *d, const char *name, struct failure *failure) {
    for (size_t i = 0; i < d->adapters.count; i++) {
        if (name == NULL || *name == '\0' || strcmp(name, d->adapters.list[i].name) == 0) {
            d->adapter = &d->adapters.list[i];
            return true;
        }
    }
    return fail(failure, FAULT_DRIVER, "no Vulkan adapter \"%.100s\" here; `probe` lists them",
                name);
}

static void read_memory(struct vk_device *d) {
    VkPhysicalDeviceType type = d->adapter->properties.deviceType;
    d->staged =
        type != VK_PHYSICAL_DEVICE_TYPE_CPU && type != VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    d->instance.api.GetPhysicalDeviceMemoryProperties(d->adapter->handle, &d->memory);
}

/* Robust buffer access stays off: it costs time, and hides the stray writes that guard bands find.
 */
static bool create(struct vk_device *d, const char *enable, struct failure *failure) {
    struct vk_enabling enabling;
    const float priority = 1;
    if (!vk_features_enable(d, enable, &enabling, failure)) {
        return false;
    }
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = d->adapter->family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = &enabling.features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = enabling.extension_count,
                                     .ppEnabledExtensionNames = enabling.extensions};
    if (!vk_good(d->instance.api.CreateDevice(d->adapter->handle, &info, NULL, &d->handle),
                 "vkCreateDevice", failure) ||
        !vk_load_device(&d->instance.api, d->handle, &d->api, failure)) {
        return false;
    }
    d->api.GetDeviceQueue(d->handle, d->adapter->family, 0, &d->queue);
    return true;
}

static bool create_commands(struct vk_device *d, struct failure *failure) {
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = d->adapter->family};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const VkQueryPoolCreateInfo queries = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                           .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                           .queryCount = 2};
    if (!vk_good(d->api.CreateCommandPool(d->handle, &pool, NULL, &d->pool), "vkCreateCommandPool",
                 failure) ||
        !vk_good(d->api.CreateFence(d->handle, &fence, NULL, &d->fence), "vkCreateFence",
                 failure)) {
        return false;
    }
    const VkCommandBufferAllocateInfo buffer = {.sType =
                                                    VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                .commandPool = d->pool,
                                                .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                .commandBufferCount = 1};
    return vk_good(d->api.AllocateCommandBuffers(d->handle, &buffer, &d->commands),
                   "vkAllocateCommandBuffers", failure) &&
           (d->base.timer_bits == 0 ||
            vk_good(d->api.CreateQueryPool(d->handle, &queries, NULL, &d->queries),
                    "vkCreateQueryPool", failure));
}

static bool open_device(struct vk_device *d, const struct opening *opening,
                        struct failure *failure) {
    if (!vk_instance_open(&d->instance, failure) ||
        !vk_adapters_list(&d->instance, &d->adapters, failure) ||
        !choose(d, opening->adapter, failure)) {
        return false;
    }
    vk_features_read(d);
    read_memory(d);
    if (!vk_facts_read(d, failure) || !create(d, opening->enable, failure) ||
        !create_commands(d, failure)) {
        return false;
    }
    vk_library(d, d->base.driver.library, sizeof d->base.driver.library);
    return true;
}

struct device *vk_open(const struct opening *opening, struct failure *failure) {
    struct vk_device *d = calloc(1, sizeof *d);
    if (d == NULL) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        return NULL;
    }
    d->base.backend = &vk_backend;
    bool good = open_device(d, opening, failure);
    if (!vk_validation_silent(&d->instance.messages, failure) || !good) {
        vk_close(&d->base);
        return NULL;
    }
    return &d->base;
}

static void destroy_device(struct vk_device *d) {
    if (d->api.DestroyDevice == NULL) {
        return; /* it was never created, or offers not even that */
    }
    if (d->api.WaitForFences == NULL) { /* a driver that lacks functions: nothing was made on it */
        d->api.DestroyDevice(d->handle, NULL);
        return;
    }
    (void)d->api.DeviceWaitIdle(d->handle); /* fails where the device is lost; nothing waits then */
    vk_buffer_drop(d, &d->staging);
    d->api.DestroyDescriptorPool(d->handle, d->sets, NULL);
    d->api.DestroyQueryPool(d->handle, d->queries, NULL);
    d->api.DestroyFence(d->handle, d->fence, NULL);
    d->api.DestroyCommandPool(d->handle, d->pool, NULL);
    d->api.DestroyDevice(d->handle, NULL);
}

void vk_close(struct device *device) {
    struct vk_device *d = vk_of(device);
    struct failure failure = {.kind = FAULT_NONE};
    destroy_device(d);
    vk_adapters_free(&d->adapters);
    vk_instance_close(&d->instance);
    bool silent = vk_validation_silent(&d->instance.messages, &failure);
    free(d);
    if (!silent) { /* closing returns nothing, and every case may have its end record by now */
        (void)fprintf(stderr, "tilefarm-runner: closing: %s\n", failure.reason);
        _exit(CHILD_INVALID);
    }
}

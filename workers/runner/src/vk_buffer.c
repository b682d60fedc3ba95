/* Buffers of the Vulkan backend, each with memory of its own. */
#include <inttypes.h>
#include <stdlib.h>

#include "vk_device.h"

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define MAPPED (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define NONE UINT32_MAX

/* The first type with all those flags and none that needs a feature (protected, lazily allocated,
 * device coherent). */
static uint32_t find_type(const struct vk_device *d, uint32_t allowed,
                          VkMemoryPropertyFlags flags) {
    for (uint32_t i = 0; i < d->memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags have = d->memory.memoryTypes[i].propertyFlags;
        if ((allowed >> i & 1u) != 0 && (have & flags) == flags &&
            (have & ~(VkMemoryPropertyFlags)(LOCAL | MAPPED | CACHED)) == 0) {
            return i;
        }
    }
    return NONE;
}

/* Mapped memory is always coherent: every device has such a type. The processor reads results from
 * it, so a cached type is worth more than a local one; where the GPU shares the processor's memory
 * there is no difference between those. */
static uint32_t choose_type(const struct vk_device *d, uint32_t allowed, bool mapped) {
    static const VkMemoryPropertyFlags wanted[2][4] = {
        {LOCAL, 0, 0, 0},
        {LOCAL | MAPPED | CACHED, MAPPED | CACHED, LOCAL | MAPPED, MAPPED},
    };
    uint32_t type = NONE;
    for (int i = 0; type == NONE && i < 4; i++) {
        type = find_type(d, allowed, wanted[mapped ? 1 : 0][i]);
    }
    return type;
}

/* However much memory is free: the driver never gives more in one piece. */
static bool too_large(const struct vk_device *d, uint64_t size, struct failure *failure) {
    return fail(failure, FAULT_UNSUPPORTED, "allocation_bytes %" PRIu64 " > %" PRIu64, size,
                d->allocation_max);
}

static bool allocate(struct vk_device *d, struct vk_buffer *b, bool mapped,
                     struct failure *failure) {
    VkMemoryRequirements needs;
    d->api.GetBufferMemoryRequirements(d->handle, b->handle, &needs);
    uint32_t type = choose_type(d, needs.memoryTypeBits, mapped);
    if (type == NONE) {
        return fail(failure, FAULT_DRIVER, "the driver has no memory for a buffer");
    }
    const VkMemoryType *memory = &d->memory.memoryTypes[type];
    if (needs.size > d->allocation_max) {
        return too_large(d, needs.size, failure);
    }
    if (needs.size > d->memory.memoryHeaps[memory->heapIndex].size) {
        return fail(failure, FAULT_MEMORY, "a buffer of %" PRIu64 " bytes: out of memory",
                    (uint64_t)needs.size);
    }
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = needs.size,
                                       .memoryTypeIndex = type};
    return vk_good(d->api.AllocateMemory(d->handle, &info, NULL, &b->memory), "vkAllocateMemory",
                   failure) &&
           vk_good(d->api.BindBufferMemory(d->handle, b->handle, b->memory, 0),
                   "vkBindBufferMemory", failure) &&
           (!mapped ||
            vk_good(d->api.MapMemory(d->handle, b->memory, 0, VK_WHOLE_SIZE, 0, &b->mapped),
                    "vkMapMemory", failure));
}

bool vk_buffer_make(struct vk_device *d, struct vk_buffer *b, size_t size, bool mapped,
                    struct failure *failure) {
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    *b = (struct vk_buffer){.base = {.size = size}};
    if (size > d->allocation_max) {
        return too_large(d, size, failure);
    }
    if (!vk_good(d->api.CreateBuffer(d->handle, &info, NULL, &b->handle), "vkCreateBuffer",
                 failure) ||
        !allocate(d, b, mapped, failure)) {
        vk_buffer_drop(d, b);
        return false;
    }
    return true;
}

void vk_buffer_drop(struct vk_device *d, struct vk_buffer *b) {
    d->api.DestroyBuffer(d->handle, b->handle, NULL);
    d->api.FreeMemory(d->handle, b->memory, NULL); /* unmaps it */
    *b = (struct vk_buffer){.mapped = NULL};
}

struct gpu_buffer *vk_buffer_new(struct device *device, size_t size, struct failure *failure) {
    struct vk_device *d = vk_of(device);
    struct vk_buffer *b = calloc(1, sizeof *b);
    if (b == NULL) {
        (void)fail(failure, FAULT_MEMORY, "out of memory");
        return NULL;
    }
    if (!vk_buffer_make(d, b, size, !d->staged, failure)) {
        free(b);
        return NULL;
    }
    return &b->base;
}

void vk_buffer_free(struct device *device, struct gpu_buffer *buffer) {
    vk_buffer_drop(vk_of(device), (struct vk_buffer *)buffer);
    free(buffer);
}

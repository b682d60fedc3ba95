/* Moving bytes between the host and buffers: directly where the processor reaches them, else by
 * copies through a staging buffer. Kernels never pay for it: their buffers lie in the GPU's own
 * memory where it has any. */
#include <string.h>

#include "vk_device.h"

#define CHUNK ((size_t)64 << 20) /* bytes of one upload */

static bool reserve(struct vk_device *d, size_t size, struct failure *failure) {
    if (d->staging_taken) {
        return fail(failure, FAULT_DRIVER, "a buffer is still mapped");
    }
    if (d->staging.base.size >= size) {
        return true;
    }
    vk_buffer_drop(d, &d->staging);
    return vk_buffer_make(d, &d->staging, size, true, failure);
}

static bool copy(struct vk_device *d, VkBuffer from, size_t from_offset, VkBuffer to,
                 size_t to_offset, size_t size, struct failure *failure) {
    const VkBufferCopy region = {.srcOffset = from_offset, .dstOffset = to_offset, .size = size};
    int64_t wall_ns = 0;
    if (!vk_begin(d, failure)) {
        return false;
    }
    d->api.CmdCopyBuffer(d->commands, from, to, 1, &region);
    return vk_submit(d, &wall_ns, failure);
}

static bool upload(struct vk_device *d, const struct vk_buffer *b, size_t offset,
                   const unsigned char *data, size_t size, struct failure *failure) {
    if (!reserve(d, size < CHUNK ? size : CHUNK, failure)) {
        return false;
    }
    for (size_t done = 0; done < size;) {
        size_t part = size - done < CHUNK ? size - done : CHUNK;
        memcpy(d->staging.mapped, data + done, part);
        if (!copy(d, d->staging.handle, 0, b->handle, offset + done, part, failure)) {
            return false;
        }
        done += part;
    }
    return true;
}

bool vk_write(struct device *device, struct gpu_buffer *buffer, size_t offset, const void *data,
              size_t size, struct failure *failure) {
    const struct vk_buffer *b = (const struct vk_buffer *)buffer;
    if (b->mapped == NULL) {
        return upload(vk_of(device), b, offset, data, size, failure);
    }
    memcpy((unsigned char *)b->mapped + offset, data, size);
    return true;
}

bool vk_fill(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
             uint32_t pattern, struct failure *failure) {
    struct vk_device *d = vk_of(device);
    int64_t wall_ns = 0;
    if (!vk_begin(d, failure)) {
        return false;
    }
    d->api.CmdFillBuffer(d->commands, ((struct vk_buffer *)buffer)->handle, offset, size, pattern);
    return vk_submit(d, &wall_ns, failure);
}

const void *vk_map(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
                   struct failure *failure) {
    struct vk_device *d = vk_of(device);
    const struct vk_buffer *b = (const struct vk_buffer *)buffer;
    if (b->mapped != NULL) {
        return (const unsigned char *)b->mapped + offset;
    }
    if (!reserve(d, size, failure) ||
        !copy(d, b->handle, offset, d->staging.handle, 0, size, failure)) {
        return NULL;
    }
    d->staging_taken = true;
    return d->staging.mapped;
}

bool vk_unmap(struct device *device, struct gpu_buffer *buffer, struct failure *failure) {
    (void)failure;
    if (((struct vk_buffer *)buffer)->mapped == NULL) {
        vk_of(device)->staging_taken = false;
    }
    return true;
}

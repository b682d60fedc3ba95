/* What the files of the Vulkan backend share. Each handle has one owner, named here. */
#ifndef TILEFARM_VK_DEVICE_H
#define TILEFARM_VK_DEVICE_H

#include "vk_instance.h"

struct vk_buffer {
    struct gpu_buffer base;
    VkBuffer handle;
    VkDeviceMemory memory;
    void *mapped; /* for as long as the buffer lives; NULL where only the GPU reaches it */
};

struct vk_program {
    struct program base;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    size_t binding_count;
    uint64_t uniforms;  /* as in struct spirv_facts */
    size_t value_count; /* words of push constants */
};

struct vk_device {
    struct device base;
    struct vk_instance instance;
    struct vk_adapters adapters;
    const struct vk_adapter *adapter; /* one of those */
    struct features enabled;
    uint32_t subgroups_max; /* in a work group whose subgroup size is asked for */
    bool full_subgroups;    /* the GPU can be made to fill every subgroup of a work group */
    VkSubgroupFeatureFlags subgroup_operations; /* in compute shaders */
    uint64_t allocation_max;
    VkPhysicalDeviceMemoryProperties memory;
    bool staged; /* the GPU has memory of its own: buffers are reached by copies */
    VkDevice handle;
    struct vk_device_api api;
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkFence fence;
    VkQueryPool queries; /* two timestamps; VK_NULL_HANDLE without a timer */
    VkDescriptorPool sets;
    uint32_t sets_room, descriptors_room;
    struct vk_buffer staging; /* grows with what is copied */
    bool staging_taken;       /* somebody reads a mapping of it */
};

static inline struct vk_device *vk_of(struct device *device) {
    return (struct vk_device *)device; /* base is the first member */
}

/* vk_device.c */
struct device *vk_open(const struct opening *opening, struct failure *failure);
void vk_close(struct device *device);

/* vk_features.c: what the adapter claims, and the structures that switch features on. */
struct vk_enabling {
    VkPhysicalDeviceFeatures2 features; /* the head of the chain for VkDeviceCreateInfo.pNext */
    VkPhysicalDevice16BitStorageFeatures storage16;
    VkPhysicalDeviceShaderFloat16Int8Features float16;
    VkPhysicalDeviceSubgroupSizeControlFeatures size_control;
    VkPhysicalDeviceVulkanMemoryModelFeatures memory_model;
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix;
    const char *extensions[8];
    uint32_t extension_count;
};
void vk_features_read(struct vk_device *d);
/* Fails with FAULT_UNSUPPORTED at a feature that is not offered. The result must not move. */
bool vk_features_enable(struct vk_device *d, const char *list, struct vk_enabling *enabling,
                        struct failure *failure);

/* vk_facts.c: limits, driver, subgroups, float controls, matrices. */
bool vk_facts_read(struct vk_device *d, struct failure *failure);

/* vk_library.c: the file that holds the device's functions. */
void vk_library(const struct vk_device *d, char *path, size_t room);

/* vk_buffer.c */
bool vk_buffer_make(struct vk_device *d, struct vk_buffer *buffer, size_t size, bool mapped,
                    struct failure *failure);
void vk_buffer_drop(struct vk_device *d, struct vk_buffer *buffer);
struct gpu_buffer *vk_buffer_new(struct device *device, size_t size, struct failure *failure);
void vk_buffer_free(struct device *device, struct gpu_buffer *buffer);

/* vk_transfer.c */
bool vk_write(struct device *device, struct gpu_buffer *buffer, size_t offset, const void *data,
              size_t size, struct failure *failure);
bool vk_fill(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
             uint32_t pattern, struct failure *failure);
const void *vk_map(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
                   struct failure *failure);
bool vk_unmap(struct device *device, struct gpu_buffer *buffer, struct failure *failure);

/* vk_program.c */
struct program *vk_compile(struct device *device, const struct shader *shader, struct log *log,
                           struct failure *failure);
void vk_program_free(struct device *device, struct program *program);

/* vk_submit.c: the device's one command buffer. Begin empties it and waits, on the GPU, for all
 * that was submitted before; submit makes what it wrote visible to the host and blocks, without
 * spinning and without an end, until it is complete. */
bool vk_begin(struct vk_device *d, struct failure *failure);
bool vk_submit(struct vk_device *d, int64_t *wall_ns, struct failure *failure);

/* vk_dispatch.c */
bool vk_run(struct device *device, const struct sequence *sequence, unsigned times, bool gpu_timer,
            struct elapsed *elapsed, struct failure *failure);

/* vk_proofs.c */
#define VK_PROOFS 13
extern const struct proof vk_proofs[VK_PROOFS];

#endif

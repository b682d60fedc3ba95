/* A Vulkan instance, its GPUs under stable names, and the validation layer's messages. */
#ifndef TILEFARM_VK_INSTANCE_H
#define TILEFARM_VK_INSTANCE_H

#include "vk_api.h"

#define VK_ADAPTERS_MAX 32

/* What the validation layer said since somebody asked. */
struct vk_messages {
    char first[240];
    unsigned count;
};

struct vk_instance {
    struct vk_loader loader;
    struct vk_instance_api api;
    VkInstance handle;
    VkDebugUtilsMessengerEXT messenger; /* VK_NULL_HANDLE unless TILEFARM_VALIDATE is set */
    struct vk_messages messages;
    uint32_t layer_version; /* Vulkan version that the validation layer knows; 0 without it */
};

struct vk_adapter {
    VkPhysicalDevice handle;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceIDProperties ids;
    VkPhysicalDeviceDriverProperties driver; /* driverID 0 where the driver has none */
    uint32_t family;                         /* of queues, with compute */
    uint32_t timer_bits;                     /* of that family */
    VkExtensionProperties *extensions;
    uint32_t extension_count;
    char name[80]; /* DRIVER_ID-DEVICE_UUID, with -2, -3, … from the second of that name on */
};

struct vk_adapters {
    struct vk_adapter list[VK_ADAPTERS_MAX];
    size_t count;
};

/* The instance must not move while it is open: the layer holds a pointer into it. What was opened
 * before an error is closed by vk_instance_close. */
bool vk_instance_open(struct vk_instance *instance, struct failure *failure);
void vk_instance_close(struct vk_instance *instance);

/* All GPUs that can compute, in the loader's order. Those that cannot be used (Vulkan 1.0, no
 * compute queue) are named on stderr. */
bool vk_adapters_list(const struct vk_instance *instance, struct vk_adapters *adapters,
                      struct failure *failure);
void vk_adapters_free(struct vk_adapters *adapters);
bool vk_adapter_has(const struct vk_adapter *adapter, const char *extension);
/* True if the adapter's Vulkan has it in its core since `version`, or as an extension. */
bool vk_adapter_offers(const struct vk_adapter *adapter, uint32_t version, const char *extension);

/* vk_validation.c */
bool vk_validation_wanted(void);
/* Layer and extension names to open the instance with, and the structures to chain to its creation;
 * fails if the layer is not installed. */
struct vk_validation {
    VkDebugUtilsMessengerCreateInfoEXT messenger;
    VkValidationFeaturesEXT features;
    VkValidationFeatureEnableEXT enabled[1];
    const char *layers[1];
    const char *extensions[2];
};
bool vk_validation_prepare(struct vk_instance *instance, struct vk_validation *validation,
                           struct failure *failure);
/* True if the layer has said nothing since the last call; else *failure is its first message. */
bool vk_validation_silent(struct vk_messages *messages, struct failure *failure);

#endif

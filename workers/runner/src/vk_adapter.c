/* The GPUs of an instance; see vk_instance.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vk_instance.h"

#define FAMILIES_MAX 32

bool vk_adapter_has(const struct vk_adapter *adapter, const char *extension) {
    for (uint32_t i = 0; i < adapter->extension_count; i++) {
        if (strcmp(adapter->extensions[i].extensionName, extension) == 0) {
            return true;
        }
    }
    return false;
}

bool vk_adapter_offers(const struct vk_adapter *adapter, uint32_t version, const char *extension) {
    return adapter->properties.apiVersion >= version || vk_adapter_has(adapter, extension);
}

/* The first family with compute; one whose clock can be read before one that has none. */
static bool find_family(const struct vk_instance *instance, struct vk_adapter *adapter) {
    VkQueueFamilyProperties families[FAMILIES_MAX];
    uint32_t count = FAMILIES_MAX;
    bool found = false;
    instance->api.GetPhysicalDeviceQueueFamilyProperties(adapter->handle, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        bool computes = (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
        if (computes && (!found || (adapter->timer_bits == 0 && families[i].timestampValidBits))) {
            adapter->family = i;
            adapter->timer_bits = families[i].timestampValidBits;
            found = true;
        }
    }
    return found;
}

static bool read_extensions(const struct vk_instance *instance, struct vk_adapter *adapter,
                            struct failure *failure) {
    uint32_t count = 0;
    if (!vk_good(
            instance->api.EnumerateDeviceExtensionProperties(adapter->handle, NULL, &count, NULL),
            "vkEnumerateDeviceExtensionProperties", failure)) {
        return false;
    }
    adapter->extensions = calloc(count + 1, sizeof *adapter->extensions);
    if (adapter->extensions == NULL) {
        return fail(failure, FAULT_MEMORY, "out of memory");
    }
    adapter->extension_count = count;
    return vk_good(instance->api.EnumerateDeviceExtensionProperties(
                       adapter->handle, NULL, &adapter->extension_count, adapter->extensions),
                   "vkEnumerateDeviceExtensionProperties", failure);
}

static void read_identity(const struct vk_instance *instance, struct vk_adapter *adapter) {
    adapter->driver = (VkPhysicalDeviceDriverProperties){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    adapter->ids =
        (VkPhysicalDeviceIDProperties){.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &adapter->ids};
    if (vk_adapter_offers(adapter, VK_API_VERSION_1_2, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)) {
        adapter->ids.pNext = &adapter->driver;
    }
    instance->api.GetPhysicalDeviceProperties2(adapter->handle, &properties);
    adapter->ids.pNext = NULL;
}

static void name_adapter(const struct vk_adapters *adapters, struct vk_adapter *adapter) {
    char uuid[2 * VK_UUID_SIZE + 1];
    size_t same = 1, size = 0;
    for (size_t i = 0; i < VK_UUID_SIZE; i++) {
        (void)snprintf(uuid + 2 * i, 3, "%02x", adapter->ids.deviceUUID[i]);
    }
    size = (size_t)snprintf(adapter->name, sizeof adapter->name, "%d-%s",
                            (int)adapter->driver.driverID, uuid);
    for (size_t i = 0; i < adapters->count; i++) {
        same += strncmp(adapters->list[i].name, adapter->name, size) == 0 ? 1 : 0;
    }
    if (same > 1) {
        (void)snprintf(adapter->name + size, sizeof adapter->name - size, "-%zu", same);
    }
}

/* False only for an error; an adapter that is of no use is left out. */
static bool add(const struct vk_instance *instance, VkPhysicalDevice handle,
                struct vk_adapters *adapters, struct failure *failure) {
    struct vk_adapter *adapter = &adapters->list[adapters->count];
    *adapter = (struct vk_adapter){.handle = handle};
    instance->api.GetPhysicalDeviceProperties(handle, &adapter->properties);
    uint32_t version = adapter->properties.apiVersion;
    if (version < VK_API_VERSION_1_1) {
        (void)fprintf(stderr,
                      "tilefarm-runner: vulkan: \"%s\" cannot be used: it has Vulkan %" PRIu32
                      ".%" PRIu32 ", 1.1 is needed\n",
                      adapter->properties.deviceName, VK_API_VERSION_MAJOR(version),
                      VK_API_VERSION_MINOR(version));
        return true;
    }
    if (!find_family(instance, adapter)) {
        (void)fprintf(stderr,
                      "tilefarm-runner: vulkan: \"%s\" cannot be used: it has no compute queue\n",
                      adapter->properties.deviceName);
        return true;
    }
    if (!read_extensions(instance, adapter, failure)) {
        free(adapter->extensions);
        return false;
    }
    read_identity(instance, adapter);
    name_adapter(adapters, adapter);
    adapters->count++;
    return true;
}

bool vk_adapters_list(const struct vk_instance *instance, struct vk_adapters *adapters,
                      struct failure *failure) {
    VkPhysicalDevice handles[VK_ADAPTERS_MAX];
    uint32_t count = VK_ADAPTERS_MAX;
    adapters->count = 0;
    if (!vk_good(instance->api.EnumeratePhysicalDevices(instance->handle, &count, handles),
                 "vkEnumeratePhysicalDevices", failure)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!add(instance, handles[i], adapters, failure)) {
            vk_adapters_free(adapters);
            return false;
        }
    }
    return adapters->count > 0 || fail(failure, FAULT_DRIVER, "no GPU that can compute");
}

void vk_adapters_free(struct vk_adapters *adapters) {
    for (size_t i = 0; i < adapters->count; i++) {
        free(adapters->list[i].extensions);
        adapters->list[i].extensions = NULL;
    }
    adapters->count = 0;
}

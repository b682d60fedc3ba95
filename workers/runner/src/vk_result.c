/* What a VkResult means for a case. */
#include "vk_api.h"

const char *vk_result_name(VkResult result) {
    switch (result) {
#define NAME(name)                                                                                 \
    case name:                                                                                     \
        return #name;
        NAME(VK_SUCCESS)
        NAME(VK_NOT_READY)
        NAME(VK_TIMEOUT)
        NAME(VK_INCOMPLETE)
        NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
        NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
        NAME(VK_ERROR_INITIALIZATION_FAILED)
        NAME(VK_ERROR_DEVICE_LOST)
        NAME(VK_ERROR_MEMORY_MAP_FAILED)
        NAME(VK_ERROR_LAYER_NOT_PRESENT)
        NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
        NAME(VK_ERROR_FEATURE_NOT_PRESENT)
        NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
        NAME(VK_ERROR_TOO_MANY_OBJECTS)
        NAME(VK_ERROR_FRAGMENTED_POOL)
        NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
        NAME(VK_ERROR_FRAGMENTATION)
        NAME(VK_ERROR_INVALID_SHADER_NV)
        NAME(VK_ERROR_UNKNOWN)
#undef NAME
    default:
        return "unknown VkResult";
    }
}

bool vk_good(VkResult result, const char *call, struct failure *failure) {
    if (result >= 0) {
        return true;
    }
    enum fault kind = FAULT_DRIVER;
    if (result == VK_ERROR_DEVICE_LOST) {
        kind = FAULT_LOST;
    }
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
        result == VK_ERROR_OUT_OF_POOL_MEMORY) {
        kind = FAULT_MEMORY;
    }
    return fail(failure, kind, "%s: %s (%d)", call, vk_result_name(result), (int)result);
}

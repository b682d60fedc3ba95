/* Opening a Vulkan instance; see vk_instance.h. */
#include "vk_instance.h"

#include <string.h>

#include "version.h"

/* The loader must be of Vulkan 1.1; it then takes any version, and each GPU says what it has. */
static bool check_version(const struct vk_loader *loader, struct failure *failure) {
    uint32_t version = VK_API_VERSION_1_0;
    if (loader->EnumerateInstanceVersion != NULL &&
        !vk_good(loader->EnumerateInstanceVersion(&version), "vkEnumerateInstanceVersion",
                 failure)) {
        return false;
    }
    return version >= VK_API_VERSION_1_1 ||
           fail(failure, FAULT_DRIVER, "the Vulkan loader is of version 1.0, 1.1 is needed");
}

static bool create(struct vk_instance *instance, struct failure *failure) {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pApplicationName = "tilefarm-runner " RUNNER_VERSION,
                                           .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application};
    struct vk_validation validation;
    bool validate = vk_validation_wanted();
    if (validate) {
        if (!vk_validation_prepare(instance, &validation, failure)) {
            return false;
        }
        validation.features.pNext = &validation.messenger; /* for creation and destruction itself */
        info.pNext = &validation.features;
        info.enabledLayerCount = 1;
        info.ppEnabledLayerNames = validation.layers;
        info.enabledExtensionCount = 2;
        info.ppEnabledExtensionNames = validation.extensions;
    }
    if (!vk_good(instance->loader.CreateInstance(&info, NULL, &instance->handle),
                 "vkCreateInstance", failure) ||
        !vk_load_instance(&instance->loader, instance->handle, &instance->api, failure)) {
        return false;
    }
    if (!validate) {
        return true;
    }
    if (instance->api.CreateDebugUtilsMessengerEXT == NULL ||
        instance->api.DestroyDebugUtilsMessengerEXT == NULL) {
        return fail(failure, FAULT_DRIVER, "the Vulkan loader has no VK_EXT_debug_utils");
    }
    return vk_good(instance->api.CreateDebugUtilsMessengerEXT(
                       instance->handle, &validation.messenger, NULL, &instance->messenger),
                   "vkCreateDebugUtilsMessengerEXT", failure);
}

bool vk_instance_open(struct vk_instance *instance, struct failure *failure) {
    memset(instance, 0, sizeof *instance);
    return vk_load(&instance->loader, failure) && check_version(&instance->loader, failure) &&
           create(instance, failure) && vk_validation_silent(&instance->messages, failure);
}

void vk_instance_close(struct vk_instance *instance) {
    if (instance->messenger != VK_NULL_HANDLE) {
        instance->api.DestroyDebugUtilsMessengerEXT(instance->handle, instance->messenger, NULL);
    }
    if (instance->handle != VK_NULL_HANDLE && instance->api.DestroyInstance != NULL) {
        instance->api.DestroyInstance(instance->handle, NULL);
    }
    instance->messenger = VK_NULL_HANDLE;
    instance->handle = VK_NULL_HANDLE;
}

/* Resolves Vulkan at run time; see vk_api.h. */
#include "vk_api.h"

#include <dlfcn.h>
#include <string.h>

/* ISO C has no cast from an object pointer to a function pointer; POSIX promises that the bits
 * agree. */
static void set(void *slot, void *address) {
    memcpy(slot, &address, sizeof address);
}

bool vk_load(struct vk_loader *loader, struct failure *failure) {
    static const char *const names[] = {"libvulkan.so.1", "libvulkan.so"};
    void *library = NULL;
    memset(loader, 0, sizeof *loader);
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof names[0]; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        return fail(failure, FAULT_DRIVER, "dlopen: %s", dlerror());
    }
    set(&loader->GetInstanceProcAddr, dlsym(library, "vkGetInstanceProcAddr"));
    if (loader->GetInstanceProcAddr == NULL) {
        return fail(failure, FAULT_DRIVER, "libvulkan has no vkGetInstanceProcAddr");
    }
    loader->EnumerateInstanceVersion = (PFN_vkEnumerateInstanceVersion)loader->GetInstanceProcAddr(
        NULL, "vkEnumerateInstanceVersion");
#define LOAD(name)                                                                                 \
    loader->name = (PFN_vk##name)loader->GetInstanceProcAddr(NULL, "vk" #name);                    \
    if (loader->name == NULL) {                                                                    \
        return fail(failure, FAULT_DRIVER, "libvulkan has no vk" #name);                           \
    }
    VK_LOADER_FUNCTIONS(LOAD)
#undef LOAD
    return true;
}

bool vk_load_instance(const struct vk_loader *loader, VkInstance instance,
                      struct vk_instance_api *api, struct failure *failure) {
    memset(api, 0, sizeof *api);
#define LOAD(name) api->name = (PFN_vk##name)loader->GetInstanceProcAddr(instance, "vk" #name);
    VK_INSTANCE_FUNCTIONS(LOAD)
    VK_INSTANCE_EXTRA(LOAD)
#undef LOAD
#define CHECK(name)                                                                                \
    if (api->name == NULL) {                                                                       \
        return fail(failure, FAULT_DRIVER, "the Vulkan loader has no vk" #name);                   \
    }
    VK_INSTANCE_FUNCTIONS(CHECK)
#undef CHECK
    return true;
}

bool vk_load_device(const struct vk_instance_api *instance, VkDevice device,
                    struct vk_device_api *api, struct failure *failure) {
    memset(api, 0, sizeof *api);
#define LOAD(name)                                                                                 \
    api->name = (PFN_vk##name)instance->GetDeviceProcAddr(device, "vk" #name);                     \
    if (api->name == NULL) {                                                                       \
        return fail(failure, FAULT_DRIVER, "the driver has no vk" #name);                          \
    }
    VK_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
    return true;
}

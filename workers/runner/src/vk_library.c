/* Which file on this system holds the functions of a Vulkan device. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library_path.h"
#include "vk_device.h"

/* Parts of file names, by driver. */
static const struct {
    VkDriverId id;
    const char *parts[4];
} drivers[] = {
    {VK_DRIVER_ID_ARM_PROPRIETARY, {"vulkan.mali", "libGLES_mali"}},
    {VK_DRIVER_ID_GOOGLE_SWIFTSHADER, {"libvk_swiftshader", "vulkan.pastel"}},
    {VK_DRIVER_ID_IMAGINATION_PROPRIETARY, {"vulkan.powervr", "libVK_IMG"}},
    {VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA, {"libvulkan_intel"}},
    {VK_DRIVER_ID_MESA_LLVMPIPE, {"libvulkan_lvp"}},
    {VK_DRIVER_ID_MESA_PANVK, {"libvulkan_panfrost"}},
    {VK_DRIVER_ID_MESA_RADV, {"libvulkan_radeon"}},
    {VK_DRIVER_ID_MESA_TURNIP, {"libvulkan_freedreno", "vulkan.turnip", "vulkan.freedreno"}},
    {VK_DRIVER_ID_MESA_V3DV, {"libvulkan_broadcom"}},
    {VK_DRIVER_ID_NVIDIA_PROPRIETARY, {"libnvidia-eglcore", "libnvidia-glcore", "libGLX_nvidia"}},
    {VK_DRIVER_ID_QUALCOMM_PROPRIETARY, {"vulkan.adreno", "vulkan.msm"}},
    {VK_DRIVER_ID_SAMSUNG_PROPRIETARY, {"vulkan.samsung", "libvulkan_xclipse"}},
};

static bool is_between(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    return strncmp(name, "libvulkan.so", strlen("libvulkan.so")) == 0 ||
           strncmp(name, "libVkLayer", strlen("libVkLayer")) == 0;
}

/* A device function leads straight into the driver, unless a layer stands between (validation):
 * then the driver is found by its name among the files of this process. */
void vk_library(const struct vk_device *d, char *path, size_t room) {
    Dl_info info = {.dli_fname = NULL};
    void *address = NULL;
    memcpy(&address, &d->api.QueueSubmit, sizeof address);
    path[0] = '\0';
    if (dladdr(address, &info) != 0 && info.dli_fname != NULL && !is_between(info.dli_fname)) {
        char *plain = realpath(info.dli_fname, NULL); /* loaders write …/chromium/./lib… */
        (void)snprintf(path, room, "%s", plain == NULL ? info.dli_fname : plain);
        free(plain);
        return;
    }
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        if (drivers[i].id == d->adapter->driver.driverID) {
            library_path_named(drivers[i].parts, path, room);
        }
    }
}

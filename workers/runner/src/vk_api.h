/* Vulkan entry points, resolved at run time: nothing is linked. */
#ifndef TILEFARM_VK_API_H
#define TILEFARM_VK_API_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <stdbool.h>

#include "backend.h"
#include "vk_matrix_types.h"

/* names without vk */
#define VK_LOADER_FUNCTIONS(X)                                                                     \
    X(CreateInstance)                                                                              \
    X(EnumerateInstanceLayerProperties)

#define VK_INSTANCE_FUNCTIONS(X)                                                                   \
    X(DestroyInstance)                                                                             \
    X(EnumeratePhysicalDevices)                                                                    \
    X(GetPhysicalDeviceProperties)                                                                 \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceFeatures2)                                                                  \
    X(GetPhysicalDeviceMemoryProperties)                                                           \
    X(GetPhysicalDeviceQueueFamilyProperties)                                                      \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(CreateDevice)                                                                                \
    X(GetDeviceProcAddr)

/* of extensions; NULL where the loader lacks them */
#define VK_INSTANCE_EXTRA(X)                                                                       \
    X(CreateDebugUtilsMessengerEXT)                                                                \
    X(DestroyDebugUtilsMessengerEXT)                                                               \
    X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)

#define VK_DEVICE_FUNCTIONS(X)                                                                     \
    X(DestroyDevice)                                                                               \
    X(DeviceWaitIdle)                                                                              \
    X(GetDeviceQueue)                                                                              \
    X(QueueSubmit)                                                                                 \
    X(AllocateMemory)                                                                              \
    X(FreeMemory)                                                                                  \
    X(MapMemory)                                                                                   \
    X(CreateBuffer)                                                                                \
    X(DestroyBuffer)                                                                               \
    X(GetBufferMemoryRequirements)                                                                 \
    X(BindBufferMemory)                                                                            \
    X(CreateShaderModule)                                                                          \
    X(DestroyShaderModule)                                                                         \
    X(CreateDescriptorSetLayout)                                                                   \
    X(DestroyDescriptorSetLayout)                                                                  \
    X(CreatePipelineLayout)                                                                        \
    X(DestroyPipelineLayout)                                                                       \
    X(CreateComputePipelines)                                                                      \
    X(DestroyPipeline)                                                                             \
    X(CreateDescriptorPool)                                                                        \
    X(DestroyDescriptorPool)                                                                       \
    X(ResetDescriptorPool)                                                                         \
    X(AllocateDescriptorSets)                                                                      \
    X(UpdateDescriptorSets)                                                                        \
    X(CreateCommandPool)                                                                           \
    X(DestroyCommandPool)                                                                          \
    X(ResetCommandPool)                                                                            \
    X(AllocateCommandBuffers)                                                                      \
    X(BeginCommandBuffer)                                                                          \
    X(EndCommandBuffer)                                                                            \
    X(CmdBindPipeline)                                                                             \
    X(CmdBindDescriptorSets)                                                                       \
    X(CmdPushConstants)                                                                            \
    X(CmdDispatch)                                                                                 \
    X(CmdPipelineBarrier)                                                                          \
    X(CmdCopyBuffer)                                                                               \
    X(CmdFillBuffer)                                                                               \
    X(CmdResetQueryPool)                                                                           \
    X(CmdWriteTimestamp)                                                                           \
    X(CreateQueryPool)                                                                             \
    X(DestroyQueryPool)                                                                            \
    X(GetQueryPoolResults)                                                                         \
    X(CreateFence)                                                                                 \
    X(DestroyFence)                                                                                \
    X(ResetFences)                                                                                 \
    X(WaitForFences)

#define VK_MEMBER(name) PFN_vk##name name;
struct vk_loader {
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
    PFN_vkEnumerateInstanceVersion EnumerateInstanceVersion; /* NULL in a Vulkan 1.0 loader */
    VK_LOADER_FUNCTIONS(VK_MEMBER)
};
struct vk_instance_api {
    VK_INSTANCE_FUNCTIONS(VK_MEMBER)
    VK_INSTANCE_EXTRA(VK_MEMBER)
};
struct vk_device_api {
    VK_DEVICE_FUNCTIONS(VK_MEMBER)
};
#undef VK_MEMBER

/* libvulkan stays loaded until the process ends: drivers do not survive dlclose. */
bool vk_load(struct vk_loader *loader, struct failure *failure);
bool vk_load_instance(const struct vk_loader *loader, VkInstance instance,
                      struct vk_instance_api *api, struct failure *failure);
bool vk_load_device(const struct vk_instance_api *instance, VkDevice device,
                    struct vk_device_api *api, struct failure *failure);

/* "VK_ERROR_DEVICE_LOST", or "unknown VkResult" */
const char *vk_result_name(VkResult result);
/* True for VK_SUCCESS and other codes that are no errors. Else fills *failure: a lost device,
 * memory that ran out, a driver that failed. `call` names what was done. */
bool vk_good(VkResult result, const char *call, struct failure *failure);

#endif

/* Features of a Vulkan GPU: what it claims, and how each is switched on. */
#include <stdio.h>

#include "vk_device.h"

/* Extensions whose structures or features are used where the core does not have them yet. */
static const struct {
    enum feature feature;
    uint32_t core; /* version that has it without the extension */
    const char *extension;
} extensions[] = {
    {FEATURE_FLOAT16, VK_API_VERSION_1_2, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME},
    {FEATURE_FLOAT_CONTROLS, VK_API_VERSION_1_2, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME},
    {FEATURE_SUBGROUP_SIZE_CONTROL, VK_API_VERSION_1_3,
     VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME},
    {FEATURE_COOPERATIVE_MATRIX, UINT32_MAX, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME},
    {FEATURE_COOPERATIVE_MATRIX, VK_API_VERSION_1_2, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME},
};
#define EXTENSIONS (sizeof extensions / sizeof extensions[0])

static bool has_extensions(const struct vk_device *d, enum feature feature) {
    for (size_t i = 0; i < EXTENSIONS; i++) {
        if (extensions[i].feature == feature &&
            !vk_adapter_offers(d->adapter, extensions[i].core, extensions[i].extension)) {
            return false;
        }
    }
    return true;
}

/* A validation layer that is older than an extension complains of it and can judge nothing; Debian
 * 12's is of 1.3.239. Under such a layer there are no matrices. */
static bool layer_knows_matrices(const struct vk_device *d) {
    return d->instance.layer_version == 0 ||
           d->instance.layer_version >= VK_MAKE_API_VERSION(0, 1, 3, 255);
}

static void prepare(struct vk_enabling *e) {
    *e = (struct vk_enabling){
        .features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2},
        .storage16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES},
        .float16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES},
        .size_control = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES},
        .memory_model = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES},
        .matrix = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR},
    };
}

static void chain(struct vk_enabling *e, void *structure) {
    VkBaseOutStructure *link = structure;
    link->pNext = e->features.pNext;
    e->features.pNext = link;
}

static void read_subgroups(struct vk_device *d, struct features *has) {
    VkPhysicalDeviceSubgroupProperties subgroups = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &subgroups};
    d->instance.api.GetPhysicalDeviceProperties2(d->adapter->handle, &properties);
    VkSubgroupFeatureFlags can = subgroups.supportedOperations;
    if ((subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0) {
        return;
    }
    d->subgroup_operations = can;
    /* Its proof counts invocations by ballots. */
    has->has[FEATURE_SUBGROUP_BASIC] =
        (can & VK_SUBGROUP_FEATURE_BASIC_BIT) != 0 && (can & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0;
    has->has[FEATURE_SUBGROUP_ARITHMETIC] = (can & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0;
    has->has[FEATURE_SUBGROUP_SHUFFLE] = (can & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
}

static bool can_ask_for_size(struct vk_device *d) {
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &sizes};
    d->instance.api.GetPhysicalDeviceProperties2(d->adapter->handle, &properties);
    return (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
}

void vk_features_read(struct vk_device *d) {
    struct vk_enabling e;
    struct features *has = &d->base.advertised;
    bool float16 = has_extensions(d, FEATURE_FLOAT16);
    bool size_control = has_extensions(d, FEATURE_SUBGROUP_SIZE_CONTROL);
    bool matrix = has_extensions(d, FEATURE_COOPERATIVE_MATRIX) && layer_knows_matrices(d);
    prepare(&e);
    chain(&e, &e.storage16);
    if (float16) {
        chain(&e, &e.float16);
    }
    if (size_control) {
        chain(&e, &e.size_control);
    }
    if (matrix) {
        chain(&e, &e.memory_model);
        chain(&e, &e.matrix);
    }
    d->instance.api.GetPhysicalDeviceFeatures2(d->adapter->handle, &e.features);
    has->has[FEATURE_PACK_HALF] = true; /* GLSL.std.450 has had it since Vulkan 1.0 */
    has->has[FEATURE_TIMER_QUERY] = d->adapter->timer_bits > 0;
    has->has[FEATURE_FLOAT16] = e.float16.shaderFloat16;
    has->has[FEATURE_STORAGE16] = e.storage16.storageBuffer16BitAccess;
    has->has[FEATURE_UNIFORM16] = e.storage16.uniformAndStorageBuffer16BitAccess;
    has->has[FEATURE_PUSH16] = e.storage16.storagePushConstant16;
    has->has[FEATURE_IO16] = e.storage16.storageInputOutput16;
    has->has[FEATURE_FLOAT_CONTROLS] = has_extensions(d, FEATURE_FLOAT_CONTROLS);
    has->has[FEATURE_SUBGROUP_SIZE_CONTROL] =
        e.size_control.subgroupSizeControl && can_ask_for_size(d);
    d->full_subgroups = e.size_control.computeFullSubgroups;
    has->has[FEATURE_COOPERATIVE_MATRIX] =
        e.matrix.cooperativeMatrix && e.memory_model.vulkanMemoryModel &&
        d->instance.api.GetPhysicalDeviceCooperativeMatrixPropertiesKHR != NULL;
    read_subgroups(d, has);
}

static void add_extensions(const struct vk_device *d, enum feature feature, struct vk_enabling *e) {
    for (size_t i = 0; i < EXTENSIONS; i++) {
        if (extensions[i].feature == feature &&
            d->adapter->properties.apiVersion < extensions[i].core) {
            e->extensions[e->extension_count++] = extensions[i].extension;
        }
    }
}

bool vk_features_enable(struct vk_device *d, const char *list, struct vk_enabling *e,
                        struct failure *failure) {
    char reason[FEATURE_REASON_SIZE];
    const bool *on = d->enabled.has;
    prepare(e);
    if (!features_parse(list, &d->enabled, reason)) {
        return fail(failure, FAULT_DRIVER, "enable: %s", reason);
    }
    for (int i = 0; i < FEATURE_COUNT; i++) {
        if (on[i] && !d->base.advertised.has[i]) {
            return fail(failure, FAULT_UNSUPPORTED, "lacks %s", feature_name((enum feature)i));
        }
        if (on[i]) {
            add_extensions(d, (enum feature)i, e);
        }
    }
    e->storage16.storageBuffer16BitAccess = on[FEATURE_STORAGE16];
    e->storage16.uniformAndStorageBuffer16BitAccess = on[FEATURE_UNIFORM16];
    e->storage16.storagePushConstant16 = on[FEATURE_PUSH16];
    e->storage16.storageInputOutput16 = on[FEATURE_IO16];
    chain(e, &e->storage16);
    if (on[FEATURE_FLOAT16]) {
        e->float16.shaderFloat16 = VK_TRUE;
        chain(e, &e->float16);
    }
    if (on[FEATURE_SUBGROUP_SIZE_CONTROL]) {
        e->size_control.subgroupSizeControl = VK_TRUE;
        e->size_control.computeFullSubgroups = d->full_subgroups;
        chain(e, &e->size_control);
    }
    if (on[FEATURE_COOPERATIVE_MATRIX]) {
        e->memory_model.vulkanMemoryModel = VK_TRUE;
        e->matrix.cooperativeMatrix = VK_TRUE;
        chain(e, &e->memory_model);
        chain(e, &e->matrix);
    }
    return true;
}

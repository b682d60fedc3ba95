/* What a Vulkan driver declares: limits, its own name, subgroups, float controls, matrices. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "vk_device.h"

static void get_properties(const struct vk_device *d, void *next) {
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = next};
    d->instance.api.GetPhysicalDeviceProperties2(d->adapter->handle, &properties);
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static void read_limits(struct vk_device *d) {
    const VkPhysicalDeviceLimits *from = &d->adapter->properties.limits;
    uint64_t *value = d->base.limits.value;
    value[LIMIT_SHARED_BYTES] = from->maxComputeSharedMemorySize;
    value[LIMIT_INVOCATIONS] = from->maxComputeWorkGroupInvocations;
    for (int axis = 0; axis < 3; axis++) {
        value[LIMIT_GROUP_X + axis] = from->maxComputeWorkGroupSize[axis];
        value[LIMIT_COUNT_X + axis] = from->maxComputeWorkGroupCount[axis];
    }
    value[LIMIT_STORAGE_BYTES] = from->maxStorageBufferRange;
    value[LIMIT_STORAGE_BINDINGS] =
        least(from->maxPerStageResources, least(from->maxPerStageDescriptorStorageBuffers,
                                                from->maxDescriptorSetStorageBuffers));
    value[LIMIT_STORAGE_ALIGN] = from->minStorageBufferOffsetAlignment;
    VkPhysicalDeviceMaintenance3Properties allocation = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    get_properties(d, &allocation);
    d->allocation_max = allocation.maxMemoryAllocationSize;
}

static void put_vendor(uint32_t id, char *to, size_t room) {
    static const struct {
        uint32_t id;
        const char *name;
    } vendors[] = {
        {0x1002, "AMD"},      {0x1010, "Imagination"}, {0x106b, "Apple"},    {0x10de, "NVIDIA"},
        {0x13b5, "Arm"},      {0x144d, "Samsung"},     {0x14e4, "Broadcom"}, {0x1ae0, "Google"},
        {0x5143, "Qualcomm"}, {0x8086, "Intel"},       {0x10005, "Mesa"},
    };
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++) {
        if (vendors[i].id == id) {
            (void)snprintf(to, room, "%s", vendors[i].name);
            return;
        }
    }
    (void)snprintf(to, room, "vendor 0x%04" PRIx32, id);
}

static const char *type_name(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return "cpu";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return "virtual";
    default:
        return "other";
    }
}

static void read_driver(struct vk_device *d) {
    const VkPhysicalDeviceProperties *p = &d->adapter->properties;
    const VkPhysicalDeviceDriverProperties *from = &d->adapter->driver;
    struct driver_info *to = &d->base.driver;
    put_vendor(p->vendorID, to->vendor, sizeof to->vendor);
    (void)snprintf(to->renderer, sizeof to->renderer, "%s", p->deviceName);
    (void)snprintf(to->adapter, sizeof to->adapter, "%s", d->adapter->name);
    (void)snprintf(to->device_type, sizeof to->device_type, "%s", type_name(p->deviceType));
    (void)snprintf(to->id, sizeof to->id, "%d", (int)from->driverID);
    (void)snprintf(to->name, sizeof to->name, "%s", from->driverName);
    (void)snprintf(to->info, sizeof to->info, "%s", from->driverInfo);
    (void)snprintf(to->conformance, sizeof to->conformance, "%u.%u.%u.%u",
                   from->conformanceVersion.major, from->conformanceVersion.minor,
                   from->conformanceVersion.subminor, from->conformanceVersion.patch);
    /* A driver without a text of its own is known by its number. */
    char number[32];
    (void)snprintf(number, sizeof number, "driver 0x%" PRIx32, p->driverVersion);
    (void)snprintf(to->version, sizeof to->version,
                   "%.100s%s%.100s%sVulkan %" PRIu32 ".%" PRIu32 ".%" PRIu32, from->driverName,
                   from->driverName[0] == '\0' ? "" : " ",
                   from->driverInfo[0] == '\0' ? number : from->driverInfo, ", ",
                   VK_API_VERSION_MAJOR(p->apiVersion), VK_API_VERSION_MINOR(p->apiVersion),
                   VK_API_VERSION_PATCH(p->apiVersion));
}

static void read_subgroups(struct vk_device *d) {
    struct facts *facts = &d->base.facts;
    VkPhysicalDeviceSubgroupProperties subgroups = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceSubgroupSizeControlProperties sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    bool can_ask = d->base.advertised.has[FEATURE_SUBGROUP_SIZE_CONTROL];
    if (can_ask) {
        subgroups.pNext = &sizes;
    }
    get_properties(d, &subgroups);
    facts->subgroup = subgroups.subgroupSize;
    if (can_ask) {
        facts->subgroup_min = sizes.minSubgroupSize;
        facts->subgroup_max = sizes.maxSubgroupSize;
        d->subgroups_max = sizes.maxComputeWorkgroupSubgroups;
    }
}

static void read_float_controls(struct vk_device *d) {
    struct facts *facts = &d->base.facts;
    VkPhysicalDeviceFloatControlsProperties p = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
    if (!d->base.advertised.has[FEATURE_FLOAT_CONTROLS]) {
        return;
    }
    get_properties(d, &p);
    const struct float_control found[] = {
        {"denorm_independence_all",
         p.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL},
        {"rounding_independence_all",
         p.roundingModeIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL},
        {"signed_zero_inf_nan_preserve_f16", p.shaderSignedZeroInfNanPreserveFloat16},
        {"signed_zero_inf_nan_preserve_f32", p.shaderSignedZeroInfNanPreserveFloat32},
        {"denorm_preserve_f16", p.shaderDenormPreserveFloat16},
        {"denorm_preserve_f32", p.shaderDenormPreserveFloat32},
        {"denorm_flush_to_zero_f16", p.shaderDenormFlushToZeroFloat16},
        {"denorm_flush_to_zero_f32", p.shaderDenormFlushToZeroFloat32},
        {"rounding_rte_f16", p.shaderRoundingModeRTEFloat16},
        {"rounding_rte_f32", p.shaderRoundingModeRTEFloat32},
        {"rounding_rtz_f16", p.shaderRoundingModeRTZFloat16},
        {"rounding_rtz_f32", p.shaderRoundingModeRTZFloat32},
    };
    _Static_assert(sizeof found / sizeof found[0] <= FLOAT_CONTROLS_MAX, "room for all");
    facts->float_control_count = sizeof found / sizeof found[0];
    for (size_t i = 0; i < facts->float_control_count; i++) {
        facts->float_controls[i] = found[i];
    }
}

#define TF_COMPONENT_BF16 1000141000 /* VK_KHR_shader_bfloat16, absent from older headers */

static const char *component_name(VkComponentTypeKHR type) {
    static const char *const names[] = {"f16", "f32", "f64", "s8",  "s16", "s32",
                                        "s64", "u8",  "u16", "u32", "u64"};
    if ((int)type == TF_COMPONENT_BF16) {
        return "bf16";
    }
    return (size_t)type < sizeof names / sizeof names[0] ? names[type] : "other";
}

static bool read_matrices(struct vk_device *d, struct failure *failure) {
    struct facts *facts = &d->base.facts;
    VkCooperativeMatrixPropertiesKHR found[MATRICES_MAX] = {{0}};
    uint32_t count = MATRICES_MAX;
    if (!d->base.advertised.has[FEATURE_COOPERATIVE_MATRIX]) {
        return true;
    }
    for (size_t i = 0; i < MATRICES_MAX; i++) {
        found[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    }
    if (!vk_good(d->instance.api.GetPhysicalDeviceCooperativeMatrixPropertiesKHR(d->adapter->handle,
                                                                                 &count, found),
                 "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR", failure)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const VkCooperativeMatrixPropertiesKHR *m = &found[i];
        if (m->scope == VK_SCOPE_SUBGROUP_KHR && !m->saturatingAccumulation) {
            char *text = facts->matrices[facts->matrix_count++];
            (void)snprintf(text, sizeof facts->matrices[0],
                           "%" PRIu32 "x%" PRIu32 "x%" PRIu32 " %s %s %s %s", m->MSize, m->NSize,
                           m->KSize, component_name(m->AType), component_name(m->BType),
                           component_name(m->CType), component_name(m->ResultType));
        }
    }
    return true;
}

bool vk_facts_read(struct vk_device *d, struct failure *failure) {
    d->base.timer_bits = (int)d->adapter->timer_bits;
    d->base.facts.timer_period_ns = (double)d->adapter->properties.limits.timestampPeriod;
    read_limits(d);
    read_driver(d);
    read_subgroups(d);
    read_float_controls(d);
    return read_matrices(d, failure);
}

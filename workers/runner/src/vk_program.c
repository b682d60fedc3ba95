/* Compute pipelines of the Vulkan backend: what a module needs is checked before the driver sees
 * it, for drivers do not validate. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spirv.h"
#include "vk_device.h"

#define MODULE_MAX ((size_t)16 << 20)

/* Vulkan has no compiler log; ours says which step failed and how. */
static bool refuse(struct log *log, struct failure *failure, const char *text) {
    log->text = strdup(text);
    log->size = log->text == NULL ? 0 : strlen(log->text);
    return fail(failure, FAULT_COMPILE, "%s", text);
}

/* An error of a compiling call is the shader's, unless memory ran out or the device was lost. */
static bool compiled(VkResult result, const char *call, struct log *log, struct failure *failure) {
    char text[sizeof failure->reason];
    if (vk_good(result, call, failure)) {
        return true;
    }
    if (failure->kind != FAULT_DRIVER) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%s", failure->reason);
    return refuse(log, failure, text);
}

/* Some operations have no feature of ours; the driver says which it has. */
static bool check_subgroup_operations(const struct vk_device *d, const struct spirv_facts *facts,
                                      struct failure *failure) {
    static const char *const names[] = {"basic",     "vote",    "arithmetic",
                                        "ballot",    "shuffle", "relative shuffle",
                                        "clustered", "quad"};
    uint32_t lacking = facts->subgroup_operations & ~d->subgroup_operations;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((lacking >> i & 1u) != 0) {
            return fail(failure, FAULT_UNSUPPORTED, "lacks %s operations of subgroups", names[i]);
        }
    }
    return true;
}

static bool check_needs(const struct vk_device *d, const struct spirv_facts *facts,
                        struct failure *failure) {
    for (int i = 0; i < FEATURE_COUNT; i++) {
        bool usable = d->enabled.has[i];
        if (i == FEATURE_SUBGROUP_BASIC || i == FEATURE_SUBGROUP_ARITHMETIC ||
            i == FEATURE_SUBGROUP_SHUFFLE) {
            usable = d->base.advertised.has[i]; /* nothing switches these on */
        }
        if (i == FEATURE_FLOAT_CONTROLS &&
            d->adapter->properties.apiVersion >= VK_API_VERSION_1_2) {
            usable = d->base.advertised.has[i];
        }
        bool offered = d->base.advertised.has[i] && !d->base.limits.without[i];
        if (facts->needs.has[i] && !(usable && offered)) {
            return fail(failure, FAULT_UNSUPPORTED, "%s %s",
                        offered ? "the job does not enable" : "lacks",
                        feature_name((enum feature)i));
        }
    }
    return true;
}

static bool check_group(const struct vk_device *d, const struct spirv_facts *facts, struct log *log,
                        struct failure *failure) {
    char reason[LIMIT_REASON_SIZE];
    for (int axis = 0; axis < 3; axis++) {
        if (facts->group[axis] == 0) {
            return refuse(log, failure, "a work group of no invocations");
        }
    }
    return limits_fit_group(&d->base.limits, facts->group, reason) ||
           fail(failure, FAULT_UNSUPPORTED, "%s", reason);
}

/* A shader without size control gets the one size that its GPU has. */
static bool check_subgroup(const struct vk_device *d, const struct shader *shader,
                           const struct spirv_facts *facts, struct failure *failure) {
    const struct facts *have = &d->base.facts;
    uint32_t size = shader->subgroup;
    if (size == 0) {
        return true;
    }
    if (!d->enabled.has[FEATURE_SUBGROUP_SIZE_CONTROL]) {
        return size == have->subgroup ||
               fail(failure, FAULT_UNSUPPORTED, "subgroup %" PRIu32 " != %" PRIu32, size,
                    have->subgroup);
    }
    if ((size & (size - 1)) != 0 || size < have->subgroup_min || size > have->subgroup_max) {
        return fail(failure, FAULT_UNSUPPORTED,
                    "subgroup %" PRIu32 " is not one of %" PRIu32 " to %" PRIu32, size,
                    have->subgroup_min, have->subgroup_max);
    }
    uint64_t invocations = (uint64_t)facts->group[0] * facts->group[1] * facts->group[2];
    uint64_t room = (uint64_t)size * d->subgroups_max;
    return invocations <= room ||
           fail(failure, FAULT_UNSUPPORTED,
                "invocations %" PRIu64 " > %" PRIu64 " in %" PRIu32 " subgroups of %" PRIu32,
                invocations, room, d->subgroups_max, size);
}

static bool check_bindings(const struct shader *shader, const struct spirv_facts *facts,
                           struct log *log, struct failure *failure) {
    char text[128];
    if (facts->binding_count <= shader->binding_count) {
        return true;
    }
    (void)snprintf(text, sizeof text, "the shader uses binding %zu, and the pass binds only %zu",
                   facts->binding_count - 1, shader->binding_count);
    return refuse(log, failure, text);
}

/* A block of another size would leave some of its members unset, or shift them. */
static bool check_values(const struct shader *shader, const struct spirv_facts *facts,
                         struct log *log, struct failure *failure) {
    char text[128];
    size_t given = shader->value_count;
    if (given > 0 && !facts->pushes) {
        (void)snprintf(text, sizeof text, "the shader reads no values, and the pass gives %zu",
                       given);
    } else if (facts->push_bytes != 4 * given) {
        (void)snprintf(text, sizeof text,
                       "the shader reads %" PRIu32 " bytes of values, and the pass gives %zu",
                       facts->push_bytes, 4 * given);
    } else {
        return true;
    }
    return refuse(log, failure, text);
}

static bool make_layout(struct vk_device *d, struct vk_program *p, struct failure *failure) {
    VkDescriptorSetLayoutBinding bindings[SPIRV_BINDINGS_MAX];
    for (size_t i = 0; i < p->binding_count; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = (uint32_t)i,
            .descriptorType = (p->uniforms >> i & 1u) != 0 ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                                           : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    }
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = (uint32_t)p->binding_count,
        .pBindings = bindings};
    const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                      .size = (uint32_t)(4 * p->value_count)};
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &p->set_layout,
                                               .pushConstantRangeCount = p->value_count > 0 ? 1 : 0,
                                               .pPushConstantRanges = &push};
    return vk_good(d->api.CreateDescriptorSetLayout(d->handle, &set, NULL, &p->set_layout),
                   "vkCreateDescriptorSetLayout", failure) &&
           vk_good(d->api.CreatePipelineLayout(d->handle, &layout, NULL, &p->layout),
                   "vkCreatePipelineLayout", failure);
}

/* No pipeline cache is ever given to the driver: compile times stay cold, and no stale or torn
 * cache can crash it (flutter/flutter#172624). */
static bool make_pipeline(struct vk_device *d, struct vk_program *p, VkShaderModule module,
                          const struct shader *shader, struct log *log, struct failure *failure) {
    VkSpecializationMapEntry *entries = calloc(shader->constant_count + 1, sizeof *entries);
    if (entries == NULL) {
        return fail(failure, FAULT_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < shader->constant_count; i++) {
        entries[i] = (VkSpecializationMapEntry){
            .constantID = (uint32_t)i, .offset = (uint32_t)(4 * i), .size = 4};
    }
    const VkSpecializationInfo constants = {.mapEntryCount = (uint32_t)shader->constant_count,
                                            .pMapEntries = entries,
                                            .dataSize = 4 * shader->constant_count,
                                            .pData = shader->constants};
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = shader->subgroup};
    bool ask_size = shader->subgroup != 0 && d->enabled.has[FEATURE_SUBGROUP_SIZE_CONTROL];
    /* The size alone leaves the driver free to run a subgroup partly filled. The flag is valid only
     * where full subgroups make up the rows of the work group. */
    bool fill = ask_size && d->full_subgroups && p->base.group[0] % shader->subgroup == 0;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = ask_size ? &size : NULL,
                  .flags = fill ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = shader->constant_count > 0 ? &constants : NULL},
        .layout = p->layout};
    bool good = compiled(
        d->api.CreateComputePipelines(d->handle, VK_NULL_HANDLE, 1, &info, NULL, &p->pipeline),
        "vkCreateComputePipelines", log, failure);
    free(entries);
    return good;
}

static bool build(struct vk_device *d, struct vk_program *p, const uint32_t *words,
                  const struct shader *shader, struct log *log, struct failure *failure) {
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = shader->size,
                                           .pCode = words};
    VkShaderModule module = VK_NULL_HANDLE;
    if (!compiled(d->api.CreateShaderModule(d->handle, &info, NULL, &module),
                  "vkCreateShaderModule", log, failure)) {
        return false;
    }
    bool good = make_layout(d, p, failure) && make_pipeline(d, p, module, shader, log, failure);
    d->api.DestroyShaderModule(d->handle, module, NULL);
    return good;
}

static bool check(const struct vk_device *d, const uint32_t *words, const struct shader *shader,
                  struct vk_program *p, struct log *log, struct failure *failure) {
    struct spirv_facts facts;
    char reason[SPIRV_REASON_SIZE];
    if (!spirv_read(words, shader->size, shader->constants, shader->constant_count, &facts,
                    reason)) {
        return refuse(log, failure, reason);
    }
    if (shader->binding_count > SPIRV_BINDINGS_MAX) {
        return fail(failure, FAULT_UNSUPPORTED, "at most %d bindings", SPIRV_BINDINGS_MAX);
    }
    memcpy(p->base.group, facts.group, sizeof facts.group);
    p->binding_count = shader->binding_count;
    p->uniforms = facts.uniforms;
    p->value_count = shader->value_count;
    return check_needs(d, &facts, failure) && check_subgroup_operations(d, &facts, failure) &&
           check_bindings(shader, &facts, log, failure) &&
           check_values(shader, &facts, log, failure) && check_group(d, &facts, log, failure) &&
           check_subgroup(d, shader, &facts, failure);
}

struct program *vk_compile(struct device *device, const struct shader *shader, struct log *log,
                           struct failure *failure) {
    struct vk_device *d = vk_of(device);
    struct vk_program *p = calloc(1, sizeof *p);
    /* Words of our own: the blob may lie at any address. */
    uint32_t *words = shader->size <= MODULE_MAX ? calloc(shader->size / 4 + 1, 4) : NULL;
    bool good = p != NULL && words != NULL;
    if (good) {
        memcpy(words, shader->source, shader->size);
        good = check(d, words, shader, p, log, failure) && build(d, p, words, shader, log, failure);
    } else {
        (void)fail(failure, FAULT_MEMORY, "shader of %zu bytes: out of memory", shader->size);
    }
    free(words);
    if (!good && p != NULL) {
        vk_program_free(device, &p->base);
        p = NULL;
    }
    return p == NULL ? NULL : &p->base;
}

void vk_program_free(struct device *device, struct program *program) {
    struct vk_device *d = vk_of(device);
    struct vk_program *p = (struct vk_program *)program;
    d->api.DestroyPipeline(d->handle, p->pipeline, NULL);
    d->api.DestroyPipelineLayout(d->handle, p->layout, NULL);
    d->api.DestroyDescriptorSetLayout(d->handle, p->set_layout, NULL);
    free(p);
}

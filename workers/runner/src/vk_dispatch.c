/* Running a sequence of passes on a Vulkan device and measuring it. */
#include <stdlib.h>

#include "vk_device.h"
#include "vk_time.h"

/* Room for the descriptors of one sequence; all sets of the one before are given back at once. */
static bool reserve_sets(struct vk_device *d, const struct sequence *sequence,
                         struct failure *failure) {
    uint32_t sets = (uint32_t)sequence->count, descriptors = 1;
    for (size_t i = 0; i < sequence->count; i++) {
        descriptors += (uint32_t)sequence->dispatches[i].binding_count;
    }
    if (d->sets != VK_NULL_HANDLE && sets <= d->sets_room && descriptors <= d->descriptors_room) {
        return vk_good(d->api.ResetDescriptorPool(d->handle, d->sets, 0), "vkResetDescriptorPool",
                       failure);
    }
    d->api.DestroyDescriptorPool(d->handle, d->sets, NULL);
    d->sets = VK_NULL_HANDLE;
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptors},
                                          {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, descriptors}};
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = sets,
                                             .poolSizeCount = 2,
                                             .pPoolSizes = sizes};
    d->sets_room = sets;
    d->descriptors_room = descriptors;
    return vk_good(d->api.CreateDescriptorPool(d->handle, &info, NULL, &d->sets),
                   "vkCreateDescriptorPool", failure);
}

static bool bind(struct vk_device *d, const struct dispatch *pass, VkDescriptorSet *set,
                 struct failure *failure) {
    const struct vk_program *p = (const struct vk_program *)pass->program;
    VkDescriptorBufferInfo *buffers = calloc(pass->binding_count + 1, sizeof *buffers);
    VkWriteDescriptorSet *writes = calloc(pass->binding_count + 1, sizeof *writes);
    const VkDescriptorSetAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = d->sets,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &p->set_layout};
    bool good = (buffers != NULL && writes != NULL) || fail(failure, FAULT_MEMORY, "out of memory");
    good = good && vk_good(d->api.AllocateDescriptorSets(d->handle, &info, set),
                           "vkAllocateDescriptorSets", failure);
    for (size_t i = 0; good && i < pass->binding_count; i++) {
        const struct binding *b = &pass->bindings[i];
        buffers[i] = (VkDescriptorBufferInfo){.buffer = ((struct vk_buffer *)b->buffer)->handle,
                                              .offset = b->offset,
                                              .range = b->size};
        writes[i] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = *set,
            .dstBinding = (uint32_t)i,
            .descriptorCount = 1,
            .descriptorType = (p->uniforms >> i & 1u) != 0 ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                                           : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = &buffers[i]};
    }
    if (good) {
        d->api.UpdateDescriptorSets(d->handle, (uint32_t)pass->binding_count, writes, 0, NULL);
    }
    free(buffers);
    free(writes);
    return good;
}

static void record_pass(struct vk_device *d, const struct dispatch *pass, VkDescriptorSet set) {
    const struct vk_program *p = (const struct vk_program *)pass->program;
    const VkMemoryBarrier written = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_SHADER_READ_BIT |
                                                      VK_ACCESS_SHADER_WRITE_BIT |
                                                      VK_ACCESS_UNIFORM_READ_BIT};
    d->api.CmdBindPipeline(d->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    d->api.CmdBindDescriptorSets(d->commands, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &set,
                                 0, NULL);
    if (p->value_count > 0) {
        d->api.CmdPushConstants(d->commands, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                (uint32_t)(4 * p->value_count), pass->values);
    }
    d->api.CmdDispatch(d->commands, pass->grid[0], pass->grid[1], pass->grid[2]);
    d->api.CmdPipelineBarrier(d->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                              VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &written, 0, NULL, 0,
                              NULL);
}

static bool record(struct vk_device *d, const struct sequence *sequence,
                   const VkDescriptorSet *sets, unsigned times, bool timed,
                   struct failure *failure) {
    if (!vk_begin(d, failure)) {
        return false;
    }
    if (timed) {
        d->api.CmdResetQueryPool(d->commands, d->queries, 0, 2);
        d->api.CmdWriteTimestamp(d->commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, d->queries, 0);
    }
    for (unsigned t = 0; t < times; t++) {
        for (size_t i = 0; i < sequence->count; i++) {
            record_pass(d, &sequence->dispatches[i], sets[i]);
        }
    }
    if (timed) {
        d->api.CmdWriteTimestamp(d->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, d->queries, 1);
    }
    return true;
}

/* Not ready after the fence means a driver that never writes it: not measured, and no error. */
static bool read_timer(struct vk_device *d, struct elapsed *elapsed, struct failure *failure) {
    struct vk_timestamp stamps[2] = {{0, 0}, {0, 0}};
    VkResult result = d->api.GetQueryPoolResults(
        d->handle, d->queries, 0, 2, sizeof stamps, stamps, sizeof stamps[0],
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
    if (!vk_good(result, "vkGetQueryPoolResults", failure)) {
        return false;
    }
    elapsed->gpu_ns = vk_time_ns(&stamps[0], &stamps[1], (unsigned)d->base.timer_bits,
                                 d->base.facts.timer_period_ns);
    return true;
}

bool vk_run(struct device *device, const struct sequence *sequence, unsigned times, bool gpu_timer,
            struct elapsed *elapsed, struct failure *failure) {
    struct vk_device *d = vk_of(device);
    bool timed = gpu_timer && d->queries != VK_NULL_HANDLE;
    VkDescriptorSet *sets = calloc(sequence->count + 1, sizeof *sets);
    *elapsed = (struct elapsed){.gpu_ns = -1};
    bool good = sets != NULL || fail(failure, FAULT_MEMORY, "out of memory");
    good = good && reserve_sets(d, sequence, failure);
    for (size_t i = 0; good && i < sequence->count; i++) {
        good = bind(d, &sequence->dispatches[i], &sets[i], failure);
    }
    good = good && record(d, sequence, sets, times, timed, failure) &&
           vk_submit(d, &elapsed->wall_ns, failure) && (!timed || read_timer(d, elapsed, failure));
    free(sets);
    return good;
}

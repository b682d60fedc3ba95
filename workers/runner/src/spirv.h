/* What the Vulkan backend must know of a SPIR-V module before a driver sees it: its work group size
 * (to compare with the limits), what it needs of a device, and how its buffers are bound. Vulkan
 * answers none of that, and drivers do not validate. Section numbers: SPIR-V 1.6 specification. */
#ifndef TILEFARM_SPIRV_H
#define TILEFARM_SPIRV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_features.h"

#define SPIRV_BINDINGS_MAX 64

struct spirv_facts {
    uint32_t group[3];
    size_t binding_count; /* the highest binding used, plus one */
    uint64_t uniforms;    /* bit i: binding i is a uniform buffer, not a storage buffer */
    bool pushes;          /* there is a block of push constants */
    uint32_t push_bytes;  /* its size */
    struct features needs;
    uint32_t subgroup_operations; /* bits of VkSubgroupFeatureFlagBits */
};

#define SPIRV_REASON_SIZE 160

/* Reads a module whose entry point "main" is a compute shader. `constants` are the values of its
 * specialisation constants 0, 1, ...; they may set the work group size. False with a reason for
 * anything that is malformed: every access stays within the words. */
bool spirv_read(const uint32_t *words, size_t size_bytes, const uint32_t *constants,
                size_t constant_count, struct spirv_facts *facts, char reason[SPIRV_REASON_SIZE]);

#endif

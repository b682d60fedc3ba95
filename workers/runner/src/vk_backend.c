/* The table of the Vulkan backend; see vk.h. Every call ends with a look at what the validation
 * layer said meanwhile: under TILEFARM_VALIDATE a message makes the call fail. */
#include "vk.h"

#include "vk_device.h"

static bool silent(struct device *device, struct failure *failure) {
    return vk_validation_silent(&vk_of(device)->instance.messages, failure);
}

static bool list(void (*each)(void *arg, const char *adapter), void *arg, struct failure *failure) {
    struct vk_instance instance;
    struct vk_adapters adapters = {.count = 0};
    bool good =
        vk_instance_open(&instance, failure) && vk_adapters_list(&instance, &adapters, failure);
    for (size_t i = 0; good && i < adapters.count; i++) {
        each(arg, adapters.list[i].name);
    }
    vk_adapters_free(&adapters);
    good = vk_validation_silent(&instance.messages, failure) && good;
    vk_instance_close(&instance);
    return good;
}

static struct program *compile(struct device *device, const struct shader *shader, struct log *log,
                               struct failure *failure) {
    struct program *program = vk_compile(device, shader, log, failure);
    if (!silent(device, failure) && program != NULL) {
        vk_program_free(device, program);
        return NULL;
    }
    return program;
}

static struct gpu_buffer *buffer_new(struct device *device, size_t size, struct failure *failure) {
    struct gpu_buffer *buffer = vk_buffer_new(device, size, failure);
    if (!silent(device, failure) && buffer != NULL) {
        vk_buffer_free(device, buffer);
        return NULL;
    }
    return buffer;
}

static bool write(struct device *device, struct gpu_buffer *buffer, size_t offset, const void *data,
                  size_t size, struct failure *failure) {
    bool good = vk_write(device, buffer, offset, data, size, failure);
    return silent(device, failure) && good;
}

static bool fill(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
                 uint32_t pattern, struct failure *failure) {
    bool good = vk_fill(device, buffer, offset, size, pattern, failure);
    return silent(device, failure) && good;
}

static const void *map(struct device *device, struct gpu_buffer *buffer, size_t offset, size_t size,
                       struct failure *failure) {
    const void *data = vk_map(device, buffer, offset, size, failure);
    return silent(device, failure) ? data : NULL;
}

static bool run(struct device *device, const struct sequence *sequence, unsigned times,
                bool gpu_timer, struct elapsed *elapsed, struct failure *failure) {
    bool good = vk_run(device, sequence, times, gpu_timer, elapsed, failure);
    return silent(device, failure) && good;
}

static void each_extension(struct device *device, void (*each)(void *arg, const char *name),
                           void *arg) {
    const struct vk_adapter *adapter = vk_of(device)->adapter;
    for (uint32_t i = 0; i < adapter->extension_count; i++) {
        each(arg, adapter->extensions[i].extensionName);
    }
}

const struct backend vk_backend = {
    .api = "vulkan",
    .adapters = list,
    .open = vk_open,
    .close = vk_close,
    .compile = compile,
    .program_free = vk_program_free,
    .buffer_new = buffer_new,
    .buffer_free = vk_buffer_free,
    .write = write,
    .fill = fill,
    .map = map,
    .unmap = vk_unmap,
    .run = run,
    .extensions = each_extension,
    .proofs = vk_proofs,
    .proof_count = VK_PROOFS,
};

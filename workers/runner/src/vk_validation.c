/* TILEFARM_VALIDATE: the Khronos validation layer, whose every warning is a failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vk_instance.h"

#define LAYER "VK_LAYER_KHRONOS_validation"
#define LAYERS_MAX 64

bool vk_validation_wanted(void) {
    const char *value = getenv("TILEFARM_VALIDATE");
    return value != NULL && strcmp(value, "") != 0 && strcmp(value, "0") != 0;
}

static bool find_layer(struct vk_instance *instance) {
    VkLayerProperties layers[LAYERS_MAX];
    uint32_t count = LAYERS_MAX;
    if (instance->loader.EnumerateInstanceLayerProperties(&count, layers) < 0) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(layers[i].layerName, LAYER) == 0) {
            instance->layer_version = layers[i].specVersion;
            return true;
        }
    }
    return false;
}

/* The layer's text is "Validation Error: [ VUID ] Object …; | MessageID = … | what": the end is
 * what a person needs. */
static VKAPI_ATTR VkBool32 VKAPI_CALL note(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                           VkDebugUtilsMessageTypeFlagsEXT types,
                                           const VkDebugUtilsMessengerCallbackDataEXT *data,
                                           void *arg) {
    struct vk_messages *messages = arg;
    const char *text = data->pMessage == NULL ? "" : data->pMessage;
    const char *bar = strrchr(text, '|');
    (void)severity;
    (void)types;
    if (messages->count++ == 0) {
        (void)snprintf(messages->first, sizeof messages->first, "%s:%s",
                       data->pMessageIdName == NULL ? "message" : data->pMessageIdName,
                       bar == NULL ? text : bar + 1);
    }
    (void)fprintf(stderr, "tilefarm-runner: validation: %s\n", text);
    return VK_FALSE;
}

bool vk_validation_prepare(struct vk_instance *instance, struct vk_validation *validation,
                           struct failure *failure) {
    if (!find_layer(instance)) {
        return fail(failure, FAULT_DRIVER,
                    "TILEFARM_VALIDATE: " LAYER " is not installed (Debian: apt-get install "
                    "vulkan-validationlayers)");
    }
    *validation = (struct vk_validation){
        .messenger = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                      .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                      .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
                      .pfnUserCallback = note,
                      .pUserData = &instance->messages},
        .features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                     .enabledValidationFeatureCount = 1},
        .enabled = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT},
        .layers = {LAYER},
        .extensions = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                       VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME},
    };
    validation->features.pEnabledValidationFeatures = validation->enabled;
    return true;
}

bool vk_validation_silent(struct vk_messages *messages, struct failure *failure) {
    if (messages->count == 0) {
        return true;
    }
    messages->count = 0;
    return fail(failure, FAULT_DRIVER, "validation: %s", messages->first);
}

/* The Vulkan backend: compute on any Vulkan 1.1 device, through libvulkan as it is found at run
 * time. */
#ifndef TILEFARM_VK_H
#define TILEFARM_VK_H

#include "backend.h"

extern const struct backend vk_backend;

#endif

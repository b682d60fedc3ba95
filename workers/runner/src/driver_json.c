/* Driver fields; see driver_json.h. */
#include "driver_json.h"

void driver_json(const struct device *device, struct json *j) {
    json_field_str(j, "api", device->backend->api);
    json_field_str(j, "vendor", device->driver.vendor);
    json_field_str(j, "renderer", device->driver.renderer);
    json_field_str(j, "version", device->driver.version);
    json_field_str(j, "glsl", device->driver.glsl);
    json_field_str(j, "library", device->driver.library);
}

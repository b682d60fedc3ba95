/* The fields by which a driver is known, for the driver and the profile record. */
#ifndef TILEFARM_DRIVER_JSON_H
#define TILEFARM_DRIVER_JSON_H

#include "backend.h"
#include "json_out.h"

void driver_json(const struct device *device, struct json *j);

#endif

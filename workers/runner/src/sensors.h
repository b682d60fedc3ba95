/* GPU clock, temperature and throttling: of NVIDIA's GPUs through NVML, of all others as Linux and
 * Android expose them in sysfs. Most phones hide some of them from the shell user; what is absent
 * is reported as absent. */
#ifndef TILEFARM_SENSORS_H
#define TILEFARM_SENSORS_H

#include <stdbool.h>
#include <stdint.h>

struct sensor {
    int fd; /* -1: not exposed */
    int64_t scale;
};

struct reading {
    int64_t gpu_hz, temp_mc; /* -1: absent */
    int throttled;           /* 1, 0, or -1: absent */
};

struct nvml; /* sensors_nvml.c */

struct sensors {
    bool open;
    struct sensor clock_hz, temp_mc, throttle;
    struct nvml *nvml; /* NULL: not tried, or not there */
    bool nvml_tried;
    bool through_nvml; /* the GPU that is followed is one of NVML's */
};

/* Looks below `root` ("" is the machine itself; tests give a folder). Idempotent. */
void sensors_open(struct sensors *s, const char *root);
/* From now on readings are of the GPU of this vendor and adapter (struct driver_info). Opens NVML
 * when the first NVIDIA GPU comes, which may take tens of milliseconds. Of a GPU that NVML cannot
 * tell from its neighbours nothing is read. */
void sensors_follow(struct sensors *s, const char *vendor, const char *adapter);
struct reading sensors_read(const struct sensors *s);
void sensors_close(struct sensors *s);

/* sensors_nvml.c. NULL if the library cannot be loaded or used; path NULL: the system's. */
struct nvml *nvml_open(const char *path);
/* Chooses the GPU that is read from now on: the only one, or the one whose UUID the adapter's name
 * ends with. False: none, and nothing can be read. */
bool nvml_choose(struct nvml *nvml, const char *adapter);
struct reading nvml_read(const struct nvml *nvml);
void nvml_close(struct nvml *nvml);

#endif

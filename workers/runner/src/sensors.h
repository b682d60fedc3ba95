/* GPU clock, temperature and throttling as Linux and Android expose them in sysfs. Most phones hide
 * some of them from the shell user; what is absent is reported as absent. */
#ifndef TILEFARM_SENSORS_H
#define TILEFARM_SENSORS_H

#include <stdbool.h>
#include <stdint.h>

struct sensor {
    int fd; /* -1: not exposed */
    int64_t scale;
};

struct sensors {
    bool open;
    struct sensor clock_hz, temp_mc, throttle;
};

struct reading {
    int64_t gpu_hz, temp_mc; /* -1: absent */
    int throttled;           /* 1, 0, or -1: absent */
};

/* Looks below `root` ("" is the machine itself; tests give a folder). Idempotent. */
void sensors_open(struct sensors *s, const char *root);
struct reading sensors_read(const struct sensors *s);
void sensors_close(struct sensors *s);

#endif

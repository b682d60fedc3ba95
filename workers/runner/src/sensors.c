/* Sensors in sysfs, and which GPU's are read; see sensors.h. */
#include "sensors.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_ROOM 512

/* Reads a short text file without its newline; false if it is absent or empty. */
static bool read_text(int fd, char *text, size_t room) {
    ssize_t got = pread(fd, text, room - 1, 0);
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

static int64_t read_number(const struct sensor *s) {
    char text[64], *end = NULL;
    if (s->fd < 0 || !read_text(s->fd, text, sizeof text)) {
        return -1;
    }
    long long value = strtoll(text, &end, 10);
    if (end == text || value < 0 || value > INT64_MAX / s->scale) {
        return -1;
    }
    return value * s->scale;
}

/* Takes the file if it can be read as a number. */
static bool try_file(struct sensor *s, const char *root, const char *path, int64_t scale) {
    char full[PATH_ROOM];
    if (snprintf(full, sizeof full, "%s%s", root, path) >= PATH_ROOM) {
        return false;
    }
    struct sensor found = {.fd = open(full, O_RDONLY | O_CLOEXEC), .scale = scale};
    if (read_number(&found) < 0) {
        if (found.fd >= 0) {
            (void)close(found.fd);
        }
        return false;
    }
    *s = found;
    return true;
}

/* Looks in `folder` for an entry whose name (or, with type_file, whose file of that name) holds
 * `part`, and takes its `value` file. */
static bool try_folder(struct sensor *s, const char *root, const char *folder,
                       const char *type_file, const char *part, const char *value, int64_t scale) {
    char path[PATH_ROOM];
    if (snprintf(path, sizeof path, "%s%s", root, folder) >= PATH_ROOM) {
        return false;
    }
    DIR *listing = opendir(path);
    if (listing == NULL) {
        return false;
    }
    bool found = false;
    for (struct dirent *e = readdir(listing); e != NULL && !found; e = readdir(listing)) {
        char text[128] = "";
        if (e->d_name[0] == '.' || strlen(e->d_name) > 100) {
            continue;
        }
        if (type_file != NULL) {
            (void)snprintf(path, sizeof path, "%s%s/%.100s/%s", root, folder, e->d_name, type_file);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            if (fd >= 0) {
                (void)read_text(fd, text, sizeof text);
                (void)close(fd);
            }
        } else {
            (void)snprintf(text, sizeof text, "%.100s", e->d_name);
        }
        if (strstr(text, part) != NULL) {
            (void)snprintf(path, sizeof path, "%s/%.100s/%s", folder, e->d_name, value);
            found = try_file(s, root, path, scale);
        }
    }
    (void)closedir(listing);
    return found;
}

static void find_clock(struct sensors *s, const char *root) {
    struct sensor *c = &s->clock_hz;
    (void)(try_file(c, root, "/sys/class/kgsl/kgsl-3d0/gpuclk", 1) ||
           try_file(c, root, "/sys/class/kgsl/kgsl-3d0/clock_mhz", 1000000) ||
           try_file(c, root, "/sys/class/misc/mali0/device/clock", 1000000) ||
           try_file(c, root, "/sys/kernel/gpu/gpu_clock", 1000000) ||
           try_folder(c, root, "/sys/class/devfreq", NULL, "mali", "cur_freq", 1) ||
           try_folder(c, root, "/sys/class/devfreq", NULL, "gpu", "cur_freq", 1) ||
           try_folder(c, root, "/sys/class/drm", NULL, "card", "gt_act_freq_mhz", 1000000));
}

static void find_temperature(struct sensors *s, const char *root) {
    static const char *const parts[] = {"gpu", "GPU", "G3D", "soc", "x86_pkg_temp", "cpu"};
    if (try_file(&s->temp_mc, root, "/sys/class/kgsl/kgsl-3d0/temp", 1)) {
        return;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (try_folder(&s->temp_mc, root, "/sys/class/thermal", "type", parts[i], "temp", 1)) {
            return;
        }
    }
}

/* A number above 0 means that something holds the GPU below its full clock. */
static void find_throttle(struct sensors *s, const char *root) {
    struct sensor *t = &s->throttle;
    static const char thermal[] = "/sys/class/thermal";
    (void)(try_file(t, root, "/sys/class/kgsl/kgsl-3d0/thermal_pwrlevel", 1) ||
           try_folder(t, root, thermal, "type", "thermal-devfreq", "cur_state", 1) ||
           try_folder(t, root, thermal, "type", "mali", "cur_state", 1) ||
           try_folder(t, root, thermal, "type", "gpu", "cur_state", 1));
}

void sensors_open(struct sensors *s, const char *root) {
    if (s->open) {
        return;
    }
    s->open = true;
    s->clock_hz.fd = s->temp_mc.fd = s->throttle.fd = -1;
    find_clock(s, root);
    find_temperature(s, root);
    find_throttle(s, root);
}

void sensors_follow(struct sensors *s, const char *vendor, const char *adapter) {
    s->through_nvml = false;
    if (strstr(vendor, "NVIDIA") == NULL) { /* a software driver beside such a GPU, for one */
        return;
    }
    if (!s->nvml_tried) {
        s->nvml_tried = true;
        s->nvml = nvml_open(getenv("TILEFARM_NVML"));
    }
    if (s->nvml != NULL) { /* Tegra and nouveau have none; sysfs may know more there */
        s->through_nvml = true;
        (void)nvml_choose(s->nvml, adapter);
    }
}

struct reading sensors_read(const struct sensors *s) {
    if (s->through_nvml) {
        return nvml_read(s->nvml);
    }
    int64_t throttle = read_number(&s->throttle);
    return (struct reading){
        .gpu_hz = read_number(&s->clock_hz),
        .temp_mc = read_number(&s->temp_mc),
        .throttled = throttle < 0 ? -1 : throttle > 0,
    };
}

static void close_sensor(struct sensor *s) {
    if (s->fd >= 0) {
        (void)close(s->fd);
        s->fd = -1;
    }
}

void sensors_close(struct sensors *s) {
    nvml_close(s->nvml);
    s->nvml = NULL;
    s->nvml_tried = s->through_nvml = false;
    if (s->open) {
        close_sensor(&s->clock_hz);
        close_sensor(&s->temp_mc);
        close_sensor(&s->throttle);
        s->open = false;
    }
}

/* NVML for tests, built twice: with FAKE_NVML_OLD it lacks the functions that came late or may go.
 * The environment tells what it says: FAKE_NVML_GPUS (1), FAKE_NVML_UUID (of the last GPU; others
 * have none), FAKE_NVML_REASONS, FAKE_NVML_FAIL=init|count|handle|clock|temperature|reasons. GPU i
 * runs at 1980 - i MHz and 40 + i degrees. */
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX 8u
#define FAILED 999

static unsigned gpus[GPUS_MAX]; /* a handle is the address of one of them */

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **gpu);
int nvmlDeviceGetClockInfo(void *gpu, unsigned type, unsigned *mhz);
int nvmlDeviceGetTemperature(void *gpu, unsigned type, unsigned *degrees);
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, unsigned long long *reasons);

static unsigned long number(const char *name, unsigned long otherwise) {
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoul(text, NULL, 0);
}

static int result(const char *what) {
    const char *bad = getenv("FAKE_NVML_FAIL");
    return bad != NULL && strcmp(bad, what) == 0 ? FAILED : 0;
}

int nvmlInit_v2(void) {
    for (unsigned i = 0; i < GPUS_MAX; i++) {
        gpus[i] = i;
    }
    return result("init");
}

int nvmlShutdown(void) {
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = (unsigned)number("FAKE_NVML_GPUS", 1);
    return result("count");
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu) {
    *gpu = &gpus[index % GPUS_MAX];
    return result("handle");
}

int nvmlDeviceGetClockInfo(void *gpu, unsigned type, unsigned *mhz) {
    *mhz = type == 1 ? 1980 - *(unsigned *)gpu : 7; /* 1: of the SMs */
    return result("clock");
}

#ifdef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(void *gpu, unsigned long long *reasons) {
    (void)gpu;
    *reasons = number("FAKE_NVML_REASONS", 0);
    return result("reasons");
}
#else
int nvmlDeviceGetHandleByUUID(const char *uuid, void **gpu) {
    const char *known = getenv("FAKE_NVML_UUID");
    *gpu = &gpus[(number("FAKE_NVML_GPUS", 1) - 1) % GPUS_MAX];
    return known != NULL && strcmp(uuid, known) == 0 ? 0 : FAILED;
}

int nvmlDeviceGetTemperature(void *gpu, unsigned type, unsigned *degrees) {
    *degrees = type == 0 ? 40 + *(unsigned *)gpu : 7;
    return result("temperature");
}

int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, unsigned long long *reasons) {
    (void)gpu;
    *reasons = number("FAKE_NVML_REASONS", 0);
    return result("reasons");
}
#endif

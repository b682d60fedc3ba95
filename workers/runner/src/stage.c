/* Names of the stages; see stage.h. */
#include "stage.h"

const char *stage_name(int stage) {
    static const char *const names[STAGE_COUNT] = {
        "context", "buffers", "compile", "link", "dispatch", "readback", "verify", "timing", "rest",
    };
    return stage >= 0 && stage < STAGE_COUNT ? names[stage] : "unknown";
}

/* tilefarm-runner: command line of the on-device program. Results are JSON lines on stdout, words
 * for people go to stderr (docs/wire-formats.md). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "execute.h"
#include "exit_codes.h"
#include "job.h"
#include "limits.h"
#include "probe.h"
#include "stream.h"
#include "supervise.h"
#include "version.h"

static const char usage[] =
    "usage: tilefarm-runner probe [--api gles|vulkan]\n"
    "                                            print a profile for each API and GPU that opens\n"
    "       tilefarm-runner run JOB_DIR          run JOB_DIR/job.txt, print results as JSON lines\n"
    "       tilefarm-runner --version\n"
    "environment:\n"
    "  TILEFARM_IMPOSE=shared_bytes=16384,float16=0,...\n"
    "                                           lower the device's limits, take features away\n"
    "  TILEFARM_VALIDATE=1                      Vulkan under the Khronos validation layer\n"
    "  TILEFARM_SYSFS=DIR                       read sensors below DIR\n"
    "  TILEFARM_NVML=FILE                       load this library for the sensors of NVIDIA's "
    "GPUs\n"
    "  TILEFARM_EGL_PLATFORM=surfaceless|device|default\n"
    "exit code: 0 final record written, 1 stdout closed or signal, 2 usage or job file,\n"
    "           3 no driver could be opened (probe)\n";

static int refuse(const char *what) {
    (void)fprintf(stderr, "tilefarm-runner: %s\n", what);
    return EXIT_USAGE;
}

/* Tried on the largest limits there are, so that mistakes show before any driver is opened. */
static bool impose_is_valid(const char *spec) {
    struct limits limits;
    char reason[LIMIT_REASON_SIZE];
    memset(&limits, 0xff, sizeof limits.value);
    if (limits_impose(&limits, spec, reason)) {
        return true;
    }
    (void)fprintf(stderr, "tilefarm-runner: TILEFARM_IMPOSE: %s\n", reason);
    return false;
}

/* Compile times and first dispatches are measured cold: a driver's cache on disk would make the
 * second run of a suite another experiment than the first. Whoever sets these variables keeps them.
 */
static void without_shader_caches(void) {
    (void)setenv("MESA_SHADER_CACHE_DISABLE", "true", 0);
    (void)setenv("__GL_SHADER_DISK_CACHE", "0", 0);
}

static int run_probe(int argc, char **argv, const char *impose) {
    struct probe probe = {.impose = impose};
    if (argc == 4 && strcmp(argv[2], "--api") == 0) {
        probe.api = argv[3];
    } else if (argc != 2) {
        return refuse("probe: expected: probe [--api gles|vulkan]");
    }
    if (probe.api != NULL && backend_find(probe.api) == NULL) {
        return refuse("probe: this runner has no such API; it knows gles and vulkan");
    }
    return probe_run(&probe, STDOUT_FILENO);
}

static int run_job(const char *dir, const char *impose) {
    struct job_error error;
    const char *root = getenv("TILEFARM_SYSFS");
    struct job *job = job_load(dir, &error);
    if (job == NULL) {
        return refuse(error.text);
    }
    struct execution execution = {
        .job = job,
        .impose = impose,
        .sysfs_root = root == NULL ? "" : root,
        .board = stage_board_new(),
    };
    const struct work work = {.run = execute_batch, .arg = &execution, .board = execution.board};
    struct stream out;
    stream_open(&out, STDOUT_FILENO);
    bool good = execution.board != NULL && stream_hello(&out, job->run) &&
                supervise(job, &out, &work) && stream_final(&out);
    job_free(job);
    return good ? EXIT_FINAL : EXIT_NO_READER;
}

int main(int argc, char **argv) {
    const char *impose = getenv("TILEFARM_IMPOSE");
    without_shader_caches();
    (void)signal(SIGPIPE, SIG_IGN); /* a closed stdout must end the child, not only us */
    supervise_catch_signals();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        return printf("tilefarm-runner %s\n", RUNNER_VERSION) > 0 ? EXIT_FINAL : EXIT_NO_READER;
    }
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        return fputs(usage, stdout) >= 0 ? EXIT_FINAL : EXIT_NO_READER;
    }
    if (!impose_is_valid(impose)) {
        return EXIT_USAGE;
    }
    if (argc >= 2 && strcmp(argv[1], "probe") == 0) {
        return run_probe(argc, argv, impose);
    }
    if (argc == 3 && strcmp(argv[1], "run") == 0) {
        return run_job(argv[2], impose);
    }
    (void)fputs(usage, stderr);
    return EXIT_USAGE;
}

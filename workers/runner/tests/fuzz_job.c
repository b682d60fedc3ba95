/* Fuzz test of the job parser. With libFuzzer (preset fuzz) it is a target; as a plain program it
 * changes the files of a seed folder in a fixed sequence of ways:
 *
 *     fuzz_job SEED_DIR ITERATIONS
 *
 * Whatever comes in, the parser gives a job or a reason that names a line, and leaks nothing. */
#include <stdint.h>

#include "check.h"
#include "job.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct job_error error = {""};
    char *text =
        malloc(size == 0 ? 1 : size); /* exact, so that the sanitizer sees a byte too far */
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    struct job *job = job_parse(text, size, "/job", &error);
    if (job == NULL) {
        CHECK(strncmp(error.text, "job.txt:", 8) == 0 && error.text[8] >= '1' &&
              error.text[8] <= '9');
    } else {
        CHECK(job->run[0] != '\0' && job->blobs != NULL && job->heartbeat_ms > 0);
    }
    job_free(job);
    free(text);
    return 0;
}

#ifndef RUNNER_LIBFUZZER

#include <dirent.h>

#define SIZE_MAX_FUZZED 8192u

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t below) { /* xorshift: the same sequence everywhere */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static const char *const words[] = {"\n",
                                    " ",
                                    "case x\n",
                                    "endcase\n",
                                    "end 1\n",
                                    "0",
                                    "in",
                                    "out",
                                    ",",
                                    "4294967296",
                                    "-1",
                                    "nan",
                                    "check",
                                    "\r",
                                    "#",
                                    "buffer y out ",
                                    "\x80",
                                    "1e999",
                                    "constants ",
                                    "values ",
                                    "subgroup ",
                                    "shape c ",
                                    "idle_replays ",
                                    "enable ",
                                    "adapter vulkan "};

static size_t change(uint8_t *text, size_t size) {
    size_t at = size == 0 ? 0 : draw((uint32_t)size);
    const char *word = words[draw(sizeof words / sizeof words[0])];
    size_t length = strlen(word);
    size_t line = size - at < 60 ? size - at : 60;
    switch (draw(5)) {
    case 0:
        if (size > 0) {
            text[at] = (uint8_t)draw(256);
        }
        return size;
    case 1: /* cut */
        memmove(text + at, text + at + line, size - at - line);
        return size - line;
    case 2: /* repeat */
        if (size + line <= SIZE_MAX_FUZZED) {
            memmove(text + at + line, text + at, size - at);
            return size + line;
        }
        return size;
    case 3: /* truncate, seldom */
        return draw(8) == 0 ? at : size;
    default: /* insert a word of the language */
        if (size + length <= SIZE_MAX_FUZZED) {
            memmove(text + at + length, text + at, size - at);
            memcpy(text + at, word, length);
            return size + length;
        }
        return size;
    }
}

static void mutate(const uint8_t *seed, size_t size, unsigned iterations) {
    static uint8_t text[SIZE_MAX_FUZZED];
    for (unsigned i = 0; i < iterations; i++) {
        size_t now = size;
        memcpy(text, seed, size);
        for (uint32_t changes = draw(6); changes > 0; changes--) {
            now = change(text, now);
        }
        (void)LLVMFuzzerTestOneInput(text, now);
    }
}

int main(int argc, char **argv) {
    static uint8_t seed[SIZE_MAX_FUZZED];
    unsigned seeds = 0;
    CHECK(argc == 3);
    DIR *folder = opendir(argv[1]);
    CHECK(folder != NULL);
    for (struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        char path[1024];
        if (e->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], e->d_name);
        FILE *file = fopen(path, "rb");
        CHECK(file != NULL);
        size_t size = fread(seed, 1, sizeof seed, file);
        CHECK(size > 0 && size < sizeof seed && fclose(file) == 0);
        (void)LLVMFuzzerTestOneInput(seed, size);
        mutate(seed, size, (unsigned)strtoul(argv[2], NULL, 10));
        seeds++;
    }
    CHECK(closedir(folder) == 0 && seeds > 0);
    return 0;
}

#endif

/* Reads a job file line by line: the header's statements, what may stand where, and the end.
 * Everything that is wrong is told as "job.txt:LINE: what". */
#include "parser.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool on_format(struct parser *p) {
    if (strcmp(word(p, 1), "1") != 0) {
        return parser_bad(p, "format version \"%.80s\" is unknown (this runner knows: 1)",
                          word(p, 1));
    }
    return true;
}

static bool on_run(struct parser *p) {
    return take_id(p, 1, p->job->run);
}

static bool on_blobs(struct parser *p) {
    const char *path = word(p, 1);
    size_t room = strlen(p->job->dir) + strlen(path) + 2;
    p->job->blobs = malloc(room);
    if (p->job->blobs == NULL) {
        return parser_bad(p, "out of memory");
    }
    if (path[0] == '/') {
        (void)snprintf(p->job->blobs, room, "%s", path);
    } else {
        (void)snprintf(p->job->blobs, room, "%s/%s", p->job->dir, path);
    }
    return true;
}

static bool on_heartbeat(struct parser *p) {
    return take_unsigned(p, 1, 3600000, &p->job->heartbeat_ms);
}

/* Of which API, so that a job of several never opens another API's GPU by that name. */
static bool on_adapter(struct parser *p) {
    return take_id(p, 1, p->job->adapter_api) && take_id(p, 2, p->job->adapter);
}

static bool is_feature(struct parser *p, const char *name) {
    return word_is_id(name) ||
           parser_bad(p, "enable: \"%.80s\" is not the name of a feature", name);
}

static bool on_enable(struct parser *p) {
    p->job->enable = strdup(word(p, 1));
    return p->job->enable == NULL ? parser_bad(p, "out of memory") : take_list(p, 1, is_feature);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool ids_are_unique(struct parser *p) {
    size_t count = p->job->case_count;
    const char **ids = malloc((count == 0 ? 1 : count) * sizeof *ids);
    if (ids == NULL) {
        return parser_bad(p, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        ids[i] = p->job->cases[i].id;
    }
    qsort(ids, count, sizeof *ids, by_text);
    bool unique = true;
    for (size_t i = 1; i < count && unique; i++) {
        unique =
            strcmp(ids[i - 1], ids[i]) != 0 || parser_bad(p, "end: case %s is given twice", ids[i]);
    }
    free(ids);
    return unique;
}

static bool on_end(struct parser *p) {
    uint64_t count = 0;
    if (!take_number(p, 1, 0, UINT32_MAX, "end", &count)) {
        return false;
    }
    if (count != p->job->case_count) {
        return parser_bad(p, "end: says %" PRIu64 " cases, but %zu are given", count,
                          p->job->case_count);
    }
    p->ended = true;
    return ids_are_unique(p);
}

enum place { ANYWHERE, IN_HEADER, IN_CASE };

struct statement {
    const char *name;
    size_t min_words, max_words; /* with the name */
    enum place place;
    bool once;
    bool (*read)(struct parser *);
    const char *usage;
};

static const struct statement statements[] = {
    {"tilefarm-job", 2, 2, IN_HEADER, true, on_format, "tilefarm-job 1"},
    {"run", 2, 2, IN_HEADER, true, on_run, "run RUN_ID"},
    {"blobs", 2, 2, IN_HEADER, true, on_blobs, "blobs DIR"},
    {"heartbeat_ms", 2, 2, IN_HEADER, true, on_heartbeat, "heartbeat_ms N"},
    {"adapter", 3, 3, IN_HEADER, true, on_adapter, "adapter API ADAPTER"},
    {"enable", 2, 2, IN_HEADER, true, on_enable, "enable FEATURE[,FEATURE...]"},
    {"case", 2, 2, ANYWHERE, false, on_case, "case CASE_ID"},
    {"end", 2, 2, ANYWHERE, false, on_end, "end N"},
    {"api", 2, 2, IN_CASE, true, on_api, "api gles"},
    {"deadline_ms", 2, 2, IN_CASE, true, on_deadline, "deadline_ms N"},
    {"warmup", 2, 2, IN_CASE, true, on_warmup, "warmup N"},
    {"warmup_ms", 2, 2, IN_CASE, true, on_warmup_ms, "warmup_ms N"},
    {"repeats", 2, 2, IN_CASE, true, on_repeats, "repeats N"},
    {"replays", 2, 2, IN_CASE, true, on_replays, "replays N"},
    {"idle_replays", 3, 3, IN_CASE, true, on_idle_replays, "idle_replays N IDLE_MS"},
    {"buffer", 5, 6, IN_CASE, false, on_buffer, "buffer NAME ROLE DTYPE COUNT [BLOB]"},
    {"pass", 7, 7, IN_CASE, false, on_pass, "pass SHADER_BLOB GX GY GZ SHARED_BYTES BUF[,BUF...]"},
    {"constants", 2, 2, IN_CASE, false, on_constants, "constants V0[,V1...]"},
    {"values", 2, 2, IN_CASE, false, on_values, "values V0[,V1...]"},
    {"subgroup", 2, 2, IN_CASE, false, on_subgroup, "subgroup SIZE"},
    {"check", 6, 6, IN_CASE, false, on_check, "check BUFFER REF_BLOB ATOL RTOL NMSE"},
    {"shape", 3, 3, IN_CASE, false, on_shape, "shape BUFFER D0[,D1...]"},
    {"keep", 3, 3, IN_CASE, false, on_keep, "keep BUFFER always|failed"},
    {"endcase", 1, 1, IN_CASE, false, on_endcase, "endcase"},
};
#define STATEMENTS (sizeof statements / sizeof statements[0])
#define HEADER_BITS 0xfu /* the first four statements */

static bool may_stand_here(struct parser *p, size_t index) {
    const struct statement *s = &statements[index];
    unsigned bit = 1u << index;
    unsigned *seen = s->place == IN_CASE ? &p->seen_case : &p->seen_header;
    if (p->seen_header == 0 && index != 0) {
        return parser_bad(p, "the first statement must be \"tilefarm-job 1\"");
    }
    if (s->place == IN_CASE && p->open == NULL) {
        return parser_bad(p, "%s: only between case and endcase", s->name);
    }
    if (s->place != IN_CASE && p->open != NULL) {
        return parser_bad(p, "%s: case %s has no endcase", s->name, p->open->id);
    }
    if (s->place == IN_HEADER && p->job->case_count > 0) {
        return parser_bad(p, "%s: only before the first case", s->name);
    }
    if (s->place == ANYWHERE && (p->seen_header & HEADER_BITS) != HEADER_BITS) {
        return parser_bad(p, "%s: run, blobs and heartbeat_ms must come before", s->name);
    }
    if (s->once && (*seen & bit) != 0) {
        return parser_bad(p, "%s: is given twice", s->name);
    }
    *seen |= bit;
    return true;
}

static bool read_statement(struct parser *p) {
    if (p->ended) {
        return parser_bad(p, "nothing may follow \"end\"");
    }
    for (size_t i = 0; i < STATEMENTS; i++) {
        const struct statement *s = &statements[i];
        if (strcmp(word(p, 0), s->name) != 0) {
            continue;
        }
        if (p->words.count < s->min_words || p->words.count > s->max_words) {
            return parser_bad(p, "%s: expected: %s", s->name, s->usage);
        }
        return may_stand_here(p, i) && s->read(p);
    }
    return parser_bad(p, "unknown statement \"%.80s\"", word(p, 0));
}

/* The line is NUL-terminated; size tells of NULs inside. */
static bool read_line(struct parser *p, char *line, size_t size) {
    if (size > JOB_LINE_MAX) {
        return parser_bad(p, "line of %zu bytes (at most %d)", size, JOB_LINE_MAX);
    }
    for (size_t i = 0; i < size; i++) {
        if (line[i] < 0x20 || line[i] > 0x7e) {
            return parser_bad(p, "byte 0x%02x is not printable ASCII", (unsigned char)line[i]);
        }
    }
    if (size == 0 || line[0] == '#') {
        return true;
    }
    const char *wrong = words_split(&p->words, line);
    return wrong == NULL ? read_statement(p) : parser_bad(p, "%s", wrong);
}

static bool read_lines(struct parser *p, char *text, size_t size) {
    char *at = text, *end = text + size;
    while (at < end) {
        p->line++;
        char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL) {
            return parser_bad(p, "the file is truncated inside this line");
        }
        *newline = '\0';
        if (!read_line(p, at, (size_t)(newline - at))) {
            return false;
        }
        at = newline + 1;
    }
    p->line++;
    return p->ended || parser_bad(p, "the file is truncated: no \"end N\"");
}

struct job *job_parse(char *text, size_t size, const char *dir, struct job_error *error) {
    struct parser p = {.error = error, .job = calloc(1, sizeof *p.job)};
    if (p.job != NULL) {
        p.job->dir = strdup(dir);
    }
    if (p.job == NULL || p.job->dir == NULL) {
        (void)parser_bad(&p, "out of memory");
        job_free(p.job);
        return NULL;
    }
    if (!read_lines(&p, text, size)) {
        job_free(p.job);
        return NULL;
    }
    return p.job;
}

/* Taking words out of job statements; see parser.h. */
#include "parser.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parser_bad(struct parser *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int head = snprintf(p->error->text, sizeof p->error->text, "job.txt:%zu: ", p->line);
    (void)vsnprintf(p->error->text + head, sizeof p->error->text - (size_t)head, format, args);
    va_end(args);
    return false;
}

const char *word(const struct parser *p, size_t i) {
    return p->words.word[i];
}

void *parser_grow(void *items, size_t count, size_t item_size) {
    bool full = (count & (count - 1)) == 0; /* 0 and powers of two */
    return full ? realloc(items, (count == 0 ? 1 : count * 2) * item_size) : items;
}

bool take_number(struct parser *p, size_t i, uint64_t low, uint64_t high, const char *what,
                 uint64_t *value) {
    if (!word_u64(word(p, i), low, high, value)) {
        return parser_bad(p, "%s: \"%.80s\" is not a whole number from %" PRIu64 " to %" PRIu64,
                          what, word(p, i), low, high);
    }
    return true;
}

bool take_unsigned(struct parser *p, uint64_t low, uint64_t high, unsigned *value) {
    uint64_t wide = 0;
    if (!take_number(p, 1, low, high, word(p, 0), &wide)) {
        return false;
    }
    *value = (unsigned)wide;
    return true;
}

bool take_id(struct parser *p, size_t i, char id[JOB_ID_SIZE]) {
    if (!word_is_id(word(p, i))) {
        return parser_bad(p, "%s: \"%.80s\" is not an id ([A-Za-z0-9._-], 1 to 80 characters)",
                          word(p, 0), word(p, i));
    }
    memcpy(id, word(p, i), strlen(word(p, i)) + 1);
    return true;
}

bool take_hash(struct parser *p, size_t i, char hash[JOB_HASH_SIZE]) {
    if (!word_is_hash(word(p, i))) {
        return parser_bad(p, "%s: \"%.80s\" is not a blob name (64 lower-case hex digits)",
                          word(p, 0), word(p, i));
    }
    memcpy(hash, word(p, i), JOB_HASH_SIZE);
    return true;
}

bool take_choice(struct parser *p, size_t i, const char *const *choices, int *chosen) {
    for (int k = 0; choices[k] != NULL; k++) {
        if (strcmp(word(p, i), choices[k]) == 0) {
            *chosen = k;
            return true;
        }
    }
    char known[64] = "";
    for (int k = 0; choices[k] != NULL; k++) {
        size_t used = strlen(known);
        (void)snprintf(known + used, sizeof known - used, "%s%s", k > 0 ? ", " : "", choices[k]);
    }
    return parser_bad(p, "%s: \"%.80s\" is unknown (known: %s)", word(p, 0), word(p, i), known);
}

bool take_list(struct parser *p, size_t i, bool (*each)(struct parser *p, const char *item)) {
    for (char *item = p->words.word[i]; item != NULL;) {
        char *comma = strchr(item, ',');
        if (comma != NULL) {
            *comma = '\0';
        }
        if (!each(p, item)) {
            return false;
        }
        item = comma == NULL ? NULL : comma + 1;
    }
    return true;
}

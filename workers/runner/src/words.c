/* Words of a job file; see words.h. */
#include "words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *words_split(struct words *words, char *line) {
    words->count = 0;
    char *at = line;
    for (;;) {
        char *space = strchr(at, ' ');
        if (at == space || *at == '\0') {
            return "words must be separated by one space, with none at either end";
        }
        if (words->count == WORDS_MAX) {
            return "too many words";
        }
        words->word[words->count++] = at;
        if (space == NULL) {
            return NULL;
        }
        *space = '\0';
        at = space + 1;
    }
}

bool word_is_id(const char *word) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    size_t size = strlen(word);
    return size >= 1 && size <= 80 && strspn(word, allowed) == size;
}

bool word_is_hash(const char *word) {
    return strlen(word) == 64 && strspn(word, "0123456789abcdef") == 64;
}

bool word_u64(const char *word, uint64_t low, uint64_t high, uint64_t *value) {
    uint64_t sum = 0;
    if (*word == '\0') {
        return false;
    }
    for (const char *p = word; *p != '\0'; p++) {
        if (*p < '0' || *p > '9') {
            return false;
        }
        uint64_t digit = (uint64_t)(*p - '0');
        if (sum > (UINT64_MAX - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    *value = sum;
    return sum >= low && sum <= high;
}

bool word_tolerance(const char *word, double *value) {
    if (*word == '\0' || strspn(word, "0123456789.eE+-") != strlen(word)) {
        return false; /* strtod alone would take "nan", "inf" and hexadecimal */
    }
    char *end = NULL;
    *value = strtod(word, &end);
    return *end == '\0' && isfinite(*value) && *value >= 0;
}

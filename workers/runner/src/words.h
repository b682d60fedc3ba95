/* The words of a job file's line, and what a single word may be. */
#ifndef TILEFARM_WORDS_H
#define TILEFARM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_MAX 8

struct words {
    char *word[WORDS_MAX];
    size_t count;
};

/* Cuts the NUL-terminated line in place at its spaces. Gives NULL, or what is wrong with the line.
 */
const char *words_split(struct words *words, char *line);

bool word_is_id(const char *word);   /* [A-Za-z0-9._-]{1,80} */
bool word_is_hash(const char *word); /* 64 lower-case hex digits */
/* Decimal digits only, within [low, high]. */
bool word_u64(const char *word, uint64_t low, uint64_t high, uint64_t *value);
/* Decimal, finite, not negative. */
bool word_tolerance(const char *word, double *value);

#endif

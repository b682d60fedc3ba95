/* What the files of the job parser share: its state, and how it takes the words of a statement. */
#ifndef TILEFARM_PARSER_H
#define TILEFARM_PARSER_H

#include "job.h"
#include "words.h"

struct parser {
    struct job *job;
    struct job_case *open;     /* the case between "case" and "endcase", or NULL */
    struct job_buffer *shaped; /* whose shape is being read */
    size_t line;
    unsigned seen_header, seen_case; /* statements already given, by bit */
    bool ended;
    struct words words;
    struct job_error *error;
};

/* Notes "job.txt:LINE: what". Always false, so that callers can return it. */
bool __attribute__((format(printf, 2, 3))) parser_bad(struct parser *p, const char *format, ...);

/* Each take_ function reads one word of the statement; false after parser_bad. */
const char *word(const struct parser *p, size_t i);
bool take_number(struct parser *p, size_t i, uint64_t low, uint64_t high, const char *what,
                 uint64_t *value);
bool take_unsigned(struct parser *p, uint64_t low, uint64_t high, unsigned *value); /* word 1 */
bool take_id(struct parser *p, size_t i, char id[JOB_ID_SIZE]);
bool take_hash(struct parser *p, size_t i, char hash[JOB_HASH_SIZE]);
bool take_choice(struct parser *p, size_t i, const char *const *choices, int *chosen);

/* Splits word i at its commas and hands each piece to `each`, which gives false after parser_bad.
 */
bool take_list(struct parser *p, size_t i, bool (*each)(struct parser *p, const char *item));

/* Makes room for one more element of an array that grows by doubling; NULL when memory is short. */
void *parser_grow(void *items, size_t count, size_t item_size);

/* The statements between "case" and "endcase" (job_case.c). */
bool on_case(struct parser *p);
bool on_api(struct parser *p);
bool on_deadline(struct parser *p);
bool on_warmup(struct parser *p);
bool on_warmup_ms(struct parser *p);
bool on_repeats(struct parser *p);
bool on_replays(struct parser *p);
bool on_idle_replays(struct parser *p);
bool on_buffer(struct parser *p);
bool on_endcase(struct parser *p);
/* Of passes and outputs (job_pass.c). */
bool on_pass(struct parser *p);
bool on_constants(struct parser *p);
bool on_values(struct parser *p);
bool on_subgroup(struct parser *p);
bool on_check(struct parser *p);
bool on_shape(struct parser *p);
bool on_keep(struct parser *p);

#endif

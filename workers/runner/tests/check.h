/* Assertions of the C tests: the first that fails ends the test and says where. */
#ifndef TILEFARM_TESTS_CHECK_H
#define TILEFARM_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_TEXT(got, wanted)                                                                    \
    do {                                                                                           \
        if (strcmp((got), (wanted)) != 0) {                                                        \
            (void)fprintf(stderr, "%s:%d: got \"%s\", wanted \"%s\"\n", __FILE__, __LINE__, (got), \
                          (wanted));                                                               \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_HAS(text, part)                                                                      \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL) {                                                      \
            (void)fprintf(stderr, "%s:%d: \"%s\" is not in:\n%s\n", __FILE__, __LINE__, (part),    \
                          (text));                                                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define CHECK_LACKS(text, part)                                                                    \
    do {                                                                                           \
        if (strstr((text), (part)) != NULL) {                                                      \
            (void)fprintf(stderr, "%s:%d: \"%s\" is in:\n%s\n", __FILE__, __LINE__, (part),        \
                          (text));                                                                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif

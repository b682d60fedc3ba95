/* Exact quantiles (nearest rank) by selection; the array is reordered. */
#ifndef TILEFARM_QUANTILE_H
#define TILEFARM_QUANTILE_H

#include <stddef.h>

/* The ceil(q·count)-th smallest of count values without NaN; NaN for count 0. */
double quantile(double *values, size_t count, double q);

#endif

/* Quickselect; see quantile.h. */
#include "quantile.h"

#include <math.h>

static void swap(double *a, double *b) {
    double t = *a;
    *a = *b;
    *b = t;
}

/* Median of three, which keeps sorted and constant arrays away from quadratic time. */
static double pivot_of(const double *v, size_t low, size_t high) {
    double a = v[low], b = v[low + (high - low) / 2], c = v[high];
    return a < b ? (b < c ? b : (a < c ? c : a)) : (a < c ? a : (b < c ? c : b));
}

double quantile(double *values, size_t count, double q) {
    if (count == 0) {
        return NAN;
    }
    double rank = ceil(q * (double)count);
    size_t k = rank < 1 ? 0 : (size_t)rank - 1;
    if (k >= count) {
        k = count - 1;
    }
    size_t low = 0, high = count - 1;
    while (low < high) {
        double pivot = pivot_of(values, low, high);
        size_t i = low, j = high;
        for (;;) { /* Hoare: both scans stop at the pivot's value, so they stay inside */
            while (values[i] < pivot) {
                i++;
            }
            while (values[j] > pivot) {
                j--;
            }
            if (i >= j) {
                break;
            }
            swap(&values[i], &values[j]);
            i++;
            j--;
        }
        /* Left of i is <= pivot, right of j is >= pivot; j == i or j == i - 1. */
        if (k <= j && j < high) {
            high = j;
        } else if (k > j) {
            low = j + 1;
        } else {
            high--; /* j == high: the last value is the pivot, a maximum */
            if (k > high) {
                break;
            }
        }
    }
    return values[k];
}

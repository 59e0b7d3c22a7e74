/* Cosine transforms of several sets side by side. Each step is a rotation or a sum and a difference, none of
   which makes rounding grow. */
#include "lanes.h"

#ifdef HAVE_LANES

static void odd_cosines(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work);

/* Even coefficients are those of the sums of mirrored numbers, odd ones those of their differences. */
VECTORISED void cosines(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    Py_ssize_t half = n / 2;
    if (n == 1)
        return;
    if (n == 2) {
        Lanes sum = x[0] + x[1];
        x[1] = (x[0] - x[1]) * 0.7071067811865476;
        x[0] = sum;
        return;
    }
    for (Py_ssize_t j = 0; j < half; j++) {
        work[j] = x[j] + x[n - 1 - j];
        work[half + j] = x[j] - x[n - 1 - j];
    }
    cosines(work, half, turns, x);
    odd_cosines(work + half, half, turns, x);
    for (Py_ssize_t k = 0; k < half; k++) {
        x[2 * k] = work[k];
        x[2 * k + 1] = work[half + k];
    }
}

VECTORISED void cosines_back(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    Py_ssize_t half = n / 2;
    if (n == 1)
        return;
    for (Py_ssize_t k = 0; k < half; k++) {
        work[k] = x[2 * k];
        work[half + k] = x[2 * k + 1];
    }
    cosines_back(work, half, turns, x);
    odd_cosines(work + half, half, turns, x);
    for (Py_ssize_t j = 0; j < half; j++) {
        x[j] = work[j] + work[half + j];
        x[n - 1 - j] = work[j] - work[half + j];
    }
}

/* The sums of x_j cos((2j + 1) (2k + 1) pi / 4n), which are their own transpose. */
VECTORISED static void odd_cosines(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    Py_ssize_t half = n / 2;
    if (n == 1) {
        x[0] *= 0.7071067811865476;
        return;
    }
    for (Py_ssize_t j = 0; j < half; j++) {
        double c = turns[n + 2 * j], s = turns[n + 2 * j + 1];
        Lanes turned = c * x[n - 1 - j] - s * x[j];
        work[j] = c * x[j] + s * x[n - 1 - j];
        work[half + j] = j % 2 ? -turned : turned;
    }
    cosines(work, half, turns, x);
    cosines(work + half, half, turns, x);
    x[0] = work[0];
    for (Py_ssize_t m = 1; m < half; m++) {
        x[2 * m] = work[m] + work[n - m];
        x[2 * m - 1] = work[m] - work[n - m];
    }
    x[n - 1] = -work[half];
}

#endif

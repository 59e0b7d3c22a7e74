/* Cosine transforms of several sets side by side. Each step is a rotation or a sum and a difference, none of
   which makes rounding grow. Even coefficients are those of the sums of mirrored numbers, odd ones those of their
   differences: the sums of x_j cos((2j + 1) (2k + 1) pi / 4n), which are their own transpose. */
#include "lanes.h"

#ifdef HAVE_LANES

/* The transforms of a number of numbers from those of half as many. */
#define HALVED(x, n, half, even, odd)                 \
    for (Py_ssize_t j = 0; j < half; j++) {           \
        even[j] = x[j] + x[n - 1 - j];                \
        odd[j] = x[j] - x[n - 1 - j];                 \
    }
#define TURNED(x, n, half, turns, even, odd)                                       \
    for (Py_ssize_t j = 0; j < half; j++) {                                        \
        double c = turns[n + 2 * j], s = turns[n + 2 * j + 1];                     \
        Lanes turned = c * x[n - 1 - j] - s * x[j];                                \
        even[j] = c * x[j] + s * x[n - 1 - j];                                     \
        odd[j] = j % 2 ? -turned : turned;                                         \
    }
#define DEALT(x, half, even, odd)           \
    for (Py_ssize_t k = 0; k < half; k++) { \
        even[k] = x[2 * k];                 \
        odd[k] = x[2 * k + 1];              \
    }
#define MERGED(x, half, even, odd)          \
    for (Py_ssize_t k = 0; k < half; k++) { \
        x[2 * k] = even[k];                 \
        x[2 * k + 1] = odd[k];              \
    }
#define MIRRORED(x, n, half, even, odd)     \
    for (Py_ssize_t j = 0; j < half; j++) { \
        x[j] = even[j] + odd[j];            \
        x[n - 1 - j] = even[j] - odd[j];    \
    }
#define CROSSED(x, n, half, even, odd)              \
    x[0] = even[0];                                 \
    for (Py_ssize_t m = 1; m < half; m++) {         \
        x[2 * m] = even[m] + odd[half - m];         \
        x[2 * m - 1] = even[m] - odd[half - m];     \
    }                                               \
    x[n - 1] = -odd[0];

/* Up to eight numbers stay in registers. */
#define SMALL(n, half)                                                  \
    PART void cosines_##n(Lanes *x, const double *turns)                \
    {                                                                   \
        Lanes even[half], odd[half];                                    \
        HALVED(x, n, half, even, odd)                                   \
        cosines_##half(even, turns);                                    \
        odd_cosines_##half(odd, turns);                                 \
        MERGED(x, half, even, odd)                                      \
    }                                                                   \
    PART void cosines_back_##n(Lanes *x, const double *turns)           \
    {                                                                   \
        Lanes even[half], odd[half];                                    \
        DEALT(x, half, even, odd)                                       \
        cosines_back_##half(even, turns);                               \
        odd_cosines_##half(odd, turns);                                 \
        MIRRORED(x, n, half, even, odd)                                 \
    }                                                                   \
    PART void odd_cosines_##n(Lanes *x, const double *turns)            \
    {                                                                   \
        Lanes even[half], odd[half];                                    \
        TURNED(x, n, half, turns, even, odd)                            \
        cosines_##half(even, turns);                                    \
        cosines_##half(odd, turns);                                     \
        CROSSED(x, n, half, even, odd)                                  \
    }

#define cosines_1(x, turns) ((void)(x), (void)(turns))
#define cosines_back_1(x, turns) ((void)(x), (void)(turns))
#define odd_cosines_1(x, turns) ((void)(turns), (void)((x)[0] *= 0.7071067811865476))
SMALL(2, 1)
SMALL(4, 2)
SMALL(8, 4)

#define IF_SMALL(transform)            \
    if (n == 8)                        \
        transform##_8(x, turns);       \
    else if (n == 4)                   \
        transform##_4(x, turns);       \
    else if (n == 2)                   \
        transform##_2(x, turns);       \
    else if (n == 1)                   \
        transform##_1(x, turns);       \
    if (n <= 8)                        \
        return;

static void odd_cosines(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work);

VECTORISED void cosines(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    Py_ssize_t half = n / 2;
    Lanes *even = work, *odd = work + half;
    IF_SMALL(cosines)
    HALVED(x, n, half, even, odd)
    cosines(even, half, turns, x);
    odd_cosines(odd, half, turns, x);
    MERGED(x, half, even, odd)
}

VECTORISED void cosines_back(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    Py_ssize_t half = n / 2;
    Lanes *even = work, *odd = work + half;
    IF_SMALL(cosines_back)
    DEALT(x, half, even, odd)
    cosines_back(even, half, turns, x);
    odd_cosines(odd, half, turns, x);
    MIRRORED(x, n, half, even, odd)
}

VECTORISED static void odd_cosines(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    Py_ssize_t half = n / 2;
    Lanes *even = work, *odd = work + half;
    IF_SMALL(odd_cosines)
    TURNED(x, n, half, turns, even, odd)
    cosines(even, half, turns, x);
    cosines(odd, half, turns, x);
    CROSSED(x, n, half, even, odd)
}

#endif

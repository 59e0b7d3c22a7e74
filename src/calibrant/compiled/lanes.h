/* Numbers of several simulated sets side by side: what is done to one is done to all, so that a set's result
   depends neither on its neighbours nor on how wide the machine's vectors are. */
#ifndef CALIBRANT_LANES_H
#define CALIBRANT_LANES_H

#include "loops.h"
#include <math.h>

/* Vectors as GCC and Clang have them; other compilers leave these loops out. */
#if defined(__GNUC__)
#define HAVE_LANES
#pragma GCC diagnostic ignored "-Wpsabi" /* everything that takes vectors is inlined */

#ifndef LANES
#define LANES 4
#endif
typedef double Lanes __attribute__((vector_size(8 * LANES)));
typedef int64_t Bits __attribute__((vector_size(8 * LANES)));
typedef uint64_t Whole __attribute__((vector_size(8 * LANES)));
/* Functions that are part of the loops they are called in. */
#ifdef WIDE
#include <immintrin.h>
#define PART static inline __attribute__((always_inline, target("avx512f")))
#else
#define PART static inline __attribute__((always_inline))
#endif

PART Lanes all(double value)
{
    return value - (Lanes){0}; /* a sum would lose the sign of a zero, and so could not be left out */
}

PART Lanes load(const double *from)
{
    Lanes value;
    memcpy(&value, from, sizeof(value));
    return value;
}

PART Lanes chosen(Bits which, Lanes yes, Lanes no)
{
    return (Lanes)(((Bits)yes & which) | ((Bits)no & ~which));
}

PART Lanes larger(Lanes a, Lanes b)
{
#ifdef WIDE
    return (Lanes)_mm512_max_pd((__m512d)a, (__m512d)b);
#else
    return chosen(a > b, a, b);
#endif
}

PART Lanes size_of(Lanes a)
{
    return (Lanes)((Bits)a & INT64_MAX);
}

PART Lanes root(Lanes a)
{
#ifdef WIDE
    return (Lanes)_mm512_sqrt_pd((__m512d)a);
#else
    for (int l = 0; l < LANES; l++)
        a[l] = sqrt(a[l]);
    return a;
#endif
}

/* Adding it to a number rounds that to a whole one, whose bits are then the last ones. */
#define SHIFT 6755399441055744.0 /* 1.5 * 2^52 */

/* A number times 2^k, k whole and not above some hundreds; those far below count as -1000. */
PART Lanes scaled(Lanes x, Lanes k)
{
    return (Lanes)((Bits)x + ((Bits)(larger(k, all(-1000.0)) + SHIFT) << 52));
}

/* The power of two that is nearest to exp(x). */
PART Lanes power_in(Lanes x)
{
    return (x * 1.4426950408889634 + SHIFT) - SHIFT;
}

/* The exponential to 14 digits, the same on every machine, as a number near 1 and a power of two: the series of what
   whole powers leave. */
PART Lanes exponential_and_power(Lanes x, Lanes *power)
{
    Lanes k = power_in(x), r, s, low;
    r = x - k * 6.93147180369123816490e-01;
    r -= k * 1.90821492927058770002e-10;
    s = r * r;
    low = (1.0 / 5040 * r + 1.0 / 720) * s + (1.0 / 120 * r + 1.0 / 24);
    low += ((1.0 / 39916800 * r + 1.0 / 3628800) * s + (1.0 / 362880 * r + 1.0 / 40320)) * (s * s);
    *power = k;
    return 1.0 + (r + ((1.0 / 6 * r + 0.5) + low * s) * s);
}

/* The exponential of numbers up to some hundreds; those that would be too small for a double stay at the least. */
PART Lanes exponential(Lanes x)
{
    Lanes power, s = exponential_and_power(larger(x, all(-708.0)), &power);
    return (Lanes)((Bits)s + ((Bits)(power + SHIFT) << 52));
}

/* The exponential without a power of two, at least as large as its own but for some hundreds. */
PART Lanes exponential_without(Lanes x, Lanes power)
{
    Lanes own, s = exponential_and_power(x, &own);
    return scaled(s, own - power);
}

/* Move the power of two of positive numbers over to another one. */
PART Lanes apart_from_power(Lanes x, Lanes *power)
{
    Bits bits = (Bits)x;
    *power += (Lanes)((bits >> 52) | INT64_C(0x4330000000000000)) - (4503599627370496.0 + 1023);
    return (Lanes)((bits & INT64_C(0x000FFFFFFFFFFFFF)) | INT64_C(0x3FF0000000000000));
}

/* The logarithm of positive numbers, likewise. */
PART Lanes logarithm(Lanes x)
{
    const int64_t half = INT64_C(0x3FE6A09E667F3BCD), offset = INT64_C(1024) << 52;
    Bits bits = (Bits)x;
    /* The power of two, as a logical shift leaves it: the sign bit is not set. */
    Bits power = (Bits)((Whole)(bits - half + offset) >> 52);
    Lanes k = (Lanes)(power | INT64_C(0x4330000000000000)) - (4503599627370496.0 + 1024);
    Lanes m = (Lanes)(bits - ((power - 1024) << 52)), s = (m - 1) / (m + 1), z = s * s, w = z * z, sum;
    sum = (1.0 / 15 * z + 1.0 / 13) * w + (1.0 / 11 * z + 1.0 / 9);
    sum = (1.0 / 17 * (w * w) + sum) * (w * z) + ((1.0 / 7 * z + 1.0 / 5) * z + 1.0 / 3);
    return k * 6.93147180369123816490e-01 + (2 * s + (2 * s * z * sum + k * 1.90821492927058770002e-10));
}

/* That of a number and a power of two. */
PART Lanes logarithm_with(Lanes x, Lanes power)
{
    return power * 6.93147180369123816490e-01 + (logarithm(x) + power * 1.90821492927058770002e-10);
}

/* The expected positive part of a normal variable: see `positive` in calibrant.posterior.dyadic_partition. */
PART Lanes positive_part(Lanes mean, Lanes sd)
{
    Lanes size = size_of(mean), q, density, t, series, far;
    sd = larger(sd, all(1e-30));
    q = size / sd;
    density = exponential(-0.5 * q * q);
    t = 1 / (1 + 0.2316418882663604 * q);
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
    far = sd * density * 0.3989422804014327 - size * (0.5 * series * density);
    return larger(far, all(0.0)) + larger(mean, all(0.0));
}

/* Cosine transforms of n = 2^k numbers in lanes, without factors: the sums over j of x_j cos((2j + 1) k pi / 2n),
   and the transpose. `turns` holds at n + 2j the cosine and at n + 2j + 1 the sine of (2j + 1) pi / 4n; `work`
   has the length of `x`. */
void cosines(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work);
void cosines_back(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work);

/* From numbers to coefficients of orthonormal cosines. */
PART void orthonormal(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    double first = sqrt(1.0 / (double)n), other = sqrt(2.0 / (double)n);
    cosines(x, n, turns, work);
    for (Py_ssize_t k = 0; k < n; k++)
        x[k] *= k ? other : first;
}

#endif
#endif

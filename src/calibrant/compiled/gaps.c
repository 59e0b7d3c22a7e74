/* Gaps of several classes at a size that is tried, and data that have them. calibrant.inference.interval has the
   same in numpy, and says why. */
#include "loops.h"
#include <math.h>

enum { GAP, SCORE, MASS, SPREAD, SCALE, FACTOR, SUMS, NOISE, CELLS };

/* Sums that do not wait for each other, so that their order is the same for vectors of any width. */
#define SIDE 8

#define CLIP(j, l)                                         \
    do {                                                   \
        double g = factor * gap[j], least = -score[j], most = 1 - score[j], square; \
        g = g > least ? g : least;                         \
        g = g < most ? g : most;                           \
        square = g * g;                                    \
        sums[0][l] += fabs(g) * mass[j];                   \
        sums[1][l] += square * mass[j];                    \
        sums[2][l] += square * square * mass[j];           \
        possible[j] = g;                                   \
    } while (0)

/* Clip a gap times a factor to what the scores allow, and sum its size, square and fourth power. */
VECTORISED static void clip(const double *gap, const double *score, const double *mass, double factor, int n,
                            double *possible, double (*sums)[SIDE])
{
    int whole = n - n % SIDE;
    for (int j = 0; j < whole; j += SIDE)
        for (int l = 0; l < SIDE; l++)
            CLIP(j + l, l);
    for (int j = whole; j < n; j++)
        CLIP(j, j - whole);
}

/* The residuals of cells in units: the gap of their rows, and noise with the variance of outcomes. */
VECTORISED static void add_noise(const double *possible, const double *noise, const double *score, const double *mass,
                                 const double *spread, double scale, int n, float *cells)
{
    double most = 4 * (scale * scale);
    for (int j = 0; j < n; j++) {
        double p = score[j] + possible[j], variance = p * (1 - p) * spread[j];
        variance = variance < most ? variance : most;
        variance = variance > 0 ? variance : 0;
        cells[j] = (float)((possible[j] * mass[j] + noise[j] * sqrt(variance)) / scale);
    }
}

/* One set of one class, its numbers in blocks. */
static void simulate(const Array *a, Py_ssize_t k, Py_ssize_t set)
{
    Py_ssize_t points = LENGTH(a[GAP], 2), row = k * LENGTH(a[GAP], 1) + set;
    double gaps[BLOCK], noises[BLOCK], possible[BLOCK], sums[3][SIDE] = {{0}}, *out = DOUBLES(a[SUMS]) + row * 3;
    for (Py_ssize_t first = 0; first < points; first += BLOCK) {
        int n = (int)(points - first < BLOCK ? points - first : BLOCK);
        Py_ssize_t at = row * points + first, of_class = k * points + first;
        const double *score = DOUBLES(a[SCORE]) + of_class, *mass = DOUBLES(a[MASS]) + of_class, *read;
        Py_ssize_t size = a[GAP].view.itemsize;
        read = doubles((const char *)a[GAP].view.buf + at * size, size, a[GAP].type, n, gaps);
        clip(read, score, mass, DOUBLES(a[FACTOR])[set], n, possible, sums);
        if (!a[NOISE].type)
            continue;
        size = a[NOISE].view.itemsize;
        read = doubles((const char *)a[NOISE].view.buf + at * size, size, a[NOISE].type, n, noises);
        add_noise(possible, read, score, mass, DOUBLES(a[SPREAD]) + of_class, DOUBLES(a[SCALE])[k], n,
                  (float *)a[CELLS].view.buf + at);
    }
    for (int i = 0; i < 3; i++) {
        const double *s = sums[i];
        out[i] = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
    }
}

/* gaps(gap, score, mass, spread, scale, factor, sums, noise, cells): sums[k, i] are those of the size, square and
   fourth power of factor[i] * gap[k, i], clipped, over points with shares mass[k]; with noise, cells[k, i] are data. */
LOOP(gaps)
{
    Call call;
    Array *a = call.array;
    const char *description = "df(ksp) d(kp) d(kp) d(kp) d(k) d(s) >d(ks3) -df(ksp) ->f(ksp)";
    if (begin(&call, "gaps", description, args, count) < 0)
        return NULL;
    if (a[NOISE].type && !a[CELLS].type)
        return fail(&call, "noise needs cells"), finish(&call);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t k = 0; k < SIZE(call, 'k'); k++)
        for (Py_ssize_t set = 0; set < SIZE(call, 's'); set++)
            simulate(a, k, set);
    Py_END_ALLOW_THREADS
    return finish(&call);
}

PyMethodDef gap_methods[] = {METHOD(gaps), NO_METHOD};

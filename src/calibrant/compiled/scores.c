/* Checks of labels and scores, and what a row of scores tells: its sum, its largest score, whose it is. */
#include "loops.h"
#include <math.h>

/* As integers, less that of the limit, the floats from +0.0 to below it are negative, and no others are but floats
   with a sign of their own. */
#define BELOW(name, type, sign)                                               \
    VECTORISED int name(const type *restrict bits, Py_ssize_t n, type limit)  \
    {                                                                         \
        type all = (type)-1, any = 0;                                         \
        for (Py_ssize_t i = 0; i < n; i++) {                                  \
            all &= bits[i] - limit;                                           \
            any |= bits[i];                                                   \
        }                                                                     \
        return (all & sign) && !(any & sign);                                 \
    }
BELOW(doubles_below, uint64_t, UINT64_C(0x8000000000000000))
BELOW(floats_below, uint32_t, UINT32_C(0x80000000))

/* in_unit(score): true where floats lie side by side, and none of them is other than from +0.0 to 1.0. */
static PyObject *in_unit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array score;
    int fine;
    (void)self;
    if (count != 1)
        return PyErr_Format(PyExc_TypeError, "in_unit takes one array");
    if (take_array(args[0], &score, 0) < 0)
        return NULL;
    if (!score.type || !strchr("df", score.type)) {
        give_arrays(&score, 1);
        return PyErr_Format(PyExc_TypeError, "in_unit takes float64 or float32");
    }
    if (!PyBuffer_IsContiguous(&score.view, 'A') || !is_aligned(&score)) {
        give_arrays(&score, 1);
        Py_RETURN_FALSE;
    }
    Py_BEGIN_ALLOW_THREADS
    if (score.type == 'd')
        fine = doubles_below(score.view.buf, score.view.len / 8, DOUBLE_ABOVE_ONE);
    else
        fine = floats_below(score.view.buf, score.view.len / 4, FLOAT_ABOVE_ONE);
    Py_END_ALLOW_THREADS
    give_arrays(&score, 1);
    return PyBool_FromLong(fine);
}

/* Whether all labels are 0 or 1; which of them are 1 is written down. */
#define ZERO_ONE(name, type)                                                                     \
    VECTORISED static int name(const type *restrict label, Py_ssize_t n, uint8_t *restrict code)  \
    {                                                                                             \
        type any = 0;                                                                             \
        for (Py_ssize_t i = 0; i < n; i++) {                                                      \
            any |= label[i];                                                                      \
            code[i] = (uint8_t)(label[i] & 1);                                                    \
        }                                                                                         \
        return any <= 1;                                                                          \
    }
ZERO_ONE(zero_one_8, uint8_t)
ZERO_ONE(zero_one_16, uint16_t)
ZERO_ONE(zero_one_32, uint32_t)
ZERO_ONE(zero_one_64, uint64_t)

int zero_one_labels(const char *label, Py_ssize_t size, Py_ssize_t n, uint8_t *code)
{
    return size == 8   ? zero_one_64((const uint64_t *)label, n, code)
           : size == 4 ? zero_one_32((const uint32_t *)label, n, code)
           : size == 2 ? zero_one_16((const uint16_t *)label, n, code)
                       : zero_one_8((const uint8_t *)label, n, code);
}

/* zero_one(label, code): whether contiguous integers are all 0 or 1; `code`, of booleans, tells which are 1. */
static PyObject *zero_one(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[2];
    int fine = 0;
    (void)self;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "zero_one takes two arrays");
    if (take_arrays(args, a, 2, 1) < 0)
        return NULL;
    if (!a[0].type || !strchr("?bBhHiIqQ", a[0].type) || a[1].type != '?' || a[0].view.ndim != 1 ||
        a[1].view.ndim != 1 || LENGTH(a[0], 0) != LENGTH(a[1], 0) || !PyBuffer_IsContiguous(&a[0].view, 'C') ||
        !PyBuffer_IsContiguous(&a[1].view, 'C') || !is_aligned(&a[0])) {
        give_arrays(a, 2);
        return PyErr_Format(PyExc_TypeError, "zero_one takes contiguous integers, and as many booleans");
    }
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t n = LENGTH(a[0], 0), step = 1 << 14, size = a[0].view.itemsize;
    fine = 1;
    for (Py_ssize_t i = 0; i < n && fine; i += step) {
        const char *from = (const char *)a[0].view.buf + i * size;
        uint8_t *to = (uint8_t *)a[1].view.buf + i;
        Py_ssize_t m = n - i < step ? n - i : step;
        fine = zero_one_labels(from, size, m, to);
    }
    Py_END_ALLOW_THREADS
    give_arrays(a, 2);
    return PyBool_FromLong(fine);
}

/* ---- whole rows ---- */

#define LANES 8

/* A row of many columns: its largest score, the first column of it, and its sum, taken in an order that does not
   depend on the machine; whether all scores are numbers in [0, 1]. */
#define LOOK(name, type, bits_type, bits_of_one)                                  \
    VECTORISED static bits_type name##_largest(const bits_type *restrict bits, Py_ssize_t n) \
    {                                                                             \
        bits_type most = 0;                                                       \
        for (Py_ssize_t i = 0; i < n; i++)                                        \
            most = bits[i] > most ? bits[i] : most;                               \
        return most;                                                              \
    }                                                                             \
    VECTORISED static double name##_sum(const type *restrict x, Py_ssize_t n)     \
    {                                                                             \
        double lane[LANES] = {0}, total = 0;                                      \
        Py_ssize_t i = 0;                                                         \
        for (; i + LANES <= n; i += LANES)                                        \
            for (int l = 0; l < LANES; l++)                                       \
                lane[l] += (double)x[i + l];                                      \
        for (; i < n; i++)                                                        \
            total += (double)x[i];                                                \
        for (int l = 0; l < LANES; l++)                                           \
            total += lane[l];                                                     \
        return total;                                                             \
    }                                                                             \
    static int name##_fine(const type *x, Py_ssize_t n)                           \
    {                                                                             \
        for (Py_ssize_t i = 0; i < n; i++)                                        \
            if (!(x[i] >= 0 && x[i] <= 1))                                        \
                return 0;                                                         \
        return 1;                                                                 \
    }                                                                             \
    static int name##_look(const type *x, Py_ssize_t n, double *most, int64_t *best, double *sum) \
    {                                                                             \
        const bits_type *bits = (const bits_type *)x, top = name##_largest(bits, n); \
        Py_ssize_t first = 0;                                                     \
        /* As unsigned integers, floats without a sign are in the order of their values. */ \
        if (top <= bits_of_one)                                                   \
            while (first < n - 1 && bits[first] != top)                           \
                first++;                                                          \
        else if (!name##_fine(x, n))                                              \
            return 0;                                                             \
        else                                                                      \
            for (Py_ssize_t i = 1; i < n; i++)                                    \
                first = x[i] > x[first] ? i : first;                              \
        *best = first;                                                            \
        *most = (double)x[first];                                                 \
        *sum = name##_sum(x, n);                                                  \
        return 1;                                                                 \
    }
LOOK(floats, float, uint32_t, UINT32_C(0x3F800000))
LOOK(doubles, double, uint64_t, UINT64_C(0x3FF0000000000000))

/* Rows of few columns, four at a time; a sign anywhere, or a largest score above 1, needs a second look. */
#if defined(__GNUC__)
typedef double Four __attribute__((vector_size(32), aligned(8)));
typedef int64_t FourInts __attribute__((vector_size(32)));
#define LOOK_FOUR(name, type)                                                                           \
    VECTORISED static int name##_four(const type *restrict x, Py_ssize_t step, Py_ssize_t classes, int n, \
                                      double *restrict mosts, int64_t *restrict bests, double *restrict sums) \
    {                                                                                                   \
        FourInts bad = {0, 0, 0, 0};                                                                    \
        for (int i = 0; i < n; i += 4, x += 4 * step) {                                                 \
            Four most = {x[0], x[step], x[2 * step], x[3 * step]}, sum = most;                          \
            FourInts best = {0, 0, 0, 0}, any = (FourInts)most;                                         \
            for (Py_ssize_t c = 1; c < classes; c++) {                                                  \
                Four v = {x[c], x[step + c], x[2 * step + c], x[3 * step + c]};                         \
                FourInts more = v > most, at = {c, c, c, c};                                            \
                best = (more & at) | (~more & best);                                                    \
                most = (Four)((more & (FourInts)v) | (~more & (FourInts)most));                         \
                any |= (FourInts)v;                                                                     \
                sum += v;                                                                               \
            }                                                                                           \
            /* A score that is no number makes the sum none. */                                         \
            bad |= ~((most <= 1.0) & (sum >= 0.0)) | any;                                               \
            memcpy(mosts + i, &most, sizeof(most));                                                     \
            memcpy(bests + i, &best, sizeof(best));                                                     \
            memcpy(sums + i, &sum, sizeof(sum));                                                        \
        }                                                                                               \
        return (bad[0] | bad[1] | bad[2] | bad[3]) >= 0;                                                \
    }
LOOK_FOUR(floats, float)
LOOK_FOUR(doubles, double)
#define FOUR(name, type)                                                                                \
    if (classes <= FEW_CLASSES) {                                                                       \
        i = n & ~3;                                                                                     \
        if (!name##_four((const type *)from, step / (Py_ssize_t)sizeof(type), classes, i, most, best, sum)) \
            for (int r = 0; r < i; r++)                                                                 \
                if (!name##_fine((const type *)(from + r * step), classes))                             \
                    return 0;                                                                           \
    }
#else
#define FOUR(name, type)
#endif

#define LOOK_SOME(name, type)                                                                           \
    static int name##_some(const char *from, Py_ssize_t step, Py_ssize_t classes, int n, double *most,  \
                           int64_t *best, double *sum)                                                  \
    {                                                                                                   \
        int i = 0;                                                                                      \
        FOUR(name, type)                                                                                \
        for (; i < n; i++)                                                                              \
            if (!name##_look((const type *)(from + i * step), classes, most + i, best + i, sum + i))    \
                return 0;                                                                               \
        return 1;                                                                                       \
    }
LOOK_SOME(floats, float)
LOOK_SOME(doubles, double)

int look_into_rows(const Array *score, Py_ssize_t start, int n, double *most, int64_t *best, double *sum)
{
    Py_ssize_t step = STRIDE(*score, 0), classes = LENGTH(*score, 1);
    const char *from = (const char *)score->view.buf + start * step;
    return score->type == 'd' ? doubles_some(from, step, classes, n, most, best, sum)
                              : floats_some(from, step, classes, n, most, best, sum);
}

VECTORISED double farthest(const double *restrict sum, int n)
{
    double lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            double away = fabs(sum[i + l] - 1);
            lane[l] = away > lane[l] ? away : lane[l];
        }
    for (; i < n; i++)
        lane[0] = fabs(sum[i] - 1) > lane[0] ? fabs(sum[i] - 1) : lane[0];
    for (int l = 1; l < LANES; l++)
        lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    return lane[0];
}

int are_rows(const Array *score)
{
    return score->type && strchr("df", score->type) && score->view.ndim == 2 && LENGTH(*score, 1) >= 1 &&
           STRIDE(*score, 1) == score->view.itemsize && is_aligned(score);
}

/* look_at_rows(score, best, largest): the row whose sum is farthest from 1, and that sum; None where a score is
   outside of [0, 1]. The first largest score of each row and its column are written down. */
static PyObject *look_at_rows(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[3];
    int fine = 1;
    Py_ssize_t n, row = 0;
    double worst = 1, most[LOOKED], sum[LOOKED];
    int64_t best[LOOKED];
    (void)self;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "look_at_rows takes three arrays");
    if (take_arrays(args, a, 3, 2) < 0)
        return NULL;
    if (!are_rows(&a[0]) || !is_plain(&a[1], 'q', 1) || !is_plain(&a[2], a[0].type, 1) ||
        LENGTH(a[1], 0) != LENGTH(a[0], 0) || LENGTH(a[2], 0) != LENGTH(a[0], 0)) {
        give_arrays(a, 3);
        return PyErr_Format(PyExc_TypeError, "look_at_rows takes rows of floats side by side, and a place for each");
    }
    n = LENGTH(a[0], 0);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t start = 0; start < n && fine; start += LOOKED) {
        int m = (int)(n - start < LOOKED ? n - start : LOOKED);
        fine = look_into_rows(&a[0], start, m, most, best, sum);
        if (!fine)
            break;
        memcpy((int64_t *)a[1].view.buf + start, best, (size_t)m * sizeof(*best));
        if (a[0].type == 'd')
            memcpy((double *)a[2].view.buf + start, most, (size_t)m * sizeof(*most));
        else
            for (int i = 0; i < m; i++)
                ((float *)a[2].view.buf)[start + i] = (float)most[i];
        if (farthest(sum, m) > fabs(worst - 1))
            for (int i = 0; i < m; i++)
                if (fabs(sum[i] - 1) > fabs(worst - 1)) {
                    worst = sum[i];
                    row = start + i;
                }
    }
    Py_END_ALLOW_THREADS
    give_arrays(a, 3);
    if (!fine)
        Py_RETURN_NONE;
    return Py_BuildValue("nd", row, worst);
}

PyMethodDef score_methods[] = {
    {"in_unit", FASTCALL(in_unit), METH_FASTCALL, NULL},
    {"zero_one", FASTCALL(zero_one), METH_FASTCALL, NULL},
    {"look_at_rows", FASTCALL(look_at_rows), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

/* Scores at given ranks without sorting all, and how far scores spread. */
#include "loops.h"

enum { SCORE, CELLS };

/* Read scores along one axis and an array with one entry for each of 2^bits cells and one for the score 1. */
static int take_scores(PyObject *const *args, Array *a, char type, double *cells)
{
    Py_ssize_t n;
    if (take_array(args[0], &a[SCORE], 0) < 0)
        return -1;
    if (take_array(args[1], &a[CELLS], type == 'i') < 0) {
        give_arrays(a, 1);
        return -1;
    }
    if (a[SCORE].type && strchr("df", a[SCORE].type) && a[SCORE].view.ndim == 1 && is_aligned(&a[SCORE]) &&
        a[CELLS].type == type && is_aligned(&a[CELLS]) && a[CELLS].view.ndim == 1 &&
        PyBuffer_IsContiguous(&a[CELLS].view, 'C')) {
        n = LENGTH(a[CELLS], 0) - 1;
        if (n > 0 && n <= 1 << 30 && !(n & (n - 1))) {
            *cells = (double)n;
            return 0;
        }
    }
    give_arrays(a, 2);
    return fail("there must be scores along one axis, and an entry for each of a power of two cells and one more");
}

/* A block of scores and their cells; NULL where one is outside of [0, 1]. */
static const double *cells_of(const Array *score, Py_ssize_t start, int n, double cells, double *room, int32_t *cell)
{
    const char *from = (const char *)score->view.buf + start * STRIDE(*score, 0);
    const double *x = doubles(from, STRIDE(*score, 0), score->type, n, room);
    if (!in_range(x, n))
        return NULL;
    cells_by_power(x, n, cells, cell);
    return x;
}

/* count_cells(score, count): add the number of scores in each cell, of fewer than 2^31. */
static PyObject *count_cells(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[2];
    double cells, room[BLOCK];
    int32_t cell[BLOCK];
    int bad = 0;
    (void)self;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "count_cells takes two arrays");
    if (take_scores(args, a, 'i', &cells) < 0)
        return NULL;
    if (LENGTH(a[SCORE], 0) > INT32_MAX) {
        give_arrays(a, 2);
        return PyErr_Format(PyExc_ValueError, "too many scores to count at once");
    }
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t n = LENGTH(a[SCORE], 0);
    int32_t *counts = a[CELLS].view.buf;
    for (Py_ssize_t start = 0; start < n && !bad; start += BLOCK) {
        int m = (int)(n - start < BLOCK ? n - start : BLOCK);
        bad = !cells_of(&a[SCORE], start, m, cells, room, cell);
        for (int i = 0; i < m && !bad; i++)
            counts[cell[i]]++;
    }
    Py_END_ALLOW_THREADS
    give_arrays(a, 2);
    if (bad)
        return PyErr_Format(PyExc_ValueError, "scores must lie in [0, 1]");
    Py_RETURN_NONE;
}

/* Rows of which it is told at once whether one is picked, and cells so few that they are compared one by one. */
#define PIECE 64
#define FEW 8

/* The cells that are held: a bit for each, so that all stay in the nearest cache, and the first few. */
typedef struct {
    uint32_t *bits;
    int32_t few[FEW];
    Py_ssize_t count;
} Held;

/* Whether any cell is one of a few. */
VECTORISED static int32_t among(const int32_t *restrict few, int count, const int32_t *restrict cell, int n)
{
    int32_t any = 0;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < n; i++)
            any |= cell[i] == few[k];
    return any;
}

/* pick_cells(score, held, kept): write down the scores in the cells that are held; returns how many. */
static PyObject *pick_cells(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[3];
    double cells, room[BLOCK];
    int32_t cell[BLOCK];
    int bad = 0;
    Py_ssize_t found = 0;
    Held held = {NULL, {0}, 0};
    (void)self;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "pick_cells takes three arrays");
    if (take_scores(args, a, '?', &cells) < 0)
        return NULL;
    if (take_array(args[2], &a[2], 1) < 0) {
        give_arrays(a, 2);
        return NULL;
    }
    if (a[2].type != 'd' || a[2].view.ndim != 1 || !is_aligned(&a[2]) || !PyBuffer_IsContiguous(&a[2].view, 'C')) {
        give_arrays(a, 3);
        return PyErr_Format(PyExc_TypeError, "scores are kept as float64");
    }
    held.bits = calloc((size_t)(LENGTH(a[CELLS], 0) / 32 + 1), sizeof(uint32_t));
    if (!held.bits) {
        give_arrays(a, 3);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t n = LENGTH(a[SCORE], 0), most = LENGTH(a[2], 0);
    const uint8_t *wanted = a[CELLS].view.buf;
    double *kept = a[2].view.buf;
    for (Py_ssize_t j = 0; j < LENGTH(a[CELLS], 0); j++)
        if (wanted[j]) {
            held.bits[j >> 5] |= (uint32_t)1 << (j & 31);
            if (held.count < FEW)
                held.few[held.count] = (int32_t)j;
            held.count++;
        }
    for (Py_ssize_t start = 0; start < n && !bad; start += BLOCK) {
        int m = (int)(n - start < BLOCK ? n - start : BLOCK);
        const double *x = cells_of(&a[SCORE], start, m, cells, room, cell);
        bad = !x;
        for (int from = 0; from < m && !bad; from += PIECE) {
            int end = m - from < PIECE ? m : from + PIECE;
            if (held.count <= FEW && !among(held.few, (int)held.count, cell + from, end - from))
                continue;
            for (int i = from; i < end; i++)
                if (held.bits[cell[i] >> 5] >> (cell[i] & 31) & 1) {
                    if (found < most)
                        kept[found] = x[i];
                    found++;
                }
        }
    }
    Py_END_ALLOW_THREADS
    free(held.bits);
    give_arrays(a, 3);
    if (bad)
        return PyErr_Format(PyExc_ValueError, "scores must lie in [0, 1]");
    return PyLong_FromSsize_t(found);
}

#define LANES 8
#define SQUARES(name, type)                                                                    \
    VECTORISED static double name(const type *restrict x, Py_ssize_t n, double centre)         \
    {                                                                                          \
        double lane[LANES] = {0}, total = 0;                                                   \
        Py_ssize_t i = 0;                                                                      \
        for (; i + LANES <= n; i += LANES)                                                     \
            for (int l = 0; l < LANES; l++) {                                                  \
                double d = (double)x[i + l] - centre;                                          \
                lane[l] += d * d;                                                              \
            }                                                                                  \
        for (; i < n; i++)                                                                     \
            total += ((double)x[i] - centre) * ((double)x[i] - centre);                        \
        for (int l = 0; l < LANES; l++)                                                        \
            total += lane[l];                                                                  \
        return total;                                                                          \
    }
SQUARES(squares_of_doubles, double)
SQUARES(squares_of_floats, float)

/* squared_distances(score, centre): the sum of the squared distances of scores side by side. */
static PyObject *squared_distances(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array score;
    double centre, total = 0;
    (void)self;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "squared_distances takes an array and a number");
    centre = PyFloat_AsDouble(args[1]);
    if (PyErr_Occurred() || take_array(args[0], &score, 0) < 0)
        return NULL;
    if (!score.type || !strchr("df", score.type) || score.view.ndim != 1 || !is_aligned(&score) ||
        !PyBuffer_IsContiguous(&score.view, 'C')) {
        give_arrays(&score, 1);
        return PyErr_Format(PyExc_TypeError, "squared_distances takes floats side by side");
    }
    Py_BEGIN_ALLOW_THREADS
    /* In pieces, whose sums keep their digits. */
    Py_ssize_t n = LENGTH(score, 0), step = 1 << 13;
    for (Py_ssize_t i = 0; i < n; i += step) {
        Py_ssize_t m = n - i < step ? n - i : step;
        total += score.type == 'd' ? squares_of_doubles((const double *)score.view.buf + i, m, centre)
                                   : squares_of_floats((const float *)score.view.buf + i, m, centre);
    }
    Py_END_ALLOW_THREADS
    give_arrays(&score, 1);
    return PyFloat_FromDouble(total);
}

PyMethodDef rank_methods[] = {
    {"count_cells", FASTCALL(count_cells), METH_FASTCALL, NULL},
    {"pick_cells", FASTCALL(pick_cells), METH_FASTCALL, NULL},
    {"squared_distances", FASTCALL(squared_distances), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

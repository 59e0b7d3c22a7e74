/* Sums over runs of cells that many data sets share: outcomes, and scores times outcomes. */
#include "loops.h"

enum { POSITIVE, SCORED, SHIFT, START, TO, OUT, OUT_SCORED, ARRAYS };

/* Whether the arrays do not fit; `start` and `to` are copies, made here, which are read from then on. */
static int misfits(const Array *a, int64_t **starts, int64_t **tos)
{
    Py_ssize_t sets, cells, runs, size, last = 0;
    const int64_t *start, *to;
    if (!is_plain(&a[POSITIVE], 'd', 2) || !is_plain(&a[START], 'q', 1) || !is_plain(&a[TO], 'q', 1)
        || !is_plain(&a[OUT], 'd', 2))
        return 1;
    sets = LENGTH(a[POSITIVE], 0);
    cells = LENGTH(a[POSITIVE], 1);
    runs = LENGTH(a[TO], 0);
    size = LENGTH(a[OUT], 1);
    if (LENGTH(a[OUT], 0) != sets || LENGTH(a[START], 0) != runs + 1)
        return 1;
    start = *starts = copy_integers(&a[START]);
    to = *tos = copy_integers(&a[TO]);
    if (!start || !to)
        return 1;
    for (Py_ssize_t r = 0; r <= runs; r++) {
        if (start[r] < last || start[r] > cells || (r < runs && (to[r] < 0 || to[r] >= size)))
            return 1;
        last = start[r];
    }
    if (!a[SCORED].type)
        return a[SHIFT].type || a[OUT_SCORED].type;
    return !is_plain(&a[SCORED], 'd', 2) || LENGTH(a[SCORED], 0) != sets || LENGTH(a[SCORED], 1) != cells
           || !is_plain(&a[SHIFT], 'd', 1) || LENGTH(a[SHIFT], 0) != cells || !is_plain(&a[OUT_SCORED], 'd', 2)
           || LENGTH(a[OUT_SCORED], 0) != sets || LENGTH(a[OUT_SCORED], 1) != size;
}

/* Every other number has a sum of its own, so that none waits for the one before. */
static double sum(const double *x, Py_ssize_t n)
{
    double even = 0, odd = 0;
    Py_ssize_t j = 0;
    for (; j + 1 < n; j += 2) {
        even += x[j];
        odd += x[j + 1];
    }
    if (j < n)
        even += x[j];
    return even + odd;
}

static double shifted_sum(const double *scored, const double *x, const double *shift, Py_ssize_t n)
{
    double even = 0, odd = 0;
    Py_ssize_t j = 0;
    for (; j + 1 < n; j += 2) {
        even += scored[j] + shift[j] * x[j];
        odd += scored[j + 1] + shift[j + 1] * x[j + 1];
    }
    if (j < n)
        even += scored[j] + shift[j] * x[j];
    return even + odd;
}

/* run_sums(positive, scored, shift, start, to, out, out_scored): out[i, to[r]] is the sum of positive[i] from start[r]
   to start[r + 1], and out_scored[i, to[r]] that of scored[i] + shift * positive[i]; without `scored` there is none. */
static PyObject *run_sums(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[ARRAYS];
    Py_ssize_t cells, size;
    int64_t *start = NULL, *to = NULL;
    (void)self;
    if (count != ARRAYS)
        return PyErr_Format(PyExc_TypeError, "%d arrays are taken", ARRAYS);
    if (take_arrays(args, a, ARRAYS, ARRAYS - OUT) < 0)
        return NULL;
    if (misfits(a, &start, &to)) {
        free(start);
        free(to);
        give_arrays(a, ARRAYS);
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "the arrays of runs do not fit");
    }
    cells = LENGTH(a[POSITIVE], 1);
    size = LENGTH(a[OUT], 1);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < LENGTH(a[POSITIVE], 0); i++) {
        const double *positive = DOUBLES(a[POSITIVE]) + i * cells;
        for (Py_ssize_t r = 0; r < LENGTH(a[TO], 0); r++)
            DOUBLES(a[OUT])[i * size + to[r]] = sum(positive + start[r], start[r + 1] - start[r]);
        for (Py_ssize_t r = 0; a[SCORED].type && r < LENGTH(a[TO], 0); r++) {
            Py_ssize_t at = start[r];
            DOUBLES(a[OUT_SCORED])[i * size + to[r]] = shifted_sum(
                DOUBLES(a[SCORED]) + i * cells + at, positive + at, DOUBLES(a[SHIFT]) + at, start[r + 1] - at);
        }
    }
    Py_END_ALLOW_THREADS
    free(start);
    free(to);
    give_arrays(a, ARRAYS);
    Py_RETURN_NONE;
}

PyMethodDef run_methods[] = {
    {"run_sums", FASTCALL(run_sums), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

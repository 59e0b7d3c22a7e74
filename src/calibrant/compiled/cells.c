/* Sums of rows in the cells of a layout, of which few may hold anything: of many problems that lie side by side, and of
   the columns of drawn labels. */
#include "groups.h"

/* Rows that are asked for before they are taken. */
#define AHEAD 12
/* Problems whose scores are taken together: as many as are in a line of the cache in single precision. */
#define SIDE 16
/* Rows of a problem that are taken, so far apart from those of the next that they do not meet in the cache. */
#define TAKEN 256
#define APART (TAKEN + 8)

/* Take some rows of some problems as doubles, problem after problem. */
static void take_rows(const char *from, char type, Py_ssize_t step, int problems, int m, double (*to)[APART])
{
    for (int i = 0; i < m; i++, from += step) {
        PREFETCH(from + AHEAD * step);
        if (type == 'd')
            for (int c = 0; c < problems; c++)
                to[c][i] = ((const double *)from)[c];
        else if (problems == SIDE)
            for (int c = 0; c < SIDE; c++)
                to[c][i] = ((const float *)from)[c];
        else
            for (int c = 0; c < problems; c++)
                to[c][i] = ((const float *)from)[c];
    }
}

/* Add rows of a problem to the sums of their cells, which get places when they are first seen. Returns how many have
   one. */
static int32_t add_where_held(const double *x, const int32_t *cell, const int64_t *code, int64_t own, int m,
                              const double *origin, int32_t *place, int32_t held, int32_t size, double *sums,
                              Py_ssize_t step)
{
    for (int i = 0; i < m; i++) {
        int32_t at = place[cell[i]];
        double *to;
        if ((uint32_t)at >= (uint32_t)held)
            place[cell[i]] = at = held < size ? held++ : 0;
        to = sums + at * step;
        ADD_PAIR(to, x[i] - origin[cell[i]]);
        if (code[i] == own)
            to[2] += 1;
    }
    return held;
}

/* sum_held(score, code, parts, origin, place, sums, layout, first): the sums of problems that lie side by side,
   (problems, rows), in the cells of a layout that hold any: sums[k, problem] has the number of rows, the sum of their
   scores less the origin of the cell, and of those whose code is that of the problem, the first of which is given.
   `place` gets the k of each such cell and -1 elsewhere; their number is returned. */
static PyObject *sum_held(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[6];
    Groups g = {0};
    int failed = -1;
    int32_t held = 0;
    int64_t first;
    (void)self;
    if (count != 8)
        return PyErr_Format(PyExc_TypeError, "sum_held takes six arrays, a layout and a number");
    first = PyLong_AsLongLong(args[7]);
    if (PyErr_Occurred() || take_layout(&g, args[6]) < 0)
        return NULL;
    if (take_arrays(args, a, 6, 2) < 0)
        return NULL;
    int fine = (a[0].type == 'f' || a[0].type == 'd') && a[0].view.ndim == 2 && is_aligned(&a[0])
               && (LENGTH(a[0], 0) < 2 || STRIDE(a[0], 0) == a[0].view.itemsize);
    Py_ssize_t problems = fine ? LENGTH(a[0], 0) : 0, n = fine ? LENGTH(a[0], 1) : 0;
    fine = fine && is_plain(&a[1], 'q', 1) && LENGTH(a[1], 0) == n && is_plain(&a[2], 'd', 1)
           && is_plain(&a[3], 'd', 1) && is_plain(&a[4], 'i', 1) && is_plain(&a[5], 'd', 3)
           && LENGTH(a[4], 0) == LENGTH(a[3], 0) && LENGTH(a[5], 0) == LENGTH(a[3], 0)
           && LENGTH(a[5], 1) == problems && LENGTH(a[5], 2) == 3 && LENGTH(a[3], 0) <= INT32_MAX;
    g.size = fine ? LENGTH(a[3], 0) : 0;
    if (!fine || g.size < 1 || check_layout(&g, &a[2]) < 0)
        fail("the arrays of cells do not fit");
    else {
        int32_t *place = a[4].view.buf;
        failed = 0;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t j = 0; j < g.size; j++)
            place[j] = -1;
        for (Py_ssize_t start = 0; start < problems; start += SIDE)
            for (Py_ssize_t row = 0; row < n && !failed; row += TAKEN) {
                double scores[SIDE][APART];
                int32_t cell[TAKEN];
                int m = (int)(n - row < TAKEN ? n - row : TAKEN);
                int width = (int)(problems - start < SIDE ? problems - start : SIDE);
                take_rows((const char *)a[0].view.buf + start * STRIDE(a[0], 0) + row * STRIDE(a[0], 1), a[0].type,
                          STRIDE(a[0], 1), width, m, scores);
                for (int c = 0; c < width && !failed; c++) {
                    failed = groups_of(&g, scores[c], m, cell);
                    if (!failed)
                        held = add_where_held(scores[c], cell, (const int64_t *)a[1].view.buf + row, first + start + c,
                                              m, DOUBLES(a[3]), place, held, (int32_t)g.size,
                                              DOUBLES(a[5]) + (start + c) * 3, 3 * problems);
                }
            }
        Py_END_ALLOW_THREADS
        if (failed)
            fail("scores must lie in [0, 1]");
    }
    free_groups(&g);
    give_arrays(a, 6);
    return failed ? NULL : PyLong_FromLong(held);
}

/* The cells of a problem's rows, and the sums of w, w x and w^2 in them, side by side; one row after the other. */
static int sum_column(const Groups *g, const Array *score, const double *weight, int32_t *cell, double *sums, int columns)
{
    double scores[BLOCK];
    int32_t own[BLOCK];
    for (Py_ssize_t a = 0, n = LENGTH(*score, 0); a < n; a += BLOCK) {
        int m = (int)(n - a < BLOCK ? n - a : BLOCK);
        const double *x = doubles((const char *)score->view.buf + a * score->view.itemsize, score->view.itemsize,
                                  score->type, m, scores);
        if (groups_of(g, x, m, own) < 0)
            return -1;
        memcpy(cell + a, own, (size_t)m * sizeof(*cell));
        for (int i = 0; i < m; i++) {
            double *at = sums + columns * (Py_ssize_t)own[i], w = weight ? weight[a + i] : 1.0;
            at[0] += w;
            at[1] += w * x[i];
            if (columns > 2)
                at[2] += w * w;
        }
    }
    return 0;
}

/* cell_sums(score, weight, parts, cell, sums, layout): the cell of each row in a layout, and in (cells, 2 or 3) sums of
   weights, of weighted scores and of squared weights, to which those of the rows are added. */
static PyObject *cell_sums(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[5];
    Groups g = {0};
    int failed = -1;
    (void)self;
    if (count != 6)
        return PyErr_Format(PyExc_TypeError, "cell_sums takes five arrays and a layout");
    if (take_layout(&g, args[5]) < 0)
        return NULL;
    if (take_arrays(args, a, 5, 2) < 0)
        return NULL;
    Py_ssize_t n = a[0].type && a[0].view.ndim == 1 ? LENGTH(a[0], 0) : -1;
    int fine = n >= 0 && (is_plain(&a[0], 'd', 1) || is_plain(&a[0], 'f', 1))
               && (!a[1].type || (is_plain(&a[1], 'd', 1) && LENGTH(a[1], 0) == n)) && is_plain(&a[2], 'd', 1)
               && is_plain(&a[3], 'i', 1) && LENGTH(a[3], 0) == n && is_plain(&a[4], 'd', 2)
               && (LENGTH(a[4], 1) == 2 || LENGTH(a[4], 1) == 3) && LENGTH(a[4], 0) <= INT32_MAX;
    if (fine)
        g.size = LENGTH(a[4], 0);
    if (!fine || check_layout(&g, &a[2]) < 0)
        fail("the arrays of cells do not fit");
    else {
        Py_BEGIN_ALLOW_THREADS
        failed = sum_column(&g, &a[0], a[1].type ? DOUBLES(a[1]) : NULL, a[3].view.buf, DOUBLES(a[4]),
                           (int)LENGTH(a[4], 1));
        Py_END_ALLOW_THREADS
        if (failed)
            fail("scores must lie in [0, 1]");
    }
    free_groups(&g);
    give_arrays(a, 5);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef cell_methods[] = {
    {"cell_sums", FASTCALL(cell_sums), METH_FASTCALL, NULL},
    {"sum_held", FASTCALL(sum_held), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

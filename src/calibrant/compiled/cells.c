/* Sums of rows in the cells of a layout, of which few may hold anything, of many problems that lie side by side. */
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

/* sum_held(score, code, parts, origin, place, sums, *layout, first): the sums of problems that lie side by side,
   (problems, rows), in the cells of a layout that hold any: sums[k, problem] has the number of rows, the sum of their
   scores less the origin of the cell, and of those whose code is that of the problem, the first of which is given.
   `place` gets the k of each such cell and -1 elsewhere. */
LOOP(sum_held)
{
    enum { SCORE, CODE, PARTS, ORIGIN, PLACE, SUMS };
    Call call;
    Array *a = call.array;
    Groups g = {0};
    int failed = 0;
    int32_t held = 0;
    if (begin(&call, "sum_held", "~df(pn) q(n) d(e) d(g) >i(g) >d(gp3) =v =w =x =y =f", args, count) < 0)
        return NULL;
    Py_ssize_t problems = SIZE(call, 'p'), n = SIZE(call, 'n');
    int64_t first = SIZE(call, 'f');
    g.size = SIZE(call, 'g');
    if ((problems > 1 && STRIDE(a[SCORE], 0) != a[SCORE].view.itemsize) || g.size < 1 || g.size > INT32_MAX ||
        check_layout(&g, &call, &a[PARTS]) < 0)
        fail(&call, "the arrays of cells do not fit");
    else {
        int32_t *place = a[PLACE].view.buf;
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t j = 0; j < g.size; j++)
            place[j] = -1;
        for (Py_ssize_t start = 0; start < problems; start += SIDE)
            for (Py_ssize_t row = 0; row < n && !failed; row += TAKEN) {
                double scores[SIDE][APART];
                int32_t cell[TAKEN];
                int m = (int)(n - row < TAKEN ? n - row : TAKEN);
                int width = (int)(problems - start < SIDE ? problems - start : SIDE);
                take_rows((const char *)a[SCORE].view.buf + start * STRIDE(a[SCORE], 0) + row * STRIDE(a[SCORE], 1),
                          a[SCORE].type, STRIDE(a[SCORE], 1), width, m, scores);
                for (int c = 0; c < width && !failed; c++) {
                    failed = groups_of(&g, scores[c], m, cell);
                    if (!failed)
                        held = add_where_held(scores[c], cell, (const int64_t *)a[CODE].view.buf + row,
                                              first + start + c, m, DOUBLES(a[ORIGIN]), place, held, (int32_t)g.size,
                                              DOUBLES(a[SUMS]) + (start + c) * 3, 3 * problems);
                }
            }
        Py_END_ALLOW_THREADS
        if (failed)
            fail(&call, "scores must lie in [0, 1]");
    }
    free_groups(&g);
    return finish(&call);
}

PyMethodDef cell_methods[] = {METHOD(sum_held), NO_METHOD};

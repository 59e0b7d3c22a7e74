/* Simulated calibrated data: what the running sums of their residuals show. */
#include "lanes.h"

#ifdef HAVE_LANES

typedef struct {
    Py_ssize_t steps, cells, runs, fine, widths;
    const int64_t *step, *first, *last, *cell, *width; /* copies */
    const double *share, *ways, *weight, *turns;
} Walk;

/* What the running sums of some sets show: range, two weighted sums, coefficients over cells, and for each width
   the largest sum of neighbouring squared coefficients along the score. */
VECTORISED static void walk(const Walk *w, const double *const *residual, Lanes *total, Lanes *x, Lanes *work, Lanes *shown)
{
    Lanes sum = {0}, least = {0}, most = {0}, shift = {0}, slope = {0}, before = {0};
    total[0] = sum;
    for (Py_ssize_t j = 0; j < w->steps; j++) {
        Lanes value = {residual[0][j], residual[1][j], residual[2][j], residual[3][j]};
        shift += w->ways[j] * value;
        slope += w->ways[w->steps + j] * value;
        sum += value;
        least = chosen(sum < least, sum, least);
        most = larger(most, sum);
        total[j + 1] = sum;
    }
    shown[0] = most - least;
    shown[1] = shift;
    shown[2] = slope;
    if (w->fine) {
        for (Py_ssize_t i = 0; i < w->fine; i++)
            x[i] = all(0.0);
        for (Py_ssize_t i = 0; i < w->runs; i++)
            x[w->cell[i]] = (total[w->last[i]] - total[w->first[i]]) * w->weight[i];
        orthonormal(x, w->fine, w->turns, work);
        work[0] = all(0.0);
        for (Py_ssize_t k = 1; k < w->fine; k++)
            work[k] = work[k - 1] + x[k] * x[k];
        for (Py_ssize_t i = 0; i < w->widths; i++) {
            Py_ssize_t width = w->width[i], step = width > 1 ? width / 2 : 1;
            Lanes largest = all(0.0);
            for (Py_ssize_t k = 0; k + width < w->fine; k += step)
                largest = larger(largest, work[k + width] - work[k]);
            shown[3 + i] = largest;
        }
    }
    for (Py_ssize_t i = 0; i < w->cells - 1; i++) {
        Lanes low = total[w->step[i]], here = low + w->share[i] * (total[w->step[i] + 1] - low);
        x[i] = here - before;
        before = here;
    }
    x[w->cells - 1] = sum - before;
    orthonormal(x, w->cells, w->turns, work);
}

/* walks(residual, step, share, ways, first, last, cell, weight, widths, turns, z, shown, fine): see `walk`; `fine` is
   the number of cells along the score, 0 for none. */
LOOP(walks)
{
    enum { RESIDUAL, STEP, SHARE, WAYS, FIRST, LAST, CELL, WEIGHT, WIDTHS, TURNS, Z, SHOWN };
    Call call;
    Array *a = call.array;
    const char *description = "d(sj) q(e) d(e) d(2j) q(r) q(r) q(r) d(r) q(w) d(t) >d(sc) >d(su) =f";
    if (begin(&call, "walks", description, args, count) < 0)
        return NULL;
    Py_ssize_t sets = SIZE(call, 's'), columns = SIZE(call, 'u'), cells = SIZE(call, 'c'), fine = SIZE(call, 'f');
    Py_ssize_t steps = SIZE(call, 'j'), capacity = cells > fine ? cells : fine;
    Walk w = {
        .steps = steps, .cells = cells, .runs = SIZE(call, 'r'), .fine = fine, .widths = SIZE(call, 'w'),
        .share = DOUBLES(a[SHARE]), .ways = DOUBLES(a[WAYS]), .weight = DOUBLES(a[WEIGHT]), .turns = DOUBLES(a[TURNS]),
    };
    if (steps < 1 || cells < 1 || cells & (cells - 1) || fine < 0 || fine & (fine - 1) || SIZE(call, 'e') != cells - 1 ||
        SIZE(call, 't') < capacity || columns != 3 + w.widths)
        return fail(&call, "the arrays do not fit"), finish(&call);
    w.step = borrow_places(&call, STEP, 0, steps);
    w.first = borrow_places(&call, FIRST, 0, steps + 1);
    w.last = borrow_places(&call, LAST, 0, steps + 1);
    w.cell = borrow_places(&call, CELL, 0, fine);
    w.width = borrow_places(&call, WIDTHS, 1, PY_SSIZE_T_MAX);
    char *block = borrow(&call, (size_t)(steps + 1 + 2 * capacity + columns + 2) * sizeof(Lanes));
    if (PyErr_Occurred())
        return finish(&call);
    Lanes *total = (Lanes *)(block + -(uintptr_t)block % sizeof(Lanes)), *x = total + steps + 1, *work = x + capacity;
    Lanes *shown = work + capacity;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t first = 0; first < sets; first += LANES) {
        const double *residual[LANES];
        for (int l = 0; l < LANES; l++) /* lanes without a set repeat the last one */
            residual[l] = DOUBLES(a[RESIDUAL]) + (first + l < sets ? first + l : sets - 1) * steps;
        for (Py_ssize_t i = 0; i < columns; i++)
            shown[i] = (Lanes){0};
        walk(&w, residual, total, x, work, shown);
        for (Py_ssize_t l = 0; l < LANES && first + l < sets; l++) {
            for (Py_ssize_t k = 0; k < cells; k++)
                DOUBLES(a[Z])[(first + l) * cells + k] = x[k][l];
            for (Py_ssize_t i = 0; i < columns; i++)
                DOUBLES(a[SHOWN])[(first + l) * columns + i] = shown[i][l];
        }
    }
    Py_END_ALLOW_THREADS
    return finish(&call);
}

#endif

PyMethodDef walk_methods[] = {
#ifdef HAVE_LANES
    METHOD(walks),
#endif
    NO_METHOD,
};

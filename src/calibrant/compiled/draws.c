/* Simulated calibrated data: outcomes from random words, and what their running sums show. */
#include "lanes.h"

static int is_vector(const Array *a, char type, Py_ssize_t length)
{
    return a->type == type && a->view.ndim == 1 && LENGTH(*a, 0) == length && PyBuffer_IsContiguous(&a->view, 'C');
}

static int is_table(const Array *a, char type, Py_ssize_t rows, Py_ssize_t columns)
{
    return a->type == type && a->view.ndim == 2 && (rows < 0 || LENGTH(*a, 0) == rows)
           && (columns < 0 || LENGTH(*a, 1) == columns) && PyBuffer_IsContiguous(&a->view, 'C');
}

/* A copy of places that all lie from a least one to below an end, to be freed; NULL where one does not, or with an
   error set where there is no memory. */
static int64_t *copy_places(const Array *places, Py_ssize_t least, Py_ssize_t end)
{
    int64_t *place = copy_integers(places);
    for (Py_ssize_t i = 0; place && i < LENGTH(*places, 0); i++)
        if (place[i] < least || place[i] >= end) {
            free(place);
            place = NULL;
        }
    return place;
}

/* Give arrays back that do not fit; an error that is set stays. */
static PyObject *do_not_fit(Array *arrays, int count, const char *what)
{
    give_arrays(arrays, count);
    return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "the arrays %s do not fit", what);
}

/* Read all arguments as arrays, the last of which are written to. */
static int take_all(PyObject *const *args, Py_ssize_t count, Array *arrays, int expected, int written)
{
    if (count != expected) {
        PyErr_Format(PyExc_TypeError, "%d arrays are taken", expected);
        return -1;
    }
    return take_arrays(args, arrays, expected, written);
}

#define CHUNK 256

VECTORISED static void count_one(const uint32_t *word, const uint32_t *bounds, Py_ssize_t groups, Py_ssize_t most,
                                 const double *unit, const double *base, const int64_t *place, double *out)
{
    for (Py_ssize_t first = 0; first < groups; first += CHUNK) {
        Py_ssize_t width = groups - first < CHUNK ? groups - first : CHUNK;
        int32_t above[CHUNK] = {0};
        for (Py_ssize_t k = 0; k < most; k++) {
            const uint32_t *bound = bounds + k * groups + first;
            for (Py_ssize_t j = 0; j < width; j++)
                above[j] += word[first + j] > bound[j];
        }
        for (Py_ssize_t j = 0; j < width; j++)
            out[place[first + j]] = base[first + j] + unit[first + j] * above[j];
    }
}

/* outcomes(words, bounds, unit, base, place, out): out[i, place[j]] = base[j] + unit[j] * the number of k with
   words[i, j] > bounds[k, j]. */
static PyObject *outcomes(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[6];
    Py_ssize_t sets, groups, most;
    int64_t *place = NULL;
    (void)self;
    if (take_all(args, count, a, 6, 1) < 0)
        return NULL;
    groups = a[0].type && a[0].view.ndim == 2 ? LENGTH(a[0], 1) : -1;
    if (groups < 0 || !is_table(&a[0], 'I', -1, groups) || !is_table(&a[1], 'I', -1, groups)
        || !is_vector(&a[2], 'd', groups) || !is_vector(&a[3], 'd', groups) || !is_vector(&a[4], 'q', groups)
        || !is_table(&a[5], 'd', LENGTH(a[0], 0), -1) || !(place = copy_places(&a[4], 0, LENGTH(a[5], 1))))
        return do_not_fit(a, 6, "of outcomes");
    sets = LENGTH(a[0], 0);
    most = LENGTH(a[1], 0);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < sets; i++)
        count_one((const uint32_t *)a[0].view.buf + i * groups, a[1].view.buf, groups, most, DOUBLES(a[2]), DOUBLES(a[3]),
                  place, DOUBLES(a[5]) + i * LENGTH(a[5], 1));
    Py_END_ALLOW_THREADS
    free(place);
    give_arrays(a, 6);
    Py_RETURN_NONE;
}

/* normals(words, table, sd, place, out): out[i, place[j]] = sd[j] * table[words[i, j]], for a table of all words. */
static PyObject *normals(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[5];
    Py_ssize_t sets, groups;
    int64_t *place = NULL;
    (void)self;
    if (take_all(args, count, a, 5, 1) < 0)
        return NULL;
    groups = a[0].type && a[0].view.ndim == 2 ? LENGTH(a[0], 1) : -1;
    if (groups < 0 || !is_table(&a[0], 'H', -1, groups) || !is_vector(&a[1], 'd', 65536) || !is_vector(&a[2], 'd', groups)
        || !is_vector(&a[3], 'q', groups) || !is_table(&a[4], 'd', LENGTH(a[0], 0), -1)
        || !(place = copy_places(&a[3], 0, LENGTH(a[4], 1))))
        return do_not_fit(a, 5, "of normals");
    sets = LENGTH(a[0], 0);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < sets; i++) {
        const uint16_t *word = (const uint16_t *)a[0].view.buf + i * groups;
        const double *table = DOUBLES(a[1]), *sd = DOUBLES(a[2]);
        double *out = DOUBLES(a[4]) + i * LENGTH(a[4], 1);
        for (Py_ssize_t j = 0; j < groups; j++)
            out[place[j]] = sd[j] * table[word[j]];
    }
    Py_END_ALLOW_THREADS
    free(place);
    give_arrays(a, 5);
    Py_RETURN_NONE;
}

/* Counts of a binomial variable told apart at most, and those that are looked at side by side; groups looked at
   together. */
enum { COUNTS = 256, FEW = 16, GROUPS = 128 };

/* How likely at most 0, 1, ... of some outcomes are, while it matters; return how many such numbers there are. */
static Py_ssize_t chances_up_to(int64_t rows, double none, double rare, double *chance)
{
    Py_ssize_t count = 0;
    chance[0] = none;
    while (++count < rows && count < COUNTS && chance[count - 1] < 1) {
        none = none * (double)(rows - count + 1) * rare / ((double)count * (1 - rare));
        chance[count] = chance[count - 1] + none;
    }
    return count;
}

/* Groups of few counts, one set after the other: as many outcomes as there are chances below the uniform number. */
VECTORISED static void count_few(const double *uniform, Py_ssize_t stride, Py_ssize_t sets, const double *chance,
                                 Py_ssize_t most, Py_ssize_t groups, const double *unit, const double *base,
                                 const int64_t *place, double *out, Py_ssize_t columns)
{
    for (Py_ssize_t i = 0; i < sets; i++) {
        double above[GROUPS] = {0};
        for (Py_ssize_t k = 0; k < most; k++)
            for (Py_ssize_t j = 0; j < groups; j++)
                above[j] += uniform[i * stride + j] > chance[k * GROUPS + j] ? 1.0 : 0.0;
        for (Py_ssize_t j = 0; j < groups; j++)
            out[i * columns + place[j]] = base[j] + unit[j] * above[j];
    }
}

/* binomials(uniform, rows, none, rare, unit, base, place, out): out[i, place[j]] = base[j] + unit[j] * how many of
   rows[j] outcomes with chance rare[j] the uniform number stands for by inversion; none[j] is the chance of none. */
static PyObject *binomials(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[8];
    Py_ssize_t sets, groups, columns;
    int64_t *places = NULL;
    (void)self;
    if (take_all(args, count, a, 8, 1) < 0)
        return NULL;
    groups = a[0].type && a[0].view.ndim == 2 ? LENGTH(a[0], 1) : -1;
    if (groups < 0 || !is_table(&a[0], 'd', -1, groups) || !is_vector(&a[1], 'q', groups)
        || !is_vector(&a[2], 'd', groups) || !is_vector(&a[3], 'd', groups) || !is_vector(&a[4], 'd', groups)
        || !is_vector(&a[5], 'd', groups) || !is_vector(&a[6], 'q', groups)
        || !is_table(&a[7], 'd', LENGTH(a[0], 0), -1) || !(places = copy_places(&a[6], 0, LENGTH(a[7], 1))))
        return do_not_fit(a, 8, "of binomials");
    sets = LENGTH(a[0], 0);
    columns = LENGTH(a[7], 1);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t first = 0; first < groups; first += GROUPS) {
        const int64_t *rows = (const int64_t *)a[1].view.buf + first, *place = places + first;
        const double *uniform = DOUBLES(a[0]) + first, *none = DOUBLES(a[2]) + first, *rare = DOUBLES(a[3]) + first;
        const double *unit = DOUBLES(a[4]) + first, *base = DOUBLES(a[5]) + first;
        double chance[FEW * GROUPS], own[COUNTS], *out = DOUBLES(a[7]);
        Py_ssize_t width = groups - first < GROUPS ? groups - first : GROUPS, most = 0;
        for (Py_ssize_t j = 0; j < width; j++) {
            Py_ssize_t counts = chances_up_to(rows[j], none[j], rare[j], own);
            for (; most < counts; most++)
                for (Py_ssize_t i = 0; most < FEW && i < width; i++)
                    chance[most * GROUPS + i] = INFINITY;
            for (Py_ssize_t k = 0; k < counts && k < FEW; k++)
                chance[k * GROUPS + j] = own[k];
        }
        count_few(uniform, groups, sets, chance, most < FEW ? most : FEW, width, unit, base, place, out, columns);
        for (Py_ssize_t j = 0; most > FEW && j < width; j++) {
            Py_ssize_t counts = chances_up_to(rows[j], none[j], rare[j], own);
            for (Py_ssize_t i = 0; counts > FEW && i < sets; i++) {
                Py_ssize_t found = 0;
                while (found < counts && uniform[i * groups + j] > own[found])
                    found++;
                out[i * columns + place[j]] = base[j] + unit[j] * (double)found;
            }
        }
    }
    Py_END_ALLOW_THREADS
    free(places);
    give_arrays(a, 8);
    Py_RETURN_NONE;
}

/* Labels beyond which bounds are searched by halves. */
#define SEARCHED 24

VECTORISED static void label_row(const uint32_t *word, const uint32_t *bound, Py_ssize_t bounds, Py_ssize_t sets,
                                 int32_t *label)
{
    for (Py_ssize_t i = 0; i < sets; i++)
        label[i] = 0;
    for (Py_ssize_t k = 0; k < bounds; k++)
        for (Py_ssize_t i = 0; i < sets; i++)
            label[i] += (word[i] | 1) > bound[k];
}

static void search_row(const uint32_t *word, const uint32_t *bound, Py_ssize_t bounds, Py_ssize_t sets, int32_t *label)
{
    for (Py_ssize_t i = 0; i < sets; i++) {
        const uint32_t *from = bound;
        Py_ssize_t left = bounds;
        while (left > 1) {
            Py_ssize_t half = left / 2;
            from += half & -(Py_ssize_t)(from[half - 1] < (word[i] | 1)); /* nothing to guess for the machine */
            left -= half;
        }
        label[i] = (int32_t)(from - bound + (left && *from < (word[i] | 1)));
    }
}

/* labels(words, bounds, place, weight, out): for each row r and set i, the label is the number of bounds[r] below
   words[r, i] made odd, and weight[r] is added to out[i, place[r, label]]. */
static PyObject *labels(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[5];
    Py_ssize_t rows, sets, bounds, groups;
    const int32_t *place;
    int32_t label[CHUNK];
    int fine;
    (void)self;
    if (take_all(args, count, a, 5, 1) < 0)
        return NULL;
    rows = a[0].type && a[0].view.ndim == 2 ? LENGTH(a[0], 0) : -1;
    sets = rows < 0 ? 0 : LENGTH(a[0], 1);
    bounds = a[1].type && a[1].view.ndim == 2 ? LENGTH(a[1], 1) : -1;
    fine = rows >= 0 && bounds >= 0 && is_table(&a[0], 'I', rows, sets) && is_table(&a[1], 'I', rows, bounds)
           && is_table(&a[2], 'i', rows, bounds + 1) && is_vector(&a[3], 'd', rows) && is_table(&a[4], 'd', sets, -1);
    if (fine) {
        place = a[2].view.buf;
        groups = LENGTH(a[4], 1);
        for (Py_ssize_t i = 0; i < rows * (bounds + 1); i++)
            fine &= place[i] >= 0 && place[i] < groups;
    }
    if (!fine) {
        give_arrays(a, 5);
        return PyErr_Format(PyExc_ValueError, "the arrays of labels do not fit");
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t r = 0; r < rows; r++)
        for (Py_ssize_t first = 0; first < sets; first += CHUNK) {
            Py_ssize_t width = sets - first < CHUNK ? sets - first : CHUNK;
            const uint32_t *word = (const uint32_t *)a[0].view.buf + r * sets + first;
            const uint32_t *bound = (const uint32_t *)a[1].view.buf + r * bounds;
            const int32_t *to = place + r * (bounds + 1);
            double *out = DOUBLES(a[4]) + first * groups, weight = DOUBLES(a[3])[r];
            (bounds > SEARCHED ? search_row : label_row)(word, bound, bounds, width, label);
            for (Py_ssize_t i = 0; i < width; i++) {
                uint32_t at = (uint32_t)to[label[i]];
                if (at < groups) /* no more only where a place has changed since it was checked */
                    out[i * groups + at] += weight;
            }
        }
    Py_END_ALLOW_THREADS
    give_arrays(a, 5);
    Py_RETURN_NONE;
}

/* hits(order, cell, group, weight, out): for each number row * sets + set in `order`, add weight[row] to
   out[set, group[cell[row]]]. */
static PyObject *hits(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[5];
    Py_ssize_t sets, rows, groups, cells;
    int fine = 1;
    (void)self;
    if (take_all(args, count, a, 5, 1) < 0)
        return NULL;
    rows = a[1].type && a[1].view.ndim == 1 ? LENGTH(a[1], 0) : -1;
    cells = a[2].type && a[2].view.ndim == 1 ? LENGTH(a[2], 0) : -1;
    if (rows < 0 || cells < 0 || !a[0].type || a[0].view.ndim != 1 || !is_vector(&a[0], 'I', LENGTH(a[0], 0))
        || !is_vector(&a[1], 'i', rows) || !is_vector(&a[2], 'q', cells) || !is_vector(&a[3], 'd', rows)
        || !is_table(&a[4], 'd', -1, -1) || !LENGTH(a[4], 0)) {
        give_arrays(a, 5);
        return PyErr_Format(PyExc_ValueError, "the arrays of hits do not fit");
    }
    sets = LENGTH(a[4], 0);
    groups = LENGTH(a[4], 1);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < LENGTH(a[0], 0); i++) {
        Py_ssize_t number = ((const uint32_t *)a[0].view.buf)[i], row = number / sets, group = -1;
        int32_t cell = row < rows ? ((const int32_t *)a[1].view.buf)[row] : -1;
        if (cell >= 0 && cell < cells)
            group = ((const int64_t *)a[2].view.buf)[cell];
        if (group < 0 || group >= groups) {
            fine = 0;
            break;
        }
        DOUBLES(a[4])[(number - row * sets) * groups + group] += DOUBLES(a[3])[row];
    }
    Py_END_ALLOW_THREADS
    give_arrays(a, 5);
    if (!fine)
        return PyErr_Format(PyExc_ValueError, "a hit has no place");
    Py_RETURN_NONE;
}

/* Numbers searched for together: no step of one waits for that of another. */
#define SOUGHT 8

/* How many of n rising numbers are at most each of some. */
static void at_most(const double *from, Py_ssize_t n, const double *x, int32_t *found)
{
    const double *at[SOUGHT];
    for (int i = 0; i < SOUGHT; i++)
        at[i] = from;
    for (; n > 1; n -= n / 2)
        for (int i = 0; i < SOUGHT; i++)
            at[i] += (n / 2) & -(Py_ssize_t)(at[i][n / 2 - 1] <= x[i]);
    for (int i = 0; i < SOUGHT; i++)
        found[i] = (int32_t)(at[i] - from + (n && *at[i] <= x[i]));
}

/* label(score, words, columns, out): a label for each row and set, drawn with chances in proportion to the scores, whose
   labels are 0, 1, ... in the order of these columns. */
static PyObject *label(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[4];
    Py_ssize_t rows, sets, classes;
    int64_t *column = NULL;
    double *total;
    (void)self;
    if (take_all(args, count, a, 4, 1) < 0)
        return NULL;
    rows = a[0].type && a[0].view.ndim == 2 ? LENGTH(a[0], 0) : -1;
    classes = rows < 0 ? 0 : LENGTH(a[0], 1);
    sets = a[1].type && a[1].view.ndim == 2 ? LENGTH(a[1], 1) : -1;
    if (rows < 0 || classes < 1 || sets < 0 || !(is_table(&a[0], 'd', rows, classes) || is_table(&a[0], 'f', rows, classes))
        || !is_table(&a[1], 'I', rows, sets) || !is_vector(&a[2], 'q', classes) || !is_table(&a[3], 'i', rows, sets)
        || !(column = copy_places(&a[2], 0, classes)))
        return do_not_fit(a, 4, "of labels");
    total = malloc(classes * sizeof(double));
    if (!total) {
        free(column);
        give_arrays(a, 4);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t r = 0; r < rows; r++) {
        const uint32_t *word = (const uint32_t *)a[1].view.buf + r * sets;
        int32_t *out = (int32_t *)a[3].view.buf + r * sets;
        double sum = 0;
        if (a[0].type == 'd')
            for (Py_ssize_t k = 0; k < classes; k++)
                total[k] = sum += DOUBLES(a[0])[r * classes + column[k]];
        else
            for (Py_ssize_t k = 0; k < classes; k++)
                total[k] = sum += ((const float *)a[0].view.buf)[r * classes + column[k]];
        for (Py_ssize_t first = 0; first < sets; first += SOUGHT) {
            Py_ssize_t width = sets - first < SOUGHT ? sets - first : SOUGHT;
            double point[SOUGHT] = {0};
            int32_t found[SOUGHT];
            for (Py_ssize_t i = 0; i < width; i++)
                point[i] = (word[first + i] + 0.5) * 0x1p-32 * sum;
            at_most(total, classes - 1, point, found);
            memcpy(out + first, found, width * sizeof(int32_t));
        }
    }
    Py_END_ALLOW_THREADS
    free(total);
    free(column);
    give_arrays(a, 4);
    Py_RETURN_NONE;
}

/* interpolate(x, knots, values, out): out[v, r, i] is values[v, r] at x[r, i], linear between knots[r], which do not
   fall; beyond them the line of the last two goes on. */
static PyObject *interpolate(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[4];
    Py_ssize_t rows, points, knots, values;
    (void)self;
    if (take_all(args, count, a, 4, 1) < 0)
        return NULL;
    rows = a[0].type && a[0].view.ndim == 2 ? LENGTH(a[0], 0) : -1;
    points = rows < 0 ? 0 : LENGTH(a[0], 1);
    knots = a[1].type && a[1].view.ndim == 2 ? LENGTH(a[1], 1) : 0;
    values = a[2].type == 'd' && a[2].view.ndim == 3 ? LENGTH(a[2], 0) : -1;
    if (rows < 0 || knots < 2 || values < 0 || !is_table(&a[0], 'd', rows, points) || !is_table(&a[1], 'd', rows, knots)
        || LENGTH(a[2], 1) != rows || LENGTH(a[2], 2) != knots || !PyBuffer_IsContiguous(&a[2].view, 'C')
        || a[3].type != 'd' || a[3].view.ndim != 3 || LENGTH(a[3], 0) != values || LENGTH(a[3], 1) != rows
        || LENGTH(a[3], 2) != points || !PyBuffer_IsContiguous(&a[3].view, 'C')) {
        give_arrays(a, 4);
        return PyErr_Format(PyExc_ValueError, "the arrays to interpolate do not fit");
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t r = 0; r < rows; r++) {
        const double *x = DOUBLES(a[0]) + r * points, *knot = DOUBLES(a[1]) + r * knots;
        Py_ssize_t at = 0;
        for (Py_ssize_t i = 0; i < points; i++) {
            double width, share;
            if (i && x[i] < x[i - 1])
                at = 0;
            while (at < knots - 2 && knot[at + 1] <= x[i])
                at++;
            width = knot[at + 1] - knot[at];
            share = width > 0 ? (x[i] - knot[at]) / width : 0.0;
            for (Py_ssize_t v = 0; v < values; v++) {
                const double *value = DOUBLES(a[2]) + (v * rows + r) * knots + at;
                DOUBLES(a[3])[(v * rows + r) * points + i] = value[0] + share * (value[1] - value[0]);
            }
        }
    }
    Py_END_ALLOW_THREADS
    give_arrays(a, 4);
    Py_RETURN_NONE;
}

#ifdef HAVE_LANES

enum { RESIDUAL, STEP, SHARE, WAYS, FIRST, LAST, CELL, WEIGHT, WIDTHS, TURNS, Z, SHOWN, ARRAYS };

typedef struct {
    Py_ssize_t steps, cells, runs, fine, widths;
    int64_t *step, *first, *last, *cell, *width; /* copies */
    const double *share, *ways, *weight, *turns;
} Walk;

/* Coefficients of orthonormal cosines. */
PART void transform(Lanes *x, Py_ssize_t n, const double *turns, Lanes *work)
{
    double first = sqrt(1.0 / (double)n), other = sqrt(2.0 / (double)n);
    cosines(x, n, turns, work);
    for (Py_ssize_t k = 0; k < n; k++)
        x[k] *= k ? other : first;
}

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
        transform(x, w->fine, w->turns, work);
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
    transform(x, w->cells, w->turns, work);
}

static int fits(const Array *a, Walk *w)
{
    Py_ssize_t sets;
    if (a[RESIDUAL].view.ndim != 2 || a[Z].view.ndim != 2 || a[CELL].view.ndim != 1 || a[WIDTHS].view.ndim != 1
        || a[TURNS].view.ndim != 1)
        return 0;
    sets = LENGTH(a[RESIDUAL], 0);
    w->steps = LENGTH(a[RESIDUAL], 1);
    w->cells = LENGTH(a[Z], 1);
    w->runs = LENGTH(a[CELL], 0);
    w->widths = LENGTH(a[WIDTHS], 0);
    if (w->steps < 1 || w->cells < 1 || w->cells & (w->cells - 1) || w->fine < 0 || w->fine & (w->fine - 1)
        || !is_table(&a[RESIDUAL], 'd', sets, w->steps) || !is_vector(&a[STEP], 'q', w->cells - 1)
        || !is_vector(&a[SHARE], 'd', w->cells - 1) || !is_table(&a[WAYS], 'd', 2, w->steps)
        || !is_vector(&a[FIRST], 'q', w->runs) || !is_vector(&a[LAST], 'q', w->runs)
        || !is_vector(&a[CELL], 'q', w->runs) || !is_vector(&a[WEIGHT], 'd', w->runs)
        || !is_vector(&a[WIDTHS], 'q', w->widths) || !is_vector(&a[TURNS], 'd', LENGTH(a[TURNS], 0))
        || LENGTH(a[TURNS], 0) < (w->cells > w->fine ? w->cells : w->fine) || !is_table(&a[Z], 'd', sets, w->cells)
        || !is_table(&a[SHOWN], 'd', sets, 3 + w->widths))
        return 0;
    w->share = DOUBLES(a[SHARE]);
    w->ways = DOUBLES(a[WAYS]);
    w->weight = DOUBLES(a[WEIGHT]);
    w->turns = DOUBLES(a[TURNS]);
    return (w->step = copy_places(&a[STEP], 0, w->steps)) && (w->first = copy_places(&a[FIRST], 0, w->steps + 1))
           && (w->last = copy_places(&a[LAST], 0, w->steps + 1)) && (w->cell = copy_places(&a[CELL], 0, w->fine))
           && (w->width = copy_places(&a[WIDTHS], 1, PY_SSIZE_T_MAX));
}

static void free_walk(const Walk *w)
{
    free(w->step);
    free(w->first);
    free(w->last);
    free(w->cell);
    free(w->width);
}

/* walks(residual, step, share, ways, first, last, cell, weight, widths, turns, z, shown, fine): see `walk`; `fine` is
   the number of cells along the score, 0 for none. */
static PyObject *walks(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[ARRAYS];
    Walk w;
    Py_ssize_t sets, room, columns;
    Lanes *total, *x, *work, *shown;
    char *block;
    (void)self;
    if (count != ARRAYS + 1)
        return PyErr_Format(PyExc_TypeError, "walks takes %d arguments", ARRAYS + 1);
    memset(&w, 0, sizeof(w));
    w.fine = PyLong_AsSsize_t(args[ARRAYS]);
    if (w.fine == -1 && PyErr_Occurred())
        return NULL;
    if (take_all(args, ARRAYS, a, ARRAYS, 2) < 0)
        return NULL;
    for (int i = 0; i < ARRAYS; i++)
        if (!a[i].type) {
            give_arrays(a, ARRAYS);
            return PyErr_Format(PyExc_TypeError, "walks takes arrays");
        }
    if (!fits(a, &w)) {
        free_walk(&w);
        return do_not_fit(a, ARRAYS, "of walks");
    }
    sets = LENGTH(a[RESIDUAL], 0);
    room = w.cells > w.fine ? w.cells : w.fine;
    columns = 3 + w.widths;
    block = malloc((w.steps + 1 + 2 * room + columns + 2) * sizeof(Lanes));
    if (!block) {
        free_walk(&w);
        give_arrays(a, ARRAYS);
        return PyErr_NoMemory();
    }
    total = (Lanes *)(block + -(uintptr_t)block % sizeof(Lanes));
    x = total + w.steps + 1;
    work = x + room;
    shown = work + room;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t first = 0; first < sets; first += LANES) {
        const double *residual[LANES];
        for (int l = 0; l < LANES; l++) /* lanes without a set repeat the last one */
            residual[l] = DOUBLES(a[RESIDUAL]) + (first + l < sets ? first + l : sets - 1) * w.steps;
        for (Py_ssize_t i = 0; i < columns; i++)
            shown[i] = (Lanes){0};
        walk(&w, residual, total, x, work, shown);
        for (Py_ssize_t l = 0; l < LANES && first + l < sets; l++) {
            double *z = DOUBLES(a[Z]) + (first + l) * w.cells, *out = DOUBLES(a[SHOWN]) + (first + l) * columns;
            for (Py_ssize_t k = 0; k < w.cells; k++)
                z[k] = x[k][l];
            for (Py_ssize_t i = 0; i < columns; i++)
                out[i] = shown[i][l];
        }
    }
    Py_END_ALLOW_THREADS
    free(block);
    free_walk(&w);
    give_arrays(a, ARRAYS);
    Py_RETURN_NONE;
}

#endif

PyMethodDef draw_methods[] = {
    {"outcomes", FASTCALL(outcomes), METH_FASTCALL, NULL},
    {"binomials", FASTCALL(binomials), METH_FASTCALL, NULL},
    {"interpolate", FASTCALL(interpolate), METH_FASTCALL, NULL},
    {"hits", FASTCALL(hits), METH_FASTCALL, NULL},
    {"label", FASTCALL(label), METH_FASTCALL, NULL},
    {"labels", FASTCALL(labels), METH_FASTCALL, NULL},
    {"normals", FASTCALL(normals), METH_FASTCALL, NULL},
#ifdef HAVE_LANES
    {"walks", FASTCALL(walks), METH_FASTCALL, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

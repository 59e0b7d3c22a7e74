/* Simulated calibrated data: outcomes and labels from random words. */
#include "loops.h"

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
LOOP(outcomes)
{
    enum { WORDS, BOUNDS, UNIT, BASE, PLACE, OUT };
    Call call;
    Array *a = call.array;
    if (begin(&call, "outcomes", "I(sg) I(mg) d(g) d(g) q(g) >d(sc)", args, count) < 0)
        return NULL;
    Py_ssize_t groups = SIZE(call, 'g'), columns = SIZE(call, 'c');
    const int64_t *place = borrow_places(&call, PLACE, 0, columns);
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; place && i < SIZE(call, 's'); i++)
        count_one((const uint32_t *)a[WORDS].view.buf + i * groups, a[BOUNDS].view.buf, groups, SIZE(call, 'm'),
                  DOUBLES(a[UNIT]), DOUBLES(a[BASE]), place, DOUBLES(a[OUT]) + i * columns);
    Py_END_ALLOW_THREADS
    return finish(&call);
}

/* normals(words, table, sd, place, out): out[i, place[j]] = sd[j] * table[words[i, j]], for a table of all words. */
LOOP(normals)
{
    enum { WORDS, TABLE, SD, PLACE, OUT };
    Call call;
    Array *a = call.array;
    if (begin(&call, "normals", "H(sg) d(t) d(g) q(g) >d(sc)", args, count) < 0)
        return NULL;
    Py_ssize_t groups = SIZE(call, 'g'), columns = SIZE(call, 'c');
    const int64_t *place = borrow_places(&call, PLACE, 0, columns);
    if (SIZE(call, 't') != 65536)
        fail(&call, "the table must have a number for each word");
    else if (place) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < SIZE(call, 's'); i++) {
            const uint16_t *word = (const uint16_t *)a[WORDS].view.buf + i * groups;
            for (Py_ssize_t j = 0; j < groups; j++)
                DOUBLES(a[OUT])[i * columns + place[j]] = DOUBLES(a[SD])[j] * DOUBLES(a[TABLE])[word[j]];
        }
        Py_END_ALLOW_THREADS
    }
    return finish(&call);
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
LOOP(labels)
{
    enum { WORDS, BOUNDS, PLACE, WEIGHT, OUT };
    Call call;
    Array *a = call.array;
    int32_t label[CHUNK];
    int fine;
    if (begin(&call, "labels", "I(rs) I(rb) i(rl) d(r) >d(sg)", args, count) < 0)
        return NULL;
    Py_ssize_t rows = SIZE(call, 'r'), sets = SIZE(call, 's'), bounds = SIZE(call, 'b'), groups = SIZE(call, 'g');
    const int32_t *place = a[PLACE].view.buf;
    fine = SIZE(call, 'l') == bounds + 1;
    for (Py_ssize_t i = 0; fine && i < rows * (bounds + 1); i++)
        fine = place[i] >= 0 && place[i] < groups;
    if (!fine)
        fail(&call, "a place is outside of its array");
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t r = 0; fine && r < rows; r++)
        for (Py_ssize_t first = 0; first < sets; first += CHUNK) {
            Py_ssize_t width = sets - first < CHUNK ? sets - first : CHUNK;
            const uint32_t *word = (const uint32_t *)a[WORDS].view.buf + r * sets + first;
            const uint32_t *bound = (const uint32_t *)a[BOUNDS].view.buf + r * bounds;
            const int32_t *to = place + r * (bounds + 1);
            double *out = DOUBLES(a[OUT]) + first * groups, weight = DOUBLES(a[WEIGHT])[r];
            (bounds > SEARCHED ? search_row : label_row)(word, bound, bounds, width, label);
            for (Py_ssize_t i = 0; i < width; i++) {
                uint32_t at = (uint32_t)to[label[i]];
                if (at < groups) /* no more only where a place has changed since it was checked */
                    out[i * groups + at] += weight;
            }
        }
    Py_END_ALLOW_THREADS
    return finish(&call);
}

/* hits(order, cell, group, weight, out): for each number row * sets + set in `order`, add weight[row] to
   out[set, group[cell[row]]]. */
LOOP(hits)
{
    enum { ORDER, CELL, GROUP, WEIGHT, OUT };
    Call call;
    Array *a = call.array;
    int fine = 1;
    if (begin(&call, "hits", "I(n) i(r) q(c) d(r) >d(sg)", args, count) < 0)
        return NULL;
    Py_ssize_t sets = SIZE(call, 's'), groups = SIZE(call, 'g');
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < SIZE(call, 'n') && fine; i++) {
        Py_ssize_t number = ((const uint32_t *)a[ORDER].view.buf)[i], row = sets ? number / sets : -1, group = -1;
        int32_t cell = row >= 0 && row < SIZE(call, 'r') ? ((const int32_t *)a[CELL].view.buf)[row] : -1;
        if (cell >= 0 && cell < SIZE(call, 'c'))
            group = ((const int64_t *)a[GROUP].view.buf)[cell];
        fine = group >= 0 && group < groups;
        if (fine)
            DOUBLES(a[OUT])[(number - row * sets) * groups + group] += DOUBLES(a[WEIGHT])[row];
    }
    Py_END_ALLOW_THREADS
    if (!fine)
        fail(&call, "a hit has no place");
    return finish(&call);
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
LOOP(label)
{
    enum { SCORE, WORDS, COLUMNS, OUT };
    Call call;
    Array *a = call.array;
    if (begin(&call, "label", "df(rc) I(rs) q(c) >i(rs)", args, count) < 0)
        return NULL;
    Py_ssize_t classes = SIZE(call, 'c'), sets = SIZE(call, 's');
    const int64_t *column = borrow_places(&call, COLUMNS, 0, classes);
    double *total = borrow(&call, (size_t)classes * sizeof(double));
    if (classes < 1)
        fail(&call, "there must be a class");
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t r = 0; classes && column && total && r < SIZE(call, 'r'); r++) {
        const uint32_t *word = (const uint32_t *)a[WORDS].view.buf + r * sets;
        int32_t *out = (int32_t *)a[OUT].view.buf + r * sets;
        double sum = 0;
        if (a[SCORE].type == 'd')
            for (Py_ssize_t k = 0; k < classes; k++)
                total[k] = sum += DOUBLES(a[SCORE])[r * classes + column[k]];
        else
            for (Py_ssize_t k = 0; k < classes; k++)
                total[k] = sum += ((const float *)a[SCORE].view.buf)[r * classes + column[k]];
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
    return finish(&call);
}

PyMethodDef draw_methods[] = {
    METHOD(outcomes), METHOD(normals), METHOD(labels), METHOD(hits), METHOD(label), NO_METHOD,
};

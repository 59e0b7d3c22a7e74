/* Rows by cells of the scores: scores at given ranks without sorting all, and how far scores spread. */
#include "loops.h"

enum { SCORE, OUTCOME, CELLS };

/* Read scores along one axis, outcomes of as many rows or None, and an array with one entry for each of 2^bits cells
   and one for the score 1. */
static int take_rows(PyObject *const *args, Array *a, char type, int ndim, double *cells)
{
    Py_ssize_t n;
    if (take_arrays(args, a, CELLS + 1, type != '?') < 0)
        return -1;
    if (a[SCORE].type && strchr("df", a[SCORE].type) && a[SCORE].view.ndim == 1 && is_aligned(&a[SCORE]) &&
        (!a[OUTCOME].type || (a[OUTCOME].type == '?' && a[OUTCOME].view.ndim == 1 &&
                              LENGTH(a[OUTCOME], 0) == LENGTH(a[SCORE], 0))) &&
        is_plain(&a[CELLS], type, ndim)) {
        n = LENGTH(a[CELLS], 0) - 1;
        if (n > 0 && n <= 1 << 29 && !(n & (n - 1))) {
            *cells = (double)n;
            return 0;
        }
    }
    give_arrays(a, CELLS + 1);
    return fail("there must be scores along one axis, as many outcomes, and an entry for each of a power of two cells "
                "and one more");
}

/* Up to BLOCK scores and their cells; NULL where one is outside of [0, 1]. */
static const double *cells_of(const Array *score, Py_ssize_t start, int n, double cells, double *room, int32_t *cell)
{
    const char *from = (const char *)score->view.buf + start * STRIDE(*score, 0);
    const double *x = doubles(from, STRIDE(*score, 0), score->type, n, room);
    LINED double copy[BLOCK];
    if (!copy_in_range(x, n, copy))
        return NULL;
    cells_by_power(copy, n, cells, cell);
    return x;
}

/* The outcomes of a block of rows, one after the other; zeros where there are none. */
static const uint8_t *outcomes_of(const Array *outcome, Py_ssize_t start, int n, uint8_t *room)
{
    const uint8_t *from = outcome->view.buf;
    if (outcome->type && STRIDE(*outcome, 0) == 1)
        return from + start;
    for (int i = 0; i < n; i++)
        room[i] = outcome->type ? from[(start + i) * STRIDE(*outcome, 0)] : 0;
    return room;
}

/* count_cells(score, None, count): add the number of scores in each cell, of fewer than 2^31. */
static PyObject *count_cells(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[3];
    double cells, room[BLOCK];
    int32_t cell[BLOCK];
    int bad = 0;
    (void)self;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "count_cells takes three arrays");
    if (take_rows(args, a, 'i', 1, &cells) < 0)
        return NULL;
    if (LENGTH(a[SCORE], 0) > INT32_MAX) {
        give_arrays(a, 3);
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
    give_arrays(a, 3);
    if (bad)
        return PyErr_Format(PyExc_ValueError, "scores must lie in [0, 1]");
    Py_RETURN_NONE;
}

/* Which of two sums of a cell each row belongs to. */
VECTORISED static void halves_of(const int32_t *restrict cell, const uint8_t *restrict y, int n, int32_t *restrict half)
{
    for (int i = 0; i < n; i++)
        half[i] = 2 * cell[i] + (y[i] != 0);
}

/* sum_cells(score, outcome, sums): add the number of rows and the sum of their scores by cell and outcome; `sums` has
   the shape (cells + 1, 2, 2). */
static PyObject *sum_cells(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[3];
    double cells, scores[BLOCK];
    uint8_t outcomes[BLOCK];
    int32_t cell[BLOCK], half[BLOCK];
    int bad = 0;
    (void)self;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "sum_cells takes three arrays");
    if (take_rows(args, a, 'd', 3, &cells) < 0)
        return NULL;
    if (LENGTH(a[CELLS], 1) != 2 || LENGTH(a[CELLS], 2) != 2) {
        give_arrays(a, 3);
        return PyErr_Format(PyExc_ValueError, "there must be two sums for each outcome of a cell");
    }
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t n = LENGTH(a[SCORE], 0);
    double *sums = a[CELLS].view.buf;
    for (Py_ssize_t start = 0; start < n && !bad; start += BLOCK) {
        int m = (int)(n - start < BLOCK ? n - start : BLOCK);
        const double *x = cells_of(&a[SCORE], start, m, cells, scores, cell);
        const uint8_t *y = outcomes_of(&a[OUTCOME], start, m, outcomes);
        bad = !x;
        if (!bad)
            halves_of(cell, y, m, half);
        for (int i = 0; i < m && !bad; i++)
            ADD_PAIR(sums + 2 * (Py_ssize_t)half[i], x[i]);
    }
    Py_END_ALLOW_THREADS
    give_arrays(a, 3);
    if (bad)
        return PyErr_Format(PyExc_ValueError, "scores must lie in [0, 1]");
    Py_RETURN_NONE;
}

/* Rows of which it is told at once whether one is picked, and cells so few that they are compared one by one. */
#define PIECE 64
#define FEW 16

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

/* A row as an integer: rows are ordered like their keys, by score and then by outcome. */
static inline uint64_t key_of(double x, uint8_t y)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits << 1 | (y != 0); /* the sign of -0.0 goes */
}

/* Write down the keys of up to BLOCK rows whose cells are held; returns how many. */
static int pick_some(const Held *held, const double *x, const uint8_t *y, const int32_t *cell, int n, uint64_t *key)
{
    int32_t row[BLOCK];
    int found = 0;
    for (int from = 0; from < n; from += PIECE) {
        int end = n - from < PIECE ? n : from + PIECE;
        if (held->count <= FEW && !among(held->few, (int)held->count, cell + from, end - from))
            continue;
        for (int i = from; i < end; i++) {
            row[found] = i; /* the next one takes its place if it is not held */
            found += (int)(held->bits[cell[i] >> 5] >> (cell[i] & 31) & 1);
        }
    }
    for (int i = 0; i < found; i++)
        key[i] = key_of(x[row[i]], y[row[i]]);
    return found;
}

/* pick_cells(score, outcome, held, kept): write down the keys of the rows in the cells that are held; returns how
   many. */
static PyObject *pick_cells(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[4];
    double cells, scores[BLOCK];
    uint8_t outcomes[BLOCK];
    uint64_t key[BLOCK];
    int32_t cell[BLOCK];
    int bad = 0;
    Py_ssize_t found = 0;
    Held held = {NULL, {0}, 0};
    (void)self;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "pick_cells takes four arrays");
    if (take_rows(args, a, '?', 1, &cells) < 0)
        return NULL;
    if (take_array(args[3], &a[3], 1) < 0) {
        give_arrays(a, 3);
        return NULL;
    }
    if (!is_plain(&a[3], 'q', 1)) {
        give_arrays(a, 4);
        return PyErr_Format(PyExc_TypeError, "rows are kept as int64");
    }
    held.bits = calloc((size_t)(LENGTH(a[CELLS], 0) / 32 + 1), sizeof(uint32_t));
    if (!held.bits) {
        give_arrays(a, 4);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t n = LENGTH(a[SCORE], 0), most = LENGTH(a[3], 0);
    const uint8_t *wanted = a[CELLS].view.buf;
    uint64_t *kept = a[3].view.buf;
    for (Py_ssize_t j = 0; j < LENGTH(a[CELLS], 0); j++)
        if (wanted[j]) {
            held.bits[j >> 5] |= (uint32_t)1 << (j & 31);
            if (held.count < FEW)
                held.few[held.count] = (int32_t)j;
            held.count++;
        }
    for (Py_ssize_t start = 0; start < n && !bad; start += BLOCK) {
        int m = (int)(n - start < BLOCK ? n - start : BLOCK);
        const double *x = cells_of(&a[SCORE], start, m, cells, scores, cell);
        const uint8_t *y = outcomes_of(&a[OUTCOME], start, m, outcomes);
        bad = !x;
        if (!bad) {
            Py_ssize_t some = pick_some(&held, x, y, cell, m, key), room = found < most ? most - found : 0;
            if (room)
                memcpy(kept + found, key, (size_t)(some < room ? some : room) * sizeof(*kept));
            found += some;
        }
    }
    Py_END_ALLOW_THREADS
    free(held.bits);
    give_arrays(a, 4);
    if (bad)
        return PyErr_Format(PyExc_ValueError, "scores must lie in [0, 1]");
    return PyLong_FromSsize_t(found);
}

/* Keys are sorted by some of their bits at a time, from the last to the first. */
#define DIGIT 11
#define DIGITS ((63 + DIGIT - 1) / DIGIT)

/* Sort keys, with room for as many; returns where they are then. */
static uint64_t *sorted(uint64_t *key, uint64_t *room, Py_ssize_t n, Py_ssize_t (*place)[1 << DIGIT])
{
    const uint64_t mask = (1 << DIGIT) - 1;
    for (Py_ssize_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++)
            place[d][key[i] >> d * DIGIT & mask]++;
    for (int d = 0; d < DIGITS; d++) {
        uint64_t *other = room;
        Py_ssize_t before = 0;
        if (n && place[d][key[0] >> d * DIGIT & mask] == n)
            continue; /* all are alike */
        for (int j = 0; j < 1 << DIGIT; j++) {
            Py_ssize_t own = place[d][j];
            place[d][j] = before;
            before += own;
        }
        for (Py_ssize_t i = 0; i < n; i++) {
            uint64_t own = key[i];
            Py_ssize_t to = place[d][own >> d * DIGIT & mask]++;
            if (to < n) /* more only where a key has changed since it was counted */
                room[to] = own;
        }
        room = key;
        key = other;
    }
    return key;
}

/* sort_keys(keys): sort positive integers in place. */
static PyObject *sort_keys(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array keys;
    Py_ssize_t n, (*place)[1 << DIGIT];
    uint64_t *room;
    (void)self;
    if (count != 1)
        return PyErr_Format(PyExc_TypeError, "sort_keys takes one array");
    if (take_array(args[0], &keys, 1) < 0)
        return NULL;
    if (!is_plain(&keys, 'q', 1)) {
        give_arrays(&keys, 1);
        return PyErr_Format(PyExc_TypeError, "sort_keys takes int64 side by side");
    }
    n = LENGTH(keys, 0);
    room = malloc((size_t)(n + 1) * sizeof(*room));
    place = calloc(DIGITS, sizeof(*place));
    if (!room || !place) {
        free(room);
        free(place);
        give_arrays(&keys, 1);
        return PyErr_NoMemory();
    }
    Py_BEGIN_ALLOW_THREADS
    if (sorted(keys.view.buf, room, n, place) == room)
        memcpy(keys.view.buf, room, (size_t)n * sizeof(*room));
    Py_END_ALLOW_THREADS
    free(room);
    free(place);
    give_arrays(&keys, 1);
    Py_RETURN_NONE;
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
    {"sum_cells", FASTCALL(sum_cells), METH_FASTCALL, NULL},
    {"pick_cells", FASTCALL(pick_cells), METH_FASTCALL, NULL},
    {"sort_keys", FASTCALL(sort_keys), METH_FASTCALL, NULL},
    {"squared_distances", FASTCALL(squared_distances), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

/* Totals of whole rows: the weight, how often the label was predicted, its log loss and its Brier score.

   The log losses of rows of weight one are the logarithm of a product: eight products take turns, and what
   they have of powers of two is counted apart before they become too small. */
#include "loops.h"
#include <math.h>

#define LANES 8
/* Factors of a product before its powers of two are counted, and the least factor of this road: sixteen of them
   are far above the least number there is. */
#define FACTORS 16
#define LEAST 0x1p-60
#define MOST_EXPONENT 1022

typedef struct {
    double weight, right, log_loss, impossible, brier;
} Totals;

/* Products of scores: in each lane a number in (1/2, 1], and the powers of two of all of them. */
typedef struct {
    double lane[LANES];
    int64_t powers[LANES];
} Products;

/* What a product has of powers of two, up to a number in (1/2, 1], moves to a count of its own. */
static inline void count_powers(double *lane, int64_t *powers)
{
    for (int l = 0; l < LANES; l++) {
        uint64_t bits, exponent;
        memcpy(&bits, lane + l, 8);
        /* One less, so that 1 counts as the upper end. */
        exponent = ((bits - 1) >> 52) - MOST_EXPONENT;
        powers[l] += (int64_t)exponent;
        bits -= exponent << 52;
        memcpy(lane + l, &bits, 8);
    }
}

/* Multiply a block of scores from LEAST to 1 into the products. */
VECTORISED static void multiply(const double *restrict own, Products *restrict products)
{
    double lane[LANES];
    int64_t powers[LANES];
    memcpy(lane, products->lane, sizeof(lane));
    memcpy(powers, products->powers, sizeof(powers));
    for (int i = 0; i < BLOCK; i += LANES * FACTORS) {
        for (int j = i; j < i + LANES * FACTORS; j += LANES)
            for (int l = 0; l < LANES; l++)
                lane[l] *= own[j + l];
        count_powers(lane, powers);
    }
    memcpy(products->lane, lane, sizeof(lane));
    memcpy(products->powers, powers, sizeof(powers));
}

static double log_of(const Products *products)
{
    double product = 1;
    int64_t powers = 0;
    for (int l = 0; l < LANES; l++) {
        product *= products->lane[l];
        powers += products->powers[l];
    }
    return (double)powers * 0.693147180559945309417 + log(product);
}

/* The label's scores of a block of single scores, which labels were predicted, and the squares. */
VECTORISED static void look_at_block(const double *restrict p, const double *restrict y, double *restrict own,
                                     double *restrict right, double *restrict square)
{
    const uint64_t half = UINT64_C(0x3FE0000000000000), one = UINT64_C(0x3FF0000000000000), sign = UINT64_C(1) << 63;
    for (int i = 0; i < BLOCK; i++) {
        uint64_t bits;
        double predicted;
        own[i] = fabs((1.0 - y[i]) - p[i]);
        square[i] = 2 * ((y[i] - p[i]) * (y[i] - p[i]));
        memcpy(&bits, p + i, 8);
        /* 1 where p > 1/2, by the sign of the difference of their bits: a comparison would be a branch. */
        bits = (UINT64_C(0) - ((half - (bits & ~sign)) >> 63)) & one;
        memcpy(&predicted, &bits, 8);
        right[i] = 1 - fabs(y[i] - predicted);
    }
}

/* Add up lanes. */
static double joined(const double *lane)
{
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* The sum of a block: in an order that does not depend on the machine, and that is numpy's for up to 128 rows. */
VECTORISED static double sum_of(const double *restrict x, int n)
{
    double lane[LANES] = {0}, total;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += x[i + l];
    total = joined(lane);
    for (; i < n; i++)
        total += x[i];
    return total;
}

/* The same with weights; without them it is the sum itself. */
static double weighted(const double *weight, const double *x, int n)
{
    double product[BLOCK];
    for (int i = 0; i < n && weight; i++)
        product[i] = weight[i] * x[i];
    return sum_of(weight ? product : x, n);
}

/* Whether a score is below LEAST, by the sign of the difference of their bits; zero may have a sign itself. */
VECTORISED static int any_few(const double *restrict own, int n)
{
    uint64_t any = 0, limit;
    double least = LEAST;
    memcpy(&limit, &least, 8);
    for (int i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, own + i, 8);
        any |= bits | (bits - limit);
    }
    return (int)(any >> 63);
}

/* Add a block of rows: the scores of their labels, which are used up, which were predicted, and squares. */
static void add_block(Totals *t, Products *products, double *own, const double *right, const double *square,
                      const double *weight, int n)
{
    t->weight += weight ? sum_of(weight, n) : n;
    t->right += weighted(weight, right, n);
    t->brier += weighted(weight, square, n);
    if (weight || any_few(own, n))
        for (int i = 0; i < n; i++) {
            if (!(own[i] > 0)) {
                t->impossible += weight ? weight[i] : 1;
                own[i] = 1;
            }
            if (weight)
                own[i] = log(own[i]);
            else if (own[i] < LEAST) {
                t->log_loss -= log(own[i]);
                own[i] = 1;
            }
        }
    if (weight) {
        t->log_loss -= weighted(weight, own, n);
        return;
    }
    for (int i = n; i < BLOCK; i++)
        own[i] = 1;
    multiply(own, products);
}

/* Add a whole block of single scores of weight one. False, and nothing is added, where one is too small for the
   products. */
VECTORISED static int add_plain(Totals *t, Products *products, const double *restrict p, const uint8_t *restrict label)
{
    const uint64_t half = UINT64_C(0x3FE0000000000000), one = UINT64_C(0x3FF0000000000000), sign = UINT64_C(1) << 63;
    double lane[LANES], squares[LANES] = {0}, least = LEAST;
    int64_t powers[LANES];
    uint64_t few = 0, wrong = 0, limit;
    memcpy(lane, products->lane, sizeof(lane));
    memcpy(powers, products->powers, sizeof(powers));
    memcpy(&limit, &least, 8);
    for (int a = 0; a < BLOCK; a += LANES * FACTORS) {
        double own[LANES * FACTORS], square[LANES * FACTORS];
        for (int i = 0; i < LANES * FACTORS; i++) {
            uint64_t positive = label[a + i] != 0, bits = (0 - positive) & one;
            double y;
            memcpy(&y, &bits, 8);
            own[i] = fabs((1.0 - y) - p[a + i]);
            square[i] = 2 * ((y - p[a + i]) * (y - p[a + i]));
            /* All by signs of differences of bits, as in look_at_block and any_few. */
            memcpy(&bits, p + a + i, 8);
            wrong += ((half - (bits & ~sign)) >> 63) ^ positive;
            memcpy(&bits, own + i, 8);
            few |= bits | (bits - limit);
        }
        for (int i = 0; i < LANES * FACTORS; i += LANES)
            for (int l = 0; l < LANES; l++) {
                lane[l] *= own[i + l];
                squares[l] += square[i + l];
            }
        count_powers(lane, powers);
    }
    if (few >> 63)
        return 0;
    memcpy(products->lane, lane, sizeof(lane));
    memcpy(products->powers, powers, sizeof(powers));
    t->weight += BLOCK;
    t->right += (double)(BLOCK - wrong);
    t->brier += joined(squares);
    return 1;
}

/* The number behind a pointer. */
static inline double value(const char *at, char type)
{
    return type == 'd' ? *(const double *)at : type == 'f' ? *(const float *)at : (double)*(const int64_t *)at;
}

/* Some numbers as double precision. */
static void load(const char *from, Py_ssize_t step, char type, int n, double *to)
{
    if (type == 'd' && step == 8)
        memcpy(to, from, (size_t)n * 8);
    else if (type == 'd')
        for (int i = 0; i < n; i++)
            to[i] = *(const double *)(from + i * step);
    else if (type == 'f' && step == 4)
        for (int i = 0; i < n; i++)
            to[i] = ((const float *)from)[i];
    else if (type == 'f')
        for (int i = 0; i < n; i++)
            to[i] = *(const float *)(from + i * step);
    else
        for (int i = 0; i < n; i++)
            to[i] = value(from + i * step, type);
}

VECTORISED static void load_labels(const uint8_t *restrict from, Py_ssize_t step, int n, double *restrict to)
{
    if (step == 1)
        for (int i = 0; i < n; i++)
            to[i] = from[i] ? 1.0 : 0.0;
    else
        for (int i = 0; i < n; i++)
            to[i] = from[i * step] ? 1.0 : 0.0;
}

/* Rows with a single score; those after the last one are filled up so that they add nothing. */
static void of_vector(Totals *t, Products *products, const Array *score, const Array *code, const Array *weight)
{
    Py_ssize_t n = LENGTH(*score, 0), step = STRIDE(*score, 0), code_step = STRIDE(*code, 0);
    double p[BLOCK], y[BLOCK], own[BLOCK], square[BLOCK], right[BLOCK], weights[BLOCK];
    double *w = weight->type ? weights : NULL;
    for (Py_ssize_t a = 0; a < n; a += BLOCK) {
        int m = (int)(n - a < BLOCK ? n - a : BLOCK);
        const char *from = (const char *)score->view.buf + a * step;
        const uint8_t *labels = (const uint8_t *)code->view.buf + a * code_step;
        const double *x = p;
        if (m == BLOCK && score->type == 'd' && step == 8)
            x = (const double *)from;
        else
            load(from, step, score->type, m, p);
        if (m == BLOCK && !w && code_step == 1 && add_plain(t, products, x, labels))
            continue;
        load_labels(labels, code_step, m, y);
        for (int i = m; i < BLOCK; i++)
            p[i] = y[i] = 1;
        look_at_block(x, y, own, right, square);
        if (w)
            load((const char *)weight->view.buf + a * STRIDE(*weight, 0), STRIDE(*weight, 0), weight->type, m, w);
        add_block(t, products, own, right, square, w, m);
    }
}

/* Rows of few scores, or scores that lie by class, are looked at together, some at a time. */
#define SOME 128
#define FEW 16

/* Take a column of scores of some rows, class c: the differences squared, and whether one beats the label's score.
   It does if it is larger, or as large and before it: all by signs of differences of whole numbers, since a
   comparison would be a branch. */
VECTORISED static void add_class(const double *restrict x, const int64_t *restrict code, int64_t c, int n,
                                 const int64_t *restrict own, int64_t *restrict beaten, double *restrict lane)
{
    const int64_t unsigned_bits = INT64_MAX, bits_of_one = INT64_C(0x3FF0000000000000);
    for (int i = 0; i < n; i++) {
        int64_t bits, off_by = code[i] == c ? bits_of_one : 0;
        double off;
        memcpy(&bits, x + i, 8);
        memcpy(&off, &off_by, 8);
        off = x[i] - off;
        lane[i] += off * off;
        beaten[i] |= own[i] - (int64_t)((uint64_t)(c - code[i]) >> 63) - (bits & unsigned_bits);
    }
}

/* Add up the lanes of some rows; those beyond half of them may hold nothing. */
VECTORISED static void join_lanes(double lane[LANES][SOME], int lanes, int n, double *restrict square)
{
    if (lanes < LANES)
        for (int i = 0; i < n; i++)
            square[i] = (lane[0][i] + lane[1][i]) + (lane[2][i] + lane[3][i]);
    else
        for (int i = 0; i < n; i++)
            square[i] = ((lane[0][i] + lane[1][i]) + (lane[2][i] + lane[3][i])) +
                        ((lane[4][i] + lane[5][i]) + (lane[6][i] + lane[7][i]));
}

/* What some rows tell, class after class: the label's score, whether it is the first of the largest, squares. */
static void by_class(const char *from, const Py_ssize_t *steps, char type, Py_ssize_t classes, const int64_t *code,
                     int n, double *own, double *right, double *square)
{
    double x[SOME], lane[LANES][SOME];
    int64_t own_bits[SOME], beaten[SOME] = {0};
    int lanes = classes <= LANES / 2 ? LANES / 2 : LANES;
    memset(lane, 0, (size_t)lanes * sizeof(lane[0]));
    if (type == 'd')
        for (int i = 0; i < n; i++)
            own[i] = fabs(*(const double *)(from + i * steps[0] + code[i] * steps[1]));
    else
        for (int i = 0; i < n; i++)
            own[i] = fabs((double)*(const float *)(from + i * steps[0] + code[i] * steps[1]));
    for (int i = 0; i < n; i++)
        memcpy(own_bits + i, own + i, 8);
    for (Py_ssize_t c = 0; c < classes; c++) {
        load(from + c * steps[1], steps[0], type, n, x);
        add_class(x, code, c, n, own_bits, beaten, lane[c % LANES]);
    }
    for (int i = 0; i < n; i++)
        right[i] = (double)(~(uint64_t)beaten[i] >> 63);
    join_lanes(lane, lanes, n, square);
}

/* The same of one row of many scores, a block of them at a time. */
VECTORISED static int look_at_row(const double *restrict x, int n, double own, double *restrict lane)
{
    int64_t more = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            lane[l] += x[i + l] * x[i + l];
            more |= x[i + l] > own;
        }
    for (; i < n; i++) {
        lane[i % LANES] += x[i] * x[i];
        more |= x[i] > own;
    }
    return more != 0;
}

static void by_row(const char *from, Py_ssize_t step, char type, Py_ssize_t classes, int64_t code, double *own,
                   double *right, double *square)
{
    double x[BLOCK], lane[LANES] = {0};
    *own = value(from + code * step, type);
    *right = 1;
    for (Py_ssize_t a = 0; a < classes; a += BLOCK) {
        int m = (int)(classes - a < BLOCK ? classes - a : BLOCK), at = (int)(code - a);
        load(from + a * step, step, type, m, x);
        if (code >= a && code < a + m)
            x[at] -= 1;
        else
            at = code < a ? 0 : m;
        if (look_at_row(x, m, *own, lane))
            *right = 0;
        for (int i = 0; i < at && *right; i++)
            *right = x[i] != *own;
    }
    *square = joined(lane);
}

/* Rows with a score for every class. Returns -1 where a label has no column. */
static int of_matrix(Totals *t, Products *products, const Array *score, const Array *code, const Array *weight)
{
    Py_ssize_t n = LENGTH(*score, 0), classes = LENGTH(*score, 1);
    const Py_ssize_t *steps = score->view.strides;
    const int64_t *codes = code->view.buf;
    int together = classes <= FEW || steps[1] != score->view.itemsize;
    double own[BLOCK], right[BLOCK], square[BLOCK], weights[BLOCK], *w = weight->type ? weights : NULL;
    int64_t column[BLOCK];
    for (Py_ssize_t a = 0; a < n; a += BLOCK) {
        int m = (int)(n - a < BLOCK ? n - a : BLOCK), step = together ? SOME : 1;
        const char *from = (const char *)score->view.buf + a * steps[0];
        int64_t outside = 0;
        memcpy(column, codes + a, (size_t)m * sizeof(*codes));
        for (int i = 0; i < m; i++)
            outside |= column[i] | (classes - 1 - column[i]);
        if (outside < 0)
            return -1;
        for (int i = 0; i < m; i += step)
            if (together)
                by_class(from + i * steps[0], steps, score->type, classes, column + i, m - i < SOME ? m - i : SOME,
                         own + i, right + i, square + i);
            else
                by_row(from + i * steps[0], steps[1], score->type, classes, column[i], own + i, right + i,
                       square + i);
        if (w)
            load((const char *)weight->view.buf + a * STRIDE(*weight, 0), STRIDE(*weight, 0), weight->type, m, w);
        add_block(t, products, own, right, square, w, m);
    }
    return 0;
}

/* row_totals(score, code, weight): the weight, that of the rows whose label was predicted, the sum of their log
   losses, the weight of those whose label has a score of zero, and the Brier score. `code` tells of single scores
   whether the label is positive (booleans), and of rows of scores its column (int64). */
static PyObject *row_totals(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[3];
    Totals t = {0};
    Products products;
    int failed = 0;
    (void)self;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "row_totals takes three arrays");
    if (take_arrays(args, a, 3, 0) < 0)
        return NULL;
    if (!a[0].type || !strchr("df", a[0].type) || a[0].view.ndim < 1 || a[0].view.ndim > 2 || a[1].view.ndim != 1 ||
        LENGTH(a[1], 0) != LENGTH(a[0], 0) || a[1].type != (a[0].view.ndim == 1 ? '?' : 'q') ||
        (a[0].view.ndim == 2 && (LENGTH(a[0], 1) < 1 || !PyBuffer_IsContiguous(&a[1].view, 'C'))) ||
        (a[2].type && (!strchr("dq", a[2].type) || a[2].view.ndim != 1 || LENGTH(a[2], 0) != LENGTH(a[0], 0))) ||
        !is_aligned(&a[0]) || !is_aligned(&a[1]) || (a[2].type && !is_aligned(&a[2]))) {
        give_arrays(a, 3);
        return PyErr_Format(PyExc_TypeError, "row_totals takes floats, a label for each row, and weights or None");
    }
    for (int l = 0; l < LANES; l++) {
        products.lane[l] = 1;
        products.powers[l] = 0;
    }
    Py_BEGIN_ALLOW_THREADS
    if (a[0].view.ndim == 1)
        of_vector(&t, &products, &a[0], &a[1], &a[2]);
    else
        failed = of_matrix(&t, &products, &a[0], &a[1], &a[2]);
    t.log_loss -= log_of(&products);
    Py_END_ALLOW_THREADS
    give_arrays(a, 3);
    if (failed)
        return PyErr_Format(PyExc_ValueError, "every label must be the number of a column");
    return Py_BuildValue("ddddd", t.weight, t.right, t.log_loss > 0 ? t.log_loss : 0.0, t.impossible, t.brier);
}

PyMethodDef total_methods[] = {
    {"row_totals", FASTCALL(row_totals), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

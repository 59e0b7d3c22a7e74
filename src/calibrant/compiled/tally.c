/* Sums of rows by group and outcome: the loop that numpy's bincount stands in for.

   The sums are those of w, w x, .., w x^powers, and of w^2 where `squares` is asked for; x is the score less the
   origin of its group. */
#include "groups.h"
#include <math.h>

/* ---- sums of one problem ---- */

/* Rows of a block as double precision; scores that are so already stay where they are. */
const double *doubles(const char *from, Py_ssize_t stride, char type, int n, double *to)
{
    if (type == 'd' && stride == 8)
        return (const double *)from;
    if (type == 'd')
        for (int i = 0; i < n; i++)
            to[i] = *(const double *)(from + i * stride);
    else if (type == 'f' && stride == 4)
        for (int i = 0; i < n; i++)
            to[i] = ((const float *)from)[i];
    else if (type == 'f')
        for (int i = 0; i < n; i++)
            to[i] = *(const float *)(from + i * stride);
    else
        for (int i = 0; i < n; i++)
            to[i] = (double)*(const int64_t *)(from + i * stride);
    return to;
}

/* Add a row to the sums of its group, which lie side by side. */
static inline void add_row(const Groups *g, double *restrict at, double x, double w)
{
    if (g->squares)
        at[g->powers + 1] += w * w;
    at[0] += w;
    for (int p = 1; p <= g->powers; p++)
        at[p] += (w *= x);
}

/* The same where the sums of a group are a step apart. */
static inline void add_far(const Groups *g, char *at, Py_ssize_t step, double x, double w)
{
    if (g->squares)
        *(double *)(at + (g->powers + 1) * step) += w * w;
    *(double *)at += w;
    for (int p = 1; p <= g->powers; p++)
        *(double *)(at + p * step) += (w *= x);
}

/* Sums that take turns, so that no row waits for the one before it. */
#define COPIES 4

/* Add counts and scores of a block to four copies of the sums. */
static void add_counted(const Groups *g, const double *x, const int32_t *group, const uint8_t *y, int n, double *sums)
{
    Py_ssize_t whole = 4 * g->size;
    int32_t at[BLOCK];
    int i;
    for (i = 0; i < n; i++)
        at[i] = 2 * (2 * group[i] + (y[i] != 0));
    for (i = 0; i + COPIES <= n; i += COPIES) {
        ADD_PAIR(sums + at[i], x[i]);
        ADD_PAIR(sums + whole + at[i + 1], x[i + 1]);
        ADD_PAIR(sums + 2 * whole + at[i + 2], x[i + 2]);
        ADD_PAIR(sums + 3 * whole + at[i + 3], x[i + 3]);
    }
    for (; i < n; i++)
        ADD_PAIR(sums + at[i], x[i]);
}

static void add_block(const Groups *g, const double *x, const int32_t *group, const uint8_t *y, const double *w,
                      const double *origin, int n, double *sums)
{
    int i;
    if (!w && !g->squares && g->powers == 1)
        for (i = 0; i < n; i++)
            ADD_PAIR(sums + 2 * (2 * (Py_ssize_t)group[i] + (y[i] != 0)), origin ? x[i] - origin[group[i]] : x[i]);
    else if (!w && !g->squares && g->powers == 2 && origin)
        for (i = 0; i < n; i++) {
            double *at = sums + 3 * (2 * (Py_ssize_t)group[i] + (y[i] != 0)), d = x[i] - origin[group[i]];
            ADD_PAIR(at, d);
            at[2] += d * d;
        }
    else
        for (i = 0; i < n; i++)
            add_row(g, sums + g->sums * (2 * (Py_ssize_t)group[i] + (y[i] != 0)),
                    origin ? x[i] - origin[group[i]] : x[i], w ? w[i] : 1.0);
}

/* Counts, distances and their squares of many groups: what belongs to a group is in one line of the cache, and each
   half of it, by outcome, ends in the origin. */
#define LINE 8

static double *new_lines(const double *origin, Py_ssize_t size, void **block)
{
    double *lines = NULL;
    *block = calloc((size_t)size * LINE + LINE, sizeof(double));
    if (*block) {
        lines = (double *)(((uintptr_t)*block + 63) & ~(uintptr_t)63);
        for (Py_ssize_t j = 0; j < size; j++)
            lines[j * LINE + LINE / 2 - 1] = lines[j * LINE + LINE - 1] = origin[j];
    }
    return lines;
}

/* The halves of lines that rows belong to. */
VECTORISED static void halves_of(const int32_t *restrict group, const uint8_t *restrict y, int n, int32_t *restrict half)
{
    for (int i = 0; i < n; i++)
        half[i] = 2 * group[i] + (y[i] != 0);
}

static void add_to_lines(const double *x, const int32_t *group, const uint8_t *y, int n, double *lines)
{
    int32_t half[BLOCK];
    halves_of(group, y, n, half);
    for (int i = 0; i < n; i++) {
        double *at = lines + LINE / 2 * (Py_ssize_t)half[i], d = x[i] - at[3];
        if (i % 8 == 0)
            PREFETCH(x + i + BLOCK); /* of the next block, which waits while this one is added */
        ADD_PAIR(at, d);
        at[2] += d * d;
    }
}

static void spread_lines(const double *lines, Py_ssize_t size, char *out, const Py_ssize_t *steps)
{
    for (int p = 0; p < 3; p++)
        for (int y = 0; y < 2; y++) {
            double *to = (double *)(out + p * steps[0] + y * steps[1]);
            for (Py_ssize_t j = 0; j < size; j++)
                to[j] += lines[j * LINE + LINE / 2 * y + p];
        }
}

/* Where the rows of one problem lie, and how far they are apart. */
typedef struct {
    const char *score, *outcome, *weight;
    Py_ssize_t score_step, outcome_step, weight_step;
    char score_type, outcome_type, weight_type;
} Rows;

/* Outcomes of a block, a byte for each; NULL where one of them is an integer other than 0 and 1. */
static const uint8_t *outcomes_of(const Rows *rows, Py_ssize_t start, int n, uint8_t *room)
{
    const char *from = rows->outcome + start * rows->outcome_step;
    if (rows->outcome_type != '?')
        return zero_one_labels(from, rows->outcome_step, n, room) ? room : NULL;
    if (rows->outcome_step == 1)
        return (const uint8_t *)from;
    for (int i = 0; i < n; i++)
        room[i] = (uint8_t)from[i * rows->outcome_step];
    return room;
}

/* Fetch rows that lie side by side and come next: the machine stops at the end of a page, and starts anew in each. */
static void fetch(const char *from, Py_ssize_t step, Py_ssize_t n)
{
    if (step > 0 && step <= 8)
        for (Py_ssize_t line = 0; line < n * step; line += 64)
            PREFETCH(from + line);
}

/* Sum the rows of a problem: side by side in `sums`, or without it in `out` itself. */
static int sum_problem(const Groups *g, Rows rows, const double *origin, Py_ssize_t n, double *sums, int copies,
                       double *lines, char *out, const Py_ssize_t *steps)
{
    double scores[BLOCK], weights[BLOCK];
    uint8_t outcomes[BLOCK];
    int32_t group[BLOCK];
    for (Py_ssize_t a = 0; a < n; a += BLOCK) {
        int m = (int)(n - a < BLOCK ? n - a : BLOCK);
        const double *x = doubles(rows.score + a * rows.score_step, rows.score_step, rows.score_type, m, scores);
        const double *w = NULL;
        const uint8_t *y = outcomes_of(&rows, a, m, outcomes);
        Py_ssize_t next = n - a - m < BLOCK ? n - a - m : BLOCK;
        fetch(rows.score + (a + m) * rows.score_step, rows.score_step, next);
        fetch(rows.outcome + (a + m) * rows.outcome_step, rows.outcome_step, next);
        if (rows.weight)
            w = doubles(rows.weight + a * rows.weight_step, rows.weight_step, rows.weight_type, m, weights);
        if (!y || groups_of(g, x, m, group) < 0)
            return -1;
        if (lines)
            add_to_lines(x, group, y, m, lines);
        else if (!sums)
            for (int i = 0; i < m; i++)
                add_far(g, out + (y[i] != 0) * steps[1] + 8 * (Py_ssize_t)group[i], steps[0],
                        origin ? x[i] - origin[group[i]] : x[i], w ? w[i] : 1.0);
        else if (copies > 1)
            add_counted(g, x, group, y, m, sums);
        else
            add_block(g, x, group, y, w, origin, m, sums);
    }
    return 0;
}

/* ---- sums of many problems that lie side by side, row after row ---- */

#define TILE 64
/* Rows whose scores are fetched ahead: they lie too far apart for the machine to see the pattern. */
#define AHEAD 12

/* Add the sums of a problem to out[sum][outcome][group], whose steps are given. */
static void spread_sums(const Groups *g, const double *sums, int copies, char *out, const Py_ssize_t *steps)
{
    Py_ssize_t whole = 2 * g->size * g->sums;
    for (int p = 0; p < g->sums; p++)
        for (int y = 0; y < 2; y++) {
            double *to = (double *)(out + p * steps[0] + y * steps[1]);
            for (Py_ssize_t j = 0; j < g->size; j++) {
                double total = 0;
                for (int c = 0; c < copies; c++)
                    total += sums[c * whole + (2 * j + y) * g->sums + p];
                to[j] += total;
            }
        }
}

/* What is done with a row of a tile: taking it as doubles, and adding all of it. */
#define TILE_ROWS(name, type)                                                      \
    VECTORISED static void load_##name(const type *restrict from, int n, double *restrict to)       \
    {                                                                                               \
        for (int i = 0; i < n; i++)                                                                 \
            to[i] = (double)from[i];                                                                \
    }                                                                                               \
    VECTORISED static void add_##name(const type *restrict x, int n, double *restrict to)           \
    {                                                                                               \
        for (int i = 0; i < n; i++)                                                                 \
            to[i] += (double)x[i];                                                                  \
    }
TILE_ROWS(floats, float)
TILE_ROWS(doubles, double)

/* The bits of the least float that is not below a limit. */
static uint32_t float_bits(double limit)
{
    float least = (float)limit;
    uint32_t bits;
    if ((double)least < limit)
        least = nextafterf(least, 2);
    memcpy(&bits, &least, 4);
    return bits;
}

static uint64_t double_bits(double limit)
{
    uint64_t bits;
    memcpy(&bits, &limit, 8);
    return bits;
}

/* Count rows of a tile of neighbouring problems and sum their scores, in equal bins: `code` tells the problem of
   outcome 1 of each row. */
static int count_tile(const Groups *g, Rows rows, int width, const int64_t *code, int64_t first, Py_ssize_t n,
                      double *sums)
{
    Py_ssize_t whole = 2 * g->size * g->sums, plain = 0, bytes = width * (rows.score_type == 'f' ? 4 : 8);
    uint32_t limit_32 = float_bits(g->lower[1]);
    uint64_t limit_64 = double_bits(g->lower[1]);
    double x[TILE], bulk[TILE] = {0};
    int32_t group[TILE];
    for (Py_ssize_t r = 0; r < n; r++) {
        const char *row = rows.score + r * rows.score_step;
        int64_t own = code[r] < first || code[r] >= first + width ? -1 : code[r] - first;
        for (Py_ssize_t line = 0; line < bytes && r + AHEAD < n; line += 64)
            PREFETCH(row + AHEAD * rows.score_step + line);
        /* Of many classes most scores are in the first bin, and those of a whole tile are added at once. */
        if (own < 0) {
            if (rows.score_type == 'f' && floats_below((const uint32_t *)row, width, limit_32)) {
                add_floats((const float *)row, width, bulk);
                plain++;
                continue;
            }
            if (rows.score_type == 'd' && doubles_below((const uint64_t *)row, width, limit_64)) {
                add_doubles((const double *)row, width, bulk);
                plain++;
                continue;
            }
        }
        if (rows.score_type == 'f')
            load_floats((const float *)row, width, x);
        else
            load_doubles((const double *)row, width, x);
        if (groups_of(g, x, width, group) < 0)
            return -1;
        for (int c = 0; c < width; c++)
            ADD_PAIR(sums + c * whole + 2 * (2 * (Py_ssize_t)group[c] + (c == own)), x[c]);
    }
    for (int c = 0; c < width && plain; c++) {
        sums[c * whole] += (double)plain;
        sums[c * whole + 1] += bulk[c];
    }
    return 0;
}

/* Sum up to BLOCK rows of a tile of neighbouring problems, one problem after the other. */
static int sum_tile(const Groups *g, Rows rows, int width, const int64_t *code, int64_t first, const double *origin,
                    int n, double *sums)
{
    Py_ssize_t itemsize = rows.score_type == 'f' ? 4 : 8, whole = 2 * g->size * g->sums;
    double scores[TILE / 4][BLOCK + 8], weights[BLOCK]; /* 8 more, or else all lines would share a place in the cache */
    const double *w = NULL;
    uint8_t y[BLOCK];
    int32_t group[BLOCK];
    for (int r = 0; r < n; r++) {
        const char *row = rows.score + r * rows.score_step;
        if (r + AHEAD < n)
            PREFETCH(row + AHEAD * rows.score_step);
        for (int c = 0; c < width; c++)
            scores[c][r] = itemsize == 4 ? (double)((const float *)row)[c] : ((const double *)row)[c];
    }
    if (rows.weight)
        w = doubles(rows.weight, rows.weight_step, rows.weight_type, n, weights);
    for (int c = 0; c < width; c++) {
        if (groups_of(g, scores[c], n, group) < 0)
            return -1;
        for (int r = 0; r < n; r++)
            y[r] = code[r] == first + c;
        add_block(g, scores[c], group, y, w, origin, n, sums + c * whole);
    }
    return 0;
}

/* ---- what Python calls ---- */

/* The step from one problem to the next, and from row to row: one line serves all where there is no such axis. */
static Py_ssize_t problem_step(const Array *array)
{
    return array->view.ndim > 1 ? STRIDE(*array, 0) : 0;
}

static Py_ssize_t last_step(const Array *array)
{
    return STRIDE(*array, array->view.ndim - 1);
}

static int is_line(const Array *array, const char *types, Py_ssize_t problems, Py_ssize_t n)
{
    int ndim = array->view.ndim;
    return array->type && is_aligned(array) && strchr(types, array->type) && (ndim == 1 || ndim == 2) &&
           LENGTH(*array, ndim - 1) == n &&
           (ndim == 1 || LENGTH(*array, 0) == problems);
}

/* Whether integers side by side may be the labels of rows. */
static int are_labels(const Array *array, Py_ssize_t n)
{
    return array->type && strchr("bBhHiIqQ", array->type) && is_plain(array, array->type, 1) && LENGTH(*array, 0) == n;
}

static Rows rows_of(const Array *score, const Array *outcome, const Array *weight, Py_ssize_t problem)
{
    Rows rows = {0};
    rows.score = (const char *)score->view.buf + problem * problem_step(score);
    rows.score_step = last_step(score);
    rows.score_type = score->type;
    if (outcome) {
        rows.outcome = (const char *)outcome->view.buf + problem * problem_step(outcome);
        rows.outcome_type = outcome->type;
        rows.outcome_step = outcome->type == '?' ? last_step(outcome) : outcome->view.itemsize;
    }
    if (weight->type) {
        rows.weight = (const char *)weight->view.buf + problem * problem_step(weight);
        rows.weight_step = last_step(weight);
        rows.weight_type = weight->type;
    }
    return rows;
}

enum { SCORE, OUTCOME, WEIGHT, CUTS, ORIGIN, OUT, ARRAYS };

/* In how many copies rows that are counted alone are summed: several, where they are many and groups few. */
static int copies_of(const Groups *g, Py_ssize_t n)
{
    return 2 * g->size * g->sums <= 1024 && n >= 1024 ? COPIES : 1;
}

/* Sum problem after problem. */
static int by_problem(Groups *g, Array *a, Py_ssize_t problems, Py_ssize_t n)
{
    Py_ssize_t whole = 2 * g->size * g->sums;
    int counted = g->powers == 1 && !g->squares && !a[WEIGHT].type && !a[ORIGIN].type;
    int copies = counted ? copies_of(g, n) : 1, failed = 0;
    /* The sums of a group lie side by side while rows are added; few rows go where they belong at once. */
    int lined = g->powers == 2 && !g->squares && !a[WEIGHT].type && a[ORIGIN].type && n >= g->size &&
                g->size <= INT32_MAX / 2;
    double *sums = n < g->size || lined ? NULL : malloc((size_t)(copies * whole) * sizeof(double));
    if (!sums && !lined && n >= g->size) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t problem = 0; problem < problems && !failed; problem++) {
        char *out = (char *)a[OUT].view.buf + problem * STRIDE(a[OUT], 2);
        const double *origin = NULL;
        if (a[ORIGIN].type)
            origin = (const double *)((const char *)a[ORIGIN].view.buf + problem * problem_step(&a[ORIGIN]));
        if (!g->layout && (problem == 0 || problem_step(&a[CUTS]))) {
            const char *cuts = (const char *)a[CUTS].view.buf + problem * problem_step(&a[CUTS]);
            Py_ssize_t same = problem_step(&a[CUTS]) ? 1 : problems;
            if (prepare_cuts(g, (const double *)cuts, g->count, n * same) < 0) {
                free(sums);
                return -1;
            }
        }
        void *block = NULL;
        double *lines = lined ? new_lines(origin, g->size, &block) : NULL;
        if (lined && !lines) {
            PyErr_NoMemory();
            return -1;
        }
        Py_BEGIN_ALLOW_THREADS
        if (sums)
            memset(sums, 0, (size_t)(copies * whole) * sizeof(double));
        failed = sum_problem(g, rows_of(&a[SCORE], &a[OUTCOME], &a[WEIGHT], problem), origin, n, sums, copies, lines,
                             out, a[OUT].view.strides);
        if (lines && !failed)
            spread_lines(lines, g->size, out, a[OUT].view.strides);
        if (sums && !failed)
            spread_sums(g, sums, copies, out, a[OUT].view.strides);
        free(block);
        Py_END_ALLOW_THREADS
    }
    free(sums);
    return failed ? fail("scores must lie in [0, 1], and integer labels must be 0 or 1") : 0;
}

/* Sum problems that lie side by side: some rows at a time, whose pages the machine keeps in mind, and of these a
   tile of problems at a time, whose sums stay in the nearest cache. */
#define STRIPE 256
#define HEIGHT 512

static int by_tile(Groups *g, Array *a, Py_ssize_t problems, Py_ssize_t n, int64_t first)
{
    Py_ssize_t whole = 2 * g->size * g->sums, tile;
    Py_ssize_t stripe = problems < STRIPE ? problems : STRIPE;
    const double *origin = a[ORIGIN].type ? DOUBLES(a[ORIGIN]) : NULL;
    const int64_t *code = a[OUTCOME].view.buf;
    double *sums;
    int failed = 0, bins;
    if (!g->layout && prepare_cuts(g, DOUBLES(a[CUTS]), g->count, n * problems) < 0)
        return -1;
    bins = g->lower && !g->layout && g->k > 1 && g->powers == 1 && !g->squares && !origin && !a[WEIGHT].type;
    tile = bins ? TILE : TILE / 4;
    sums = malloc((size_t)(stripe * whole) * sizeof(double));
    if (!sums) {
        PyErr_NoMemory();
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t start = 0; start < problems && !failed; start += stripe) {
        Py_ssize_t end = start + stripe < problems ? start + stripe : problems;
        memset(sums, 0, (size_t)((end - start) * whole) * sizeof(double));
        for (Py_ssize_t row = 0; row < n && !failed; row += HEIGHT)
            for (Py_ssize_t c = start; c < end && !failed; c += tile) {
                Rows rows = rows_of(&a[SCORE], NULL, &a[WEIGHT], c);
                rows.score += row * rows.score_step;
                rows.weight += rows.weight ? row * rows.weight_step : 0;
                int width = (int)(end - c < tile ? end - c : tile), m = (int)(n - row < HEIGHT ? n - row : HEIGHT);
                double *own = sums + (c - start) * whole;
                failed = bins ? count_tile(g, rows, width, code + row, first + c, m, own)
                              : sum_tile(g, rows, width, code + row, first + c, origin, m, own);
            }
        for (Py_ssize_t c = start; c < end && !failed; c++)
            spread_sums(g, sums + (c - start) * whole, 1, (char *)a[OUT].view.buf + c * STRIDE(a[OUT], 2),
                        a[OUT].view.strides);
    }
    Py_END_ALLOW_THREADS
    free(sums);
    return failed ? fail("scores must lie in [0, 1]") : 0;
}

/* Whether the arrays fit each other; what they say about the groups is noted. */
static int check_arrays(Groups *g, Array *a, int one_hot)
{
    Py_ssize_t problems, n, itemsize;
    if (a[SCORE].view.ndim != 1 && a[SCORE].view.ndim != 2)
        return fail("scores must have one or two axes");
    n = LENGTH(a[SCORE], a[SCORE].view.ndim - 1);
    problems = a[SCORE].view.ndim == 2 ? LENGTH(a[SCORE], 0) : 1;
    if (!is_line(&a[SCORE], "df", problems, n))
        return fail("scores must be float64 or float32");
    if (one_hot ? !(a[OUTCOME].type == 'q' && a[OUTCOME].view.ndim == 1 && LENGTH(a[OUTCOME], 0) == n &&
                    STRIDE(a[OUTCOME], 0) == 8 && is_aligned(&a[OUTCOME]))
                : !is_line(&a[OUTCOME], "?", problems, n) && !are_labels(&a[OUTCOME], n))
        return fail("outcomes must be booleans, the labels 0 and 1, or numbers of problems, as many as scores");
    if (a[WEIGHT].type && !is_line(&a[WEIGHT], "dq", problems, n))
        return fail("weights must be float64 or int64, as many as scores");
    if (a[OUT].type != 'd' || a[OUT].view.ndim != 4 || !is_aligned(&a[OUT]) || LENGTH(a[OUT], 0) != g->sums ||
        LENGTH(a[OUT], 1) != 2 || LENGTH(a[OUT], 2) != problems || STRIDE(a[OUT], 3) != 8)
        return fail("sums must have the shape (sums, 2, problems, groups)");
    g->size = LENGTH(a[OUT], 3);
    if (g->size < 1 || g->size > INT32_MAX)
        return fail("there must be a group, and not more than integers of 32 bits can tell apart");
    if (a[CUTS].type != 'd' || !is_aligned(&a[CUTS]) || a[CUTS].view.ndim < 1 || a[CUTS].view.ndim > 2 ||
        last_step(&a[CUTS]) != 8)
        return fail("cuts must be float64, side by side");
    if (g->layout ? check_layout(g, &a[CUTS]) < 0 : !is_line(&a[CUTS], "d", problems, g->size - 1))
        return fail("there must be one cut less than groups");
    if (a[ORIGIN].type && (!is_line(&a[ORIGIN], "d", problems, g->size) || last_step(&a[ORIGIN]) != 8))
        return fail("there must be an origin for each group");
    g->count = g->size - 1;
    itemsize = a[SCORE].view.itemsize;
    if (one_hot && (a[SCORE].view.ndim != 2 || (problems > 1 && STRIDE(a[SCORE], 0) != itemsize) ||
                    (!g->layout && problem_step(&a[CUTS])) || (a[ORIGIN].type && problem_step(&a[ORIGIN])) ||
                    (a[WEIGHT].type && problem_step(&a[WEIGHT]))))
        return fail("problems side by side must share cuts, origins and weights");
    return 0;
}

/* add_sums(score, outcome, weight, cuts, origin, out, powers, squares, layout, first): add the sums of rows to
   `out`, of shape (sums, 2, problems, groups). `outcome` holds booleans, or for all problems the labels 0 and 1.
   `layout` is None, or (below, above, least, shift) where `cuts` holds the edges of equal parts; `first` is None, or
   the number of the first problem where `outcome` holds numbers of problems. */
static PyObject *add_sums(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[ARRAYS];
    Groups g = {0};
    int fine = 0, one_hot;
    int64_t first = 0;
    long powers;
    (void)self;
    if (count != 10)
        return PyErr_Format(PyExc_TypeError, "add_sums takes ten arguments");
    powers = PyLong_AsLong(args[6]);
    if (PyErr_Occurred())
        return NULL;
    g.squares = PyObject_IsTrue(args[7]);
    one_hot = args[9] != Py_None;
    if (one_hot)
        first = PyLong_AsLongLong(args[9]);
    if (PyErr_Occurred())
        return NULL;
    if (powers < 0 || powers > 8)
        return PyErr_Format(PyExc_ValueError, "powers must be from 0 to 8");
    if (first < 0 || first > INT64_MAX / 2)
        return PyErr_Format(PyExc_ValueError, "no such number of a problem");
    g.powers = (int)powers;
    g.sums = g.powers + 1 + g.squares;
    if (args[8] != Py_None && take_layout(&g, args[8]) < 0)
        return NULL;
    if (take_arrays(args, a, ARRAYS, 1) < 0)
        return NULL;
    if (check_arrays(&g, a, one_hot) == 0) {
        Py_ssize_t n = LENGTH(a[SCORE], a[SCORE].view.ndim - 1), problems = LENGTH(a[OUT], 2);
        fine = (one_hot ? by_tile(&g, a, problems, n, first) : by_problem(&g, a, problems, n)) == 0;
    }
    give_arrays(a, ARRAYS);
    free_groups(&g);
    if (!fine)
        return NULL;
    Py_RETURN_NONE;
}

/* ---- the largest score of each row of a matrix ---- */

/* Whether each label is the column told; returns 0 where one is no column. */
static int are_right(const Array *label, Py_ssize_t start, int n, Py_ssize_t classes, const int64_t *best, uint8_t *right)
{
    int fine = 1;
    for (int i = 0; i < n; i++) {
        int64_t own = label->type == 'q' ? ((const int64_t *)label->view.buf)[start + i]
                                         : ((const int32_t *)label->view.buf)[start + i];
        fine &= own >= 0 && own < classes;
        right[i] = own == best[i];
    }
    return fine;
}

/* Sum the largest scores of rows; returns how far the sum of a row is from 1 at most, or -1 where a score is outside
   of [0, 1] or a label no column. */
static double sum_confidences(const Groups *g, const Array *score, const Array *label, int copies, double *sums)
{
    Py_ssize_t n = LENGTH(*score, 0);
    double most[LOOKED], sum[LOOKED], away = 0;
    int64_t best[LOOKED];
    int32_t group[LOOKED];
    uint8_t right[LOOKED];
    for (Py_ssize_t start = 0; start < n; start += LOOKED) {
        int m = (int)(n - start < LOOKED ? n - start : LOOKED);
        double own;
        if (!look_into_rows(score, start, m, most, best, sum) ||
            !are_right(label, start, m, LENGTH(*score, 1), best, right) || groups_of(g, most, m, group) < 0)
            return -1;
        own = farthest(sum, m);
        away = own > away ? own : away;
        if (copies > 1)
            add_counted(g, most, group, right, m, sums);
        else
            add_block(g, most, group, right, NULL, NULL, m, sums);
    }
    return away;
}

/* add_confidences(score, label, cuts, out): add the number of rows and the sum of their largest scores to `out`, of
   shape (2, 2, 1, groups), by whether the label, an integer, is the first column of the largest score. Returns how
   far the sum of a row is from 1 at most. */
static PyObject *add_confidences(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    enum { LABEL = 1, EDGES, SUMS };
    Array a[4];
    Groups g = {0};
    int copies;
    double *sums = NULL, away = -1;
    (void)self;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "add_confidences takes four arrays");
    if (take_arrays(args, a, 4, 1) < 0)
        return NULL;
    if (!are_rows(&a[SCORE]) || !(is_plain(&a[LABEL], 'q', 1) || is_plain(&a[LABEL], 'i', 1)) ||
        !is_plain(&a[EDGES], 'd', 1) || !is_plain(&a[SUMS], 'd', 4) || LENGTH(a[LABEL], 0) != LENGTH(a[SCORE], 0) ||
        LENGTH(a[SUMS], 0) != 2 || LENGTH(a[SUMS], 1) != 2 || LENGTH(a[SUMS], 2) != 1 ||
        LENGTH(a[SUMS], 3) != LENGTH(a[EDGES], 0) + 1 || LENGTH(a[SUMS], 3) > INT32_MAX / 4) {
        give_arrays(a, 4);
        return PyErr_Format(PyExc_TypeError, "add_confidences takes rows of floats, as many integers, cuts and sums");
    }
    g.powers = 1;
    g.sums = 2;
    if (prepare_cuts(&g, DOUBLES(a[EDGES]), LENGTH(a[EDGES], 0), LENGTH(a[SCORE], 0)) == 0) {
        copies = copies_of(&g, LENGTH(a[SCORE], 0));
        sums = calloc((size_t)(copies * 4 * g.size), sizeof(double));
        if (sums) {
            Py_BEGIN_ALLOW_THREADS
            away = sum_confidences(&g, &a[SCORE], &a[LABEL], copies, sums);
            if (away >= 0)
                spread_sums(&g, sums, copies, a[SUMS].view.buf, a[SUMS].view.strides);
            Py_END_ALLOW_THREADS
            if (away < 0)
                fail("scores must lie in [0, 1], and labels be columns");
        } else
            PyErr_NoMemory();
    }
    free(sums);
    free_groups(&g);
    give_arrays(a, 4);
    return away < 0 ? NULL : PyFloat_FromDouble(away);
}

PyMethodDef tally_methods[] = {
    {"add_sums", FASTCALL(add_sums), METH_FASTCALL, NULL},
    {"add_confidences", FASTCALL(add_confidences), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

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

/* Which half of the sums of all groups each row belongs to. */
VECTORISED static void halves_of(const int32_t *restrict group, const uint8_t *restrict y, int n, int32_t *restrict half)
{
    for (int i = 0; i < n; i++)
        half[i] = 2 * group[i] + (y[i] != 0);
}

/* Sums that take turns, so that no row waits for the one before it. */
#define COPIES 4

/* Add counts and scores of a block to four copies of the sums. */
static void add_counted(const Groups *g, const double *x, const int32_t *group, const uint8_t *y, int n, double *sums)
{
    Py_ssize_t whole = 4 * g->size;
    int32_t half[BLOCK];
    int i;
    halves_of(group, y, n, half);
    for (i = 0; i + COPIES <= n; i += COPIES)
        for (int c = 0; c < COPIES; c++)
            ADD_PAIR(sums + c * whole + 2 * half[i + c], x[i + c]);
    for (; i < n; i++)
        ADD_PAIR(sums + 2 * half[i], x[i]);
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

static void set_origins(double *lines, const double *origin, Py_ssize_t size)
{
    for (Py_ssize_t j = 0; j < size; j++)
        lines[j * LINE + LINE / 2 - 1] = lines[j * LINE + LINE - 1] = origin[j];
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
    char score_type, weight_type;
} Rows;

/* Outcomes of a block, a byte for each. */
static const uint8_t *outcomes_of(const Rows *rows, Py_ssize_t start, int n, uint8_t *buffer)
{
    const char *from = rows->outcome + start * rows->outcome_step;
    if (rows->outcome_step == 1)
        return (const uint8_t *)from;
    for (int i = 0; i < n; i++)
        buffer[i] = (uint8_t)from[i * rows->outcome_step];
    return buffer;
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
        if (groups_of(g, x, m, group) < 0)
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

/* Whether floats, seen as integers, are all from +0.0 to below a limit: less that of the limit these are negative, and
   no others are but floats with a sign of their own. */
#define BELOW(name, type, sign)                                                     \
    VECTORISED static int name(const type *restrict bits, Py_ssize_t n, type limit) \
    {                                                                               \
        type all = (type)-1, any = 0;                                               \
        for (Py_ssize_t i = 0; i < n; i++) {                                        \
            all &= bits[i] - limit;                                                 \
            any |= bits[i];                                                         \
        }                                                                           \
        return (all & sign) && !(any & sign);                                       \
    }
BELOW(doubles_below, uint64_t, UINT64_C(0x8000000000000000))
BELOW(floats_below, uint32_t, UINT32_C(0x80000000))

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

/* The rows of a problem; `outcome` is NULL where numbers of problems tell the outcomes. */
static Rows rows_of(const Array *score, const Array *outcome, const Array *weight, Py_ssize_t problem)
{
    Rows rows = {0};
    rows.score = (const char *)score->view.buf + problem * STRIDE(*score, 0);
    rows.score_step = STRIDE(*score, 1);
    rows.score_type = score->type;
    if (outcome) {
        rows.outcome = (const char *)outcome->view.buf + problem * STRIDE(*outcome, 0);
        rows.outcome_step = STRIDE(*outcome, 1);
    }
    if (weight->type) {
        rows.weight = (const char *)weight->view.buf + problem * STRIDE(*weight, 0);
        rows.weight_step = STRIDE(*weight, 1);
        rows.weight_type = weight->type;
    }
    return rows;
}

/* Whether all problems have the same line. */
static int is_shared(const Array *array)
{
    return !array->type || LENGTH(*array, 0) == 1 || STRIDE(*array, 0) == 0;
}

enum { SCORE, OUTCOME, WEIGHT, CUTS, ORIGIN, OUT };

/* Sum problem after problem. */
static int by_problem(Groups *g, Call *call, Py_ssize_t problems, Py_ssize_t n)
{
    Array *a = call->array;
    Py_ssize_t whole = 2 * g->size * g->sums;
    int counted = g->powers == 1 && !g->squares && !a[WEIGHT].type && !a[ORIGIN].type;
    /* Rows that are counted alone are summed in several copies, where they are many and groups few. */
    int copies = counted && whole <= 1024 && n >= 1024 ? COPIES : 1, failed = 0;
    /* The sums of a group lie side by side while rows are added; few rows go where they belong at once. */
    int lined = g->powers == 2 && !g->squares && !a[WEIGHT].type && a[ORIGIN].type && n >= g->size &&
                g->size <= INT32_MAX / 2;
    size_t bytes = (size_t)(lined ? LINE * (g->size + 1) : n >= g->size ? copies * whole : 0) * sizeof(double);
    double *block = borrow(call, bytes), *lines = lined ? block + -(uintptr_t)block % 64 / sizeof(double) : NULL;
    double *sums = !lined && bytes ? block : NULL;
    if (!block)
        return -1;
    for (Py_ssize_t problem = 0; problem < problems && !failed; problem++) {
        char *out = (char *)a[OUT].view.buf + problem * STRIDE(a[OUT], 2);
        const double *origin = NULL;
        if (a[ORIGIN].type)
            origin = (const double *)((const char *)a[ORIGIN].view.buf + problem * STRIDE(a[ORIGIN], 0));
        if (!g->layout && (problem == 0 || !is_shared(&a[CUTS]))) {
            const char *cuts = (const char *)a[CUTS].view.buf + problem * STRIDE(a[CUTS], 0);
            if (prepare_cuts(g, (const double *)cuts, g->size - 1, is_shared(&a[CUTS]) ? n * problems : n) < 0)
                return -1;
        }
        Py_BEGIN_ALLOW_THREADS
        memset(block, 0, bytes);
        if (lines)
            set_origins(lines, origin, g->size);
        failed = sum_problem(g, rows_of(&a[SCORE], &a[OUTCOME], &a[WEIGHT], problem), origin, n, sums, copies, lines,
                             out, a[OUT].view.strides);
        if (lines && !failed)
            spread_lines(lines, g->size, out, a[OUT].view.strides);
        if (sums && !failed)
            spread_sums(g, sums, copies, out, a[OUT].view.strides);
        Py_END_ALLOW_THREADS
    }
    return failed ? fail(call, "scores must lie in [0, 1]") : 0;
}

/* Sum problems that lie side by side: some rows at a time, whose pages the machine keeps in mind, and of these a
   tile of problems at a time, whose sums stay in the nearest cache. */
#define STRIPE 256
#define HEIGHT 512

static int by_tile(Groups *g, Call *call, Py_ssize_t problems, Py_ssize_t n, int64_t first)
{
    Array *a = call->array;
    Py_ssize_t whole = 2 * g->size * g->sums, stripe = problems < STRIPE ? problems : STRIPE, tile;
    const double *origin = a[ORIGIN].type ? DOUBLES(a[ORIGIN]) : NULL;
    const int64_t *code = a[OUTCOME].view.buf;
    double *sums = borrow(call, (size_t)(stripe * whole) * sizeof(double));
    int failed = 0, bins;
    if (!sums || (!g->layout && prepare_cuts(g, DOUBLES(a[CUTS]), g->size - 1, n * problems) < 0))
        return -1;
    bins = g->lower && !g->layout && g->k > 1 && g->powers == 1 && !g->squares && !origin && !a[WEIGHT].type;
    tile = bins ? TILE : TILE / 4;
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
    return failed ? fail(call, "scores must lie in [0, 1]") : 0;
}

/* Whether numbers lie side by side along an axis. */
static int is_dense(const Array *array, int axis)
{
    return !array->type || LENGTH(*array, axis) < 2 || STRIDE(*array, axis) == array->view.itemsize;
}

/* What is wrong with arrays that have the axes they should; NULL where they fit. */
static const char *misfit(const Call *call, Groups *g, int side_by_side)
{
    const Array *a = call->array;
    if (g->powers < 0 || g->powers > 8 || g->squares < 0 || g->squares > 1 || SIZE(*call, 'm') != g->sums)
        return "there must be sums of powers up to 8, and perhaps of squares";
    if (g->size < 1 || g->size > INT32_MAX)
        return "there must be a group, and not more than integers of 32 bits can tell apart";
    if (!is_dense(&a[CUTS], 1) || !is_dense(&a[OUT], 3) || !is_dense(&a[ORIGIN], 1))
        return "cuts, origins and sums must lie side by side";
    /* Without a layout there are no cells at the walls. */
    if (SIZE(*call, 'v') ? SIZE(*call, 'e') != 1 || check_layout(g, call, &a[CUTS]) < 0
                         : SIZE(*call, 'e') != SIZE(*call, 'p') || SIZE(*call, 'c') != g->size - 1)
        return "there must be one cut less than groups";
    if (side_by_side && (!is_shared(&a[CUTS]) || !is_shared(&a[ORIGIN]) || !is_shared(&a[WEIGHT]) ||
                         !is_shared(&a[OUTCOME]) || !is_dense(&a[OUTCOME], 1) || !is_dense(&a[SCORE], 0)))
        return "problems side by side must share cuts, origins, weights and numbers";
    if (SIZE(*call, 'f') < 0 || SIZE(*call, 'f') > PY_SSIZE_T_MAX / 2)
        return "no such number of a problem";
    return NULL;
}

/* add_sums(score, outcome, weight, cuts, origin, out, powers, squares, below, above, least, shift, first): add the sums
   of rows to `out`, of shape (sums, 2, problems, groups). All arrays have a line for each problem, which may be the same memory.
   `outcome` holds booleans; or the problem of outcome 1 of each row, where scores of a row lie side by side and
   `first` is the number of the first problem. Where `below` is not 0 groups are the cells of a layout, and `cuts` holds
   the edges of equal parts. */
LOOP(add_sums)
{
    const char *wrong, *description = "~df(pn) ~?q(pn) ~-dq(pn) ~d(ec) ~-d(pg) ~>d(m2pg) =o =s =v =w =x =y =f";
    Call call;
    Groups g = {0};
    if (begin(&call, "add_sums", description, args, count) < 0)
        return NULL;
    int side_by_side = call.array[OUTCOME].type == 'q';
    g.powers = (int)SIZE(call, 'o');
    g.squares = (int)SIZE(call, 's');
    g.sums = g.powers + 1 + g.squares;
    g.size = SIZE(call, 'g');
    if ((wrong = misfit(&call, &g, side_by_side)))
        fail(&call, wrong);
    else if (side_by_side && SIZE(call, 'p'))
        by_tile(&g, &call, SIZE(call, 'p'), SIZE(call, 'n'), SIZE(call, 'f'));
    else if (!side_by_side)
        by_problem(&g, &call, SIZE(call, 'p'), SIZE(call, 'n'));
    free_groups(&g);
    return finish(&call);
}

PyMethodDef tally_methods[] = {METHOD(add_sums), NO_METHOD};

/* Which group a score lies in, decided exactly, by comparison with the cut itself.

   A group lies between cuts, or is a cell of a layout: equal parts, the first and the last of them divided by
   octaves of the distance to the wall. */
#include "groups.h"
#include <math.h>

/* A product this near to a whole number may be rounded across it. */
#define NEAR 1e-9

static inline int64_t octave(const Groups *g, double distance)
{
    int64_t code;
    memcpy(&code, &distance, 8);
    code = (code >> g->shift) - (g->first - 1);
    return code > 0 ? code : 0;
}

static inline int64_t in_part(const Groups *g, double x)
{
    int64_t j = (int64_t)(x * (double)g->k);
    j -= x < g->lower[j];
    j += x >= g->lower[j + 1];
    return j;
}

/* How many of cuts[low:high] lie at or below x, and low more. */
static int64_t searched(const double *cuts, int64_t low, int64_t high, double x)
{
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (cuts[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static inline int64_t group_of(const Groups *g, double x)
{
    if (g->per) {
        double at = (x - g->start) * g->per + 1;
        int64_t j = !(at > 0) ? 0 : at < (double)g->count ? (int64_t)at : g->count;
        while (j > 0 && g->cuts[j - 1] > x)
            j--;
        while (j < g->count && g->cuts[j] <= x)
            j++;
        return j;
    }
    return searched(g->cuts, 0, g->count, x);
}

/* Copy scores; whether all lie from +0.0 to 1.0, by their bits: less those of the next float above 1 they are negative,
   and no others are but floats with a sign of their own. */
VECTORISED static int copy_below(const double *restrict from, int n, double *restrict to)
{
    uint64_t all = UINT64_MAX, any = 0;
    for (int i = 0; i < n; i++) {
        double x = from[i];
        uint64_t bits;
        memcpy(&bits, &x, 8);
        to[i] = x;
        all &= bits - UINT64_C(0x3FF0000000000001);
        any |= bits;
    }
    return (all & ~any) >> 63;
}

/* Copy scores; whether all of the copy lie in [0, 1], -0.0 included. */
static int copy_in_range(const double *restrict from, int n, double *restrict to)
{
    if (copy_below(from, n, to))
        return 1;
    for (int i = 0; i < n; i++)
        if (!(to[i] >= 0 && to[i] <= 1))
            return 0;
    return 1;
}

/* The parts of a block of scores; true where a product is so near to a whole number that it may be rounded
   across it. The nearest whole number comes from adding and subtracting a number so large that no digits
   after the point are kept, and the sign of a difference shows whether one score is near. */
#define WHOLE 6755399441055744.0
VECTORISED static int parts_of(const double *restrict x, int n, double k, int32_t *restrict part)
{
    uint64_t near = 0;
    for (int i = 0; i < n; i++) {
        double scaled = x[i] * k, away = scaled - ((scaled + WHOLE) - WHOLE), sign = away * away - NEAR * NEAR;
        uint64_t bits;
        memcpy(&bits, &sign, 8);
        near |= bits;
        part[i] = (int32_t)scaled;
    }
    return (int)(near >> 63);
}

/* Cells of scores; multiplying by a power of two is exact. */
VECTORISED static void cells_by_power(const double *restrict x, int n, double cells, int32_t *restrict cell)
{
    for (int i = 0; i < n; i++)
        cell[i] = (int32_t)(x[i] * cells);
}

/* The groups between evenly spaced cuts, and whether one may be off, likewise. */
VECTORISED static int spaces_of(const double *restrict x, int n, double start, double per, double most,
                                int32_t *restrict group)
{
    uint64_t near = 0;
    for (int i = 0; i < n; i++) {
        double scaled = (x[i] - start) * per + 1, away, sign;
        uint64_t bits;
        scaled = scaled >= 0 ? scaled : 0.5; /* also where it is no number */
        scaled = scaled > most ? most : scaled;
        away = scaled - ((scaled + WHOLE) - WHOLE);
        sign = away * away - NEAR * NEAR;
        memcpy(&bits, &sign, 8);
        near |= bits;
        group[i] = (int32_t)scaled;
    }
    return (int)(near >> 63);
}

/* Move parts on by the cells of the first one, unless one of them is the first or the last; whether they were. */
VECTORISED static int cells_within(int n, int32_t last, int32_t below, int32_t *restrict group)
{
    int32_t outside = 0;
    for (int i = 0; i < n; i++)
        outside |= (group[i] - 1) | (last - 1 - group[i]);
    for (int i = 0; i < n && outside >= 0; i++)
        group[i] += below - 1;
    return outside >= 0;
}

/* The cells of a layout from the parts of a block of scores: those at the walls by octaves of the distance. */
VECTORISED static void cells_at_walls(const double *restrict x, int n, int shift, int32_t least, int32_t last,
                                      int32_t below, int32_t top, int32_t *restrict group)
{
    for (int i = 0; i < n; i++) {
        double up = fabs(x[i]), down = 1 - x[i];
        uint64_t up_bits, down_bits;
        int32_t low, high, part = group[i];
        memcpy(&up_bits, &up, 8);
        memcpy(&down_bits, &down, 8);
        low = (int32_t)(up_bits >> shift) - least;
        high = (int32_t)(down_bits >> shift) - least;
        low = low > 0 ? low : 0;
        high = top - (high > 0 ? high : 0);
        group[i] = part == 0 ? low : part == last ? high : part + below - 1;
    }
}

/* The groups of up to BLOCK scores. Returns -1 where a score is outside of [0, 1], which has no group. */
int groups_of(const Groups *g, const double *scores, int n, int32_t *group)
{
    LINED double x[BLOCK];
    if (!copy_in_range(scores, n, x))
        return -1;
    if (g->table) {
        cells_by_power(x, n, g->cells, group);
        for (int i = 0; i < n; i++) {
            int32_t cell = group[i], found = g->table[cell];
            group[i] = found;
            if (found < 0) {
                int32_t next = g->table[cell + 1];
                group[i] = (int32_t)searched(g->cuts, ~found, next >= 0 ? next : ~next, x[i]);
            }
        }
        return 0;
    }
    if (!g->lower) {
        if (g->per && !spaces_of(x, n, g->start, g->per, (double)g->count + 0.5, group))
            return 0;
        for (int i = 0; i < n; i++)
            group[i] = (int32_t)group_of(g, x[i]);
        return 0;
    }
    if (parts_of(x, n, (double)g->k, group))
        for (int i = 0; i < n; i++)
            group[i] = (int32_t)in_part(g, x[i]);
    if (g->layout && !cells_within(n, (int32_t)(g->k - 1), (int32_t)g->below, group))
        cells_at_walls(x, n, g->shift, (int32_t)(g->first - 1), (int32_t)(g->k - 1), (int32_t)g->below,
                       (int32_t)(g->below + g->k - 3 + g->above), group);
    return 0;
}

/* Prepare k equal parts, whose edges are j/k. */
static int equal_parts(Groups *g, Py_ssize_t k)
{
    g->k = k;
    g->lower = malloc((size_t)(k + 1) * sizeof(double));
    if (!g->lower) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t j = 0; j < k; j++)
        g->lower[j] = (double)j / (double)k;
    g->lower[k] = INFINITY;
    return 0;
}

/* Whether cuts are evenly spaced but for rounding; how they are is noted. */
static int is_even(Groups *g)
{
    double width = g->count > 1 ? (g->cuts[g->count - 1] - g->cuts[0]) / (double)(g->count - 1) : 0;
    if (!(width > 1e-6))
        return 0;
    for (Py_ssize_t j = 0; j < g->count; j++)
        if (!(fabs((g->cuts[j] - g->cuts[0]) / width - (double)j) < NEAR / 4))
            return 0;
    g->start = g->cuts[0];
    g->per = 1 / width;
    return 1;
}

/* Prepare the search for groups between cuts: equal parts are computed, others looked up if rows are many. */
int prepare_cuts(Groups *g, const double *cuts, Py_ssize_t count, Py_ssize_t rows)
{
    Py_ssize_t k = count + 1, j = 0;
    int bits = 11;
    free(g->lower);
    free(g->table);
    g->lower = NULL;
    g->table = NULL;
    g->per = 0;
    g->size = k;
    g->count = count;
    g->cuts = cuts;
    if (k <= 1000000) {
        while (j < count && cuts[j] == (double)(j + 1) / (double)k)
            j++;
        if (j == count)
            return equal_parts(g, k);
    }
    if (rows < 1024 || rows < 2 * count)
        return 0;
    if (is_even(g))
        return 0;
    while (bits < 18 && ((Py_ssize_t)1 << bits) < 16 * count)
        bits++;
    g->cells = (double)(1 << bits);
    g->table = malloc(((size_t)(1 << bits) + 2) * sizeof(int32_t));
    if (!g->table) {
        PyErr_NoMemory();
        return -1;
    }
    j = 0;
    for (int cell = 0; cell <= 1 << bits; cell++) {
        double next = (double)(cell + 1) / g->cells;
        Py_ssize_t low;
        while (j < count && cuts[j] <= (double)cell / g->cells)
            j++;
        low = j;
        g->table[cell] = (int32_t)(low < count && cuts[low] < next ? ~low : low);
    }
    g->table[(1 << bits) + 1] = (int32_t)count;
    return 0;
}

int check_layout(Groups *g, const Call *call, const Array *edges)
{
    Py_ssize_t k = LENGTH(*edges, edges->view.ndim - 1) - 1;
    long long shift = SIZE(*call, 'y');
    g->layout = 1;
    g->below = SIZE(*call, 'v');
    g->above = SIZE(*call, 'w');
    g->first = SIZE(*call, 'x');
    /* From a shift of 31 bits on, what tells a cell fits into 32. */
    if (k < 3 || k > 1000000 || shift < 31 || shift > 52 || g->first < 1 || g->first > INT32_MAX)
        return -1;
    g->shift = (int)shift;
    g->k = k;
    g->lower = malloc((size_t)(k + 1) * sizeof(double));
    if (!g->lower)
        return -1;
    memcpy(g->lower, edges->view.buf, (size_t)(k + 1) * sizeof(double));
    if (g->below < 1 || g->below > g->size || g->above < 1 || g->above > g->size ||
        g->size != g->below + k - 2 + g->above)
        return -1;
    if (g->lower[0] != 0 || g->lower[1] != 1 / (double)k || g->lower[k - 1] != (double)(k - 1) / (double)k ||
        g->lower[k] != INFINITY)
        return -1;
    /* The farthest distances to the walls must have a cell. */
    if (octave(g, g->lower[1]) > g->below || octave(g, 1 - g->lower[k - 1]) >= g->above)
        return -1;
    return 0;
}

void free_groups(Groups *g)
{
    free(g->lower);
    free(g->table);
}

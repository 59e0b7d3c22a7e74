/* Gaps between densities of scores and of positive scores by a triweight kernel on a grid, as `_density` in
   calibrant.published describes them: each mass on the grid is under a kernel that is a polynomial, so that the moments
   of those whose kernels reach over a whole block of points are all that their sum needs. */
#if !defined(VECTORISED) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#define LANES 8
#include "lanes.h"

#ifdef HAVE_LANES

/* Points of a block, in vectors and one by one. */
#define VECTORS 2
#define POINTS (VECTORS * LANES)
/* Narrower kernels, in points, reach over hardly any block. */
#define NARROW 32.0
/* Powers of the distance from the middle: the kernel is of degree six. */
#define POWERS 7
/* Points of the widest grid. */
#define MOST_POINTS (1 << 16)

enum { SCORES, OUTCOMES, WIDTHS, OUT, ARRAYS };

/* The points of the grid inside of the walls; distances are in steps of it, counted from its first point. */
typedef struct {
    double first, step, low;
    Py_ssize_t points;
} Grid;

/* Masses on the grid, and which part of them is positive, in order of their places. */
typedef struct {
    Py_ssize_t reach;   /* points beyond each wall that have any */
    Py_ssize_t size;    /* points that have any */
    int32_t *before;    /* how many lie before each of these points, and before the next one */
    double *place, *mass, *positive;
} Masses;

/* How many masses lie before a place. */
PART int32_t before(const Masses *m, double place)
{
    double at = ceil(place) + (double)m->reach;
    return m->before[at <= 0 ? 0 : at < (double)m->size ? (Py_ssize_t)at : m->size];
}

/* Share scores and their mirror images between the points on both sides of them, as far as any kernel reaches. */
static void gather(const Grid *g, const double *score, const uint8_t *outcome, Py_ssize_t n, double *dense, Masses *m)
{
    double lower = 2 * (g->low - g->first) / g->step, upper = 2 * (1.0 - g->first) / g->step;
    int32_t count = 0;
    memset(dense, 0, (size_t)(2 * m->size) * sizeof(double));
    for (Py_ssize_t i = 0; i < n; i++) {
        double at = (score[i] - g->first) / g->step, copies[4] = {at, lower - at, upper - at, upper - lower + at};
        for (int c = 0; c < 4; c++) {
            double place = copies[c] + (double)m->reach;
            if (place >= 0 && place < (double)(m->size - 1)) {
                Py_ssize_t cell = (Py_ssize_t)place;
                double share = place - (double)cell, positive = (double)(outcome[i] != 0);
                dense[2 * cell] += 1 - share;
                dense[2 * cell + 1] += positive * (1 - share);
                dense[2 * cell + 2] += share;
                dense[2 * cell + 3] += positive * share;
            }
        }
    }
    for (Py_ssize_t i = 0; i < m->size; i++) {
        m->before[i] = count;
        m->place[count] = (double)(i - m->reach);
        m->mass[count] = dense[2 * i];
        m->positive[count] = dense[2 * i + 1];
        count += dense[2 * i] != 0;
    }
    m->before[m->size] = count;
}

/* Add masses to the moments about a middle, or take them off with the sign -1: a power of the distance in each lane. */
PART void add_moments(const Masses *m, int32_t from, int32_t to, double middle, double per, double sign, Lanes *moment)
{
    const Bits odd = {0, -1, 0, -1, 0, -1, 0, -1}, two = {0, 0, -1, -1, 0, 0, -1, -1}, four = {0, 0, 0, 0, -1, -1, -1, -1};
    for (int32_t i = from; i < to; i++) {
        double t = (m->place[i] - middle) * per, square = t * t;
        Lanes power = chosen(odd, all(t), all(1.0)) * chosen(two, all(square), all(1.0));
        power *= chosen(four, all(square * square), all(1.0));
        moment[0] += sign * m->mass[i] * power;
        moment[1] += sign * m->positive[i] * power;
    }
}

/* The sum of (1 - (s - t)^2)^3 over masses at t, as a polynomial of s. */
PART void expand(Lanes moment, double *factor)
{
    double m[LANES];
    memcpy(m, &moment, sizeof(m));
    factor[0] = m[0] - 3 * m[2] + 3 * m[4] - m[6];
    factor[1] = 6 * m[1] - 12 * m[3] + 6 * m[5];
    factor[2] = 18 * m[2] - 3 * m[0] - 15 * m[4];
    factor[3] = 20 * m[3] - 12 * m[1];
    factor[4] = 3 * m[0] - 15 * m[2];
    factor[5] = 6 * m[1];
    factor[6] = -m[0];
}

/* Add the kernels of masses to the sums at the points of a block. */
PART void add_kernels(const Masses *m, int32_t from, int32_t to, double per, const Lanes *point, Lanes *f,
                      Lanes *f1)
{
    for (int32_t i = from; i < to; i++)
        for (int v = 0; v < VECTORS; v++) {
            Lanes apart = (point[v] - m->place[i]) * per;
            Lanes kernel = larger(1 - apart * apart, all(0.0));
            kernel *= kernel * kernel;
            f[v] += m->mass[i] * kernel;
            f1[v] += m->positive[i] * kernel;
        }
}

/* Sum the gaps over the grid, and divide by the sum of the density. */
VECTORISED static double mean_gap(const Grid *g, const Masses *m, double width)
{
    double per, middle = 0, factor[2 * POWERS] = {0}, above = 0, below = 0;
    Lanes moment[2], whole = all(0.0), gaps = all(0.0), order, limit = all((double)g->points);
    int32_t low = 0, high = 0;
    /* Beyond these a kernel is a point, or flat. */
    width = width < 1e-100 ? 1e-100 : width > 1e100 ? 1e100 : width;
    per = 1 / width;
    for (int l = 0; l < LANES; l++)
        order[l] = l;
    for (Py_ssize_t first = 0; first < g->points; first += POINTS) {
        double begin = (double)first, end = begin + POINTS - 1;
        Lanes point[VECTORS], f[VECTORS], f1[VECTORS];
        /* Kernels from `near` to `far` reach a point of the block, those from `low` to `high` all of them. */
        int32_t near = before(m, begin - width), far = before(m, end + width), left = low, entered = high;
        for (int v = 0; v < VECTORS; v++) {
            point[v] = order + (begin + v * LANES);
            f[v] = f1[v] = all(0.0);
        }
        if (width < NARROW)
            low = high = near;
        else {
            low = before(m, end - width);
            high = before(m, begin + width);
            /* The middle stays within half a width of the block: powers stay small, and digits are kept. */
            if (!first || begin > middle + width / 2) {
                middle = begin + width / 2;
                moment[0] = moment[1] = all(0.0);
                add_moments(m, low, high, middle, per, 1, moment);
            } else {
                add_moments(m, left, low, middle, per, -1, moment);
                add_moments(m, entered, high, middle, per, 1, moment);
            }
            expand(moment[0], factor);
            expand(moment[1], factor + POWERS);
            for (int v = 0; v < VECTORS; v++) {
                Lanes s = (point[v] - middle) * per;
                f[v] += factor[POWERS - 1];
                f1[v] += factor[2 * POWERS - 1];
                for (int k = POWERS - 2; k >= 0; k--) {
                    f[v] = f[v] * s + factor[k];
                    f1[v] = f1[v] * s + factor[POWERS + k];
                }
            }
        }
        add_kernels(m, near, low, per, point, f, f1);
        add_kernels(m, high, far, per, point, f, f1);
        for (int v = 0; v < VECTORS; v++) {
            Lanes gap = f1[v] - (g->first + g->step * point[v]) * f[v];
            gaps += chosen(point[v] < limit, size_of(gap), all(0.0));
            whole += chosen(point[v] < limit, f[v], all(0.0));
        }
    }
    for (int l = 0; l < LANES; l++) {
        above += gaps[l];
        below += whole[l];
    }
    return above / below;
}

/* What is wrong with the arguments, or NULL. */
static const char *misfit(const Array *a, const Grid *g)
{
    static const char types[] = "d?dd";
    Py_ssize_t problems;
    for (int i = 0; i < ARRAYS; i++)
        if (!is_plain(&a[i], types[i], 2))
            return "triweight takes contiguous arrays of its types";
    problems = LENGTH(a[SCORES], 0);
    if (LENGTH(a[OUTCOMES], 0) != problems || LENGTH(a[OUTCOMES], 1) != LENGTH(a[SCORES], 1) ||
        LENGTH(a[WIDTHS], 1) != problems || LENGTH(a[OUT], 1) != problems || LENGTH(a[OUT], 0) != LENGTH(a[WIDTHS], 0))
        return "arrays do not fit";
    for (Py_ssize_t i = 0; i < problems * LENGTH(a[WIDTHS], 0); i++)
        if (!(DOUBLES(a[WIDTHS])[i] > 0))
            return "kernels must have a width";
    if (!(g->step > 0) || g->points < 1 || g->points > MOST_POINTS)
        return "the grid has no points";
    return NULL;
}

static int all_problems(const Array *a, const Grid *g)
{
    Py_ssize_t problems = LENGTH(a[SCORES], 0), n = LENGTH(a[SCORES], 1), kernels = LENGTH(a[WIDTHS], 0);
    /* The furthest mirror image lies two widths of the grid beyond its walls. */
    Py_ssize_t most = 3 * g->points + 2, room = g->points + 2 * most + 1;
    double *block = malloc((size_t)room * (5 * sizeof(double) + sizeof(int32_t)));
    Masses m;
    if (!block)
        return -1;
    m.place = block + 2 * room;
    m.mass = m.place + room;
    m.positive = m.mass + room;
    m.before = (int32_t *)(m.positive + room);
    for (Py_ssize_t p = 0; p < problems; p++) {
        const double *width = DOUBLES(a[WIDTHS]) + p;
        double widest = 0;
        for (Py_ssize_t e = 0; e < kernels; e++)
            widest = width[e * problems] > widest ? width[e * problems] : widest;
        m.reach = widest + 2 < (double)most ? (Py_ssize_t)widest + 2 : most;
        m.size = g->points + 2 * m.reach;
        gather(g, DOUBLES(a[SCORES]) + p * n, (const uint8_t *)a[OUTCOMES].view.buf + p * n, n, block, &m);
        for (Py_ssize_t e = 0; e < kernels; e++)
            DOUBLES(a[OUT])[e * problems + p] = mean_gap(g, &m, width[e * problems]);
    }
    free(block);
    return 0;
}

/* triweight(scores, outcomes, widths, out, low, first, step, points): fill `out`, a line for each line of half-widths
   in steps of the grid, with the error of each problem. */
static PyObject *triweight(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[ARRAYS];
    const char *wrong;
    Grid g;
    int fine;
    (void)self;
    if (count != ARRAYS + 4)
        return PyErr_Format(PyExc_TypeError, "triweight takes %d arguments", ARRAYS + 4);
    g.low = PyFloat_AsDouble(args[ARRAYS]);
    g.first = PyFloat_AsDouble(args[ARRAYS + 1]);
    g.step = PyFloat_AsDouble(args[ARRAYS + 2]);
    g.points = PyLong_AsSsize_t(args[ARRAYS + 3]);
    if (PyErr_Occurred())
        return NULL;
    if (take_arrays(args, a, ARRAYS, 1) < 0)
        return NULL;
    wrong = misfit(a, &g);
    if (wrong) {
        give_arrays(a, ARRAYS);
        return PyErr_Format(PyExc_ValueError, "%s", wrong);
    }
    Py_BEGIN_ALLOW_THREADS
    fine = all_problems(a, &g);
    Py_END_ALLOW_THREADS
    give_arrays(a, ARRAYS);
    if (fine < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

#endif

PyMethodDef triweight_methods[] = {
#ifdef HAVE_LANES
    {"triweight", FASTCALL(triweight), METH_FASTCALL, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

/* Probabilities of classes by support vector machines for each pair of them: Gaussian kernels, Platt's scaling of each
   pair, and the pairs coupled as Wu, Lin and Weng (2004) do in their second approach. */
#if !defined(VECTORISED) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#define LANES 8
#include "lanes.h"

#ifdef HAVE_LANES

/* Steps after which a coupling ends at the latest, how near it comes, and the least probability of a pair: those of
   scikit-learn. */
#define STEPS 100
#define NEAR 0.005
#define LEAST 1e-7

enum { ROWS, VECTORS, SHARES, STARTS, LEVELS, SCALES, SHIFTS, OUT, ARRAYS };

typedef struct {
    Py_ssize_t features, classes;
    const double *vectors;               /* by class, a line each */
    const double *shares;                /* of each vector, in the decisions between its class and the others */
    const int64_t *starts;               /* first vector of each class, and their number */
    const double *levels, *scales, *shifts; /* of each pair */
    double narrow;                       /* what squared distances are multiplied by */
    Lanes *row, *pull, *pair, *form, *slope, *p;
} Machine;

/* What each class' vectors say of the rows in the lanes, in the decisions against the other classes. */
VECTORISED static void pulls(const Machine *m)
{
    Py_ssize_t others = m->classes - 1, d = m->features;
    for (Py_ssize_t i = 0; i < m->classes; i++) {
        Lanes *pull = m->pull + i * others;
        for (Py_ssize_t o = 0; o < others; o++)
            pull[o] = all(0.0);
        for (int64_t v = m->starts[i]; v < m->starts[i + 1]; v++) {
            const double *vector = m->vectors + v * d, *share = m->shares + v * others;
            Lanes square = all(0.0), kernel;
            for (Py_ssize_t k = 0; k < d; k++) {
                Lanes apart = m->row[k] - vector[k];
                square += apart * apart;
            }
            kernel = exponential(-m->narrow * square);
            for (Py_ssize_t o = 0; o < others; o++)
                pull[o] += share[o] * kernel;
        }
    }
}

/* The probability of the first class of each pair against the second, and the other way round. */
VECTORISED static void pairs(const Machine *m)
{
    Py_ssize_t k = m->classes, others = k - 1, q = 0;
    for (Py_ssize_t i = 0; i < k; i++)
        for (Py_ssize_t j = i + 1; j < k; j++, q++) {
            Lanes decision = m->pull[i * others + j - 1] + m->pull[j * others + i] + m->levels[q];
            Lanes z = m->scales[q] * decision + m->shifts[q], small = exponential(-size_of(z));
            Lanes first = chosen(z >= all(0.0), small, all(1.0)) / (1 + small);
            first = larger(first, all(LEAST));
            first = chosen(first > all(1 - LEAST), all(1 - LEAST), first);
            m->pair[i * k + j] = first;
            m->pair[j * k + i] = 1 - first;
        }
}

/* Whether any lane is set. */
PART int any(Bits which)
{
    int64_t some = 0;
    for (int l = 0; l < LANES; l++)
        some |= which[l];
    return some != 0;
}

/* The probabilities p of the classes at which the quadratic form of the pairs is least, one class at a time. */
VECTORISED static void couple(const Machine *m)
{
    Py_ssize_t k = m->classes, steps = k > STEPS ? k : STEPS;
    Lanes *p = m->p, *slope = m->slope, *form = m->form;
    for (Py_ssize_t t = 0; t < k; t++) {
        Lanes own = all(0.0);
        for (Py_ssize_t j = 0; j < k; j++)
            if (j != t) {
                own += m->pair[j * k + t] * m->pair[j * k + t];
                form[t * k + j] = -m->pair[j * k + t] * m->pair[t * k + j];
            }
        form[t * k + t] = own;
        p[t] = all(1.0 / (double)k);
    }
    for (Py_ssize_t step = 0; step < steps; step++) {
        Lanes value = all(0.0), far = all(0.0);
        Bits on;
        for (Py_ssize_t t = 0; t < k; t++) {
            slope[t] = all(0.0);
            for (Py_ssize_t j = 0; j < k; j++)
                slope[t] += form[t * k + j] * p[j];
            value += p[t] * slope[t];
        }
        for (Py_ssize_t t = 0; t < k; t++)
            far = larger(size_of(slope[t] - value), far);
        /* A row that is near stays as it is while others go on: its lane neither moves nor shrinks. */
        on = far >= all(NEAR / (double)k);
        if (!any(on))
            break;
        for (Py_ssize_t t = 0; t < k; t++) {
            const Lanes *line = form + t * k;
            Lanes move = chosen(on, (value - slope[t]) / line[t], all(0.0)), shrink = 1 / (1 + move);
            value = (value + move * (move * line[t] + 2 * slope[t])) * shrink * shrink;
            p[t] += move;
            for (Py_ssize_t j = 0; j < k; j++) {
                slope[j] = (slope[j] + move * line[j]) * shrink;
                p[j] *= shrink;
            }
        }
    }
}

/* What is wrong with the arrays, or NULL. */
static const char *misfit(const Array *a)
{
    static const char types[] = "dddqdddd", axes[] = {2, 2, 2, 1, 1, 1, 1, 2};
    const int64_t *starts = a[STARTS].view.buf;
    Py_ssize_t k, vectors, couples;
    for (int i = 0; i < ARRAYS; i++)
        if (!is_plain(&a[i], types[i], axes[i]))
            return "coupled takes contiguous arrays of its types";
    k = LENGTH(a[OUT], 1);
    vectors = LENGTH(a[VECTORS], 0);
    couples = k * (k - 1) / 2;
    if (k < 2 || k > 10000 || LENGTH(a[OUT], 0) != LENGTH(a[ROWS], 0) || LENGTH(a[LEVELS], 0) != couples ||
        LENGTH(a[SCALES], 0) != couples || LENGTH(a[SHIFTS], 0) != couples)
        return "classes do not fit";
    if (LENGTH(a[VECTORS], 1) != LENGTH(a[ROWS], 1) || LENGTH(a[SHARES], 0) != vectors ||
        LENGTH(a[SHARES], 1) != k - 1 || LENGTH(a[STARTS], 0) != k + 1 || starts[0] != 0 || starts[k] != vectors)
        return "vectors do not fit";
    for (Py_ssize_t i = 0; i < k; i++)
        if (starts[i] > starts[i + 1])
            return "vectors do not fit";
    return NULL;
}

static void score_all(const Machine *m, const double *rows, double *out, Py_ssize_t n)
{
    for (Py_ssize_t first = 0; first < n; first += LANES) {
        Py_ssize_t count = n - first < LANES ? n - first : LANES;
        /* Lanes without a row repeat the last one. */
        for (int l = 0; l < LANES; l++) {
            const double *row = rows + (first + (l < count ? l : count - 1)) * m->features;
            for (Py_ssize_t k = 0; k < m->features; k++)
                m->row[k][l] = row[k];
        }
        pulls(m);
        pairs(m);
        couple(m);
        for (Py_ssize_t l = 0; l < count; l++)
            for (Py_ssize_t i = 0; i < m->classes; i++)
                out[(first + l) * m->classes + i] = m->p[i][l];
    }
}

/* coupled(rows, vectors, shares, starts, levels, scales, shifts, out, narrow): fill `out`, a line for each row and a
   column for each class. */
static PyObject *coupled(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[ARRAYS];
    const char *wrong;
    Machine m;
    size_t k, d;
    char *block;
    (void)self;
    if (count != ARRAYS + 1)
        return PyErr_Format(PyExc_TypeError, "coupled takes %d arguments", ARRAYS + 1);
    m.narrow = PyFloat_AsDouble(args[ARRAYS]);
    if (m.narrow == -1 && PyErr_Occurred())
        return NULL;
    if (take_arrays(args, a, ARRAYS, 1) < 0)
        return NULL;
    wrong = misfit(a);
    if (wrong) {
        give_arrays(a, ARRAYS);
        return PyErr_Format(PyExc_ValueError, "%s", wrong);
    }
    k = (size_t)(m.classes = LENGTH(a[OUT], 1));
    d = (size_t)(m.features = LENGTH(a[ROWS], 1));
    block = malloc((d + k * (k - 1) + 2 * k * k + 2 * k + 1) * sizeof(Lanes));
    if (!block) {
        give_arrays(a, ARRAYS);
        return PyErr_NoMemory();
    }
    m.row = (Lanes *)(block + -(uintptr_t)block % sizeof(Lanes));
    m.pull = m.row + d;
    m.pair = m.pull + k * (k - 1);
    m.form = m.pair + k * k;
    m.slope = m.form + k * k;
    m.p = m.slope + k;
    m.vectors = DOUBLES(a[VECTORS]);
    m.shares = DOUBLES(a[SHARES]);
    m.starts = a[STARTS].view.buf;
    m.levels = DOUBLES(a[LEVELS]);
    m.scales = DOUBLES(a[SCALES]);
    m.shifts = DOUBLES(a[SHIFTS]);
    Py_BEGIN_ALLOW_THREADS
    score_all(&m, DOUBLES(a[ROWS]), DOUBLES(a[OUT]), LENGTH(a[ROWS], 0));
    Py_END_ALLOW_THREADS
    free(block);
    give_arrays(a, ARRAYS);
    Py_RETURN_NONE;
}

#endif

PyMethodDef machine_methods[] = {
#ifdef HAVE_LANES
    {"coupled", FASTCALL(coupled), METH_FASTCALL, NULL},
#endif
    {NULL, NULL, 0, NULL},
};

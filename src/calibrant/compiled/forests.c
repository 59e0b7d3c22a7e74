/* Mean of what the trees of a forest say of rows. Rows are divided at each node of a tree, which comes after its
   parent, so that a node is looked at once for many rows. */
#include "loops.h"

/* Rows that go through the trees together: few enough for the cache. */
#define TOGETHER 4096

enum { ROWS, FEATURE, THRESHOLD, LEFT, RIGHT, STARTS, VALUE, OUT, ARRAYS };

/* Where the rows of a node are: in which of two lists, and from where to where. */
typedef struct {
    int32_t list, from, to;
} Part;

/* Divide rows by a column: those up to the threshold from the front, the others from the back. Returns how many go to
   the front. */
static int32_t divide(const float *column, float threshold, const uint16_t *rows, int32_t count, uint16_t *to)
{
    int32_t front = 0, back = count - 1;
    for (int32_t i = 0; i < count; i++) {
        int above = column[rows[i]] > threshold;
        to[front] = to[back] = rows[i];
        front += !above;
        back -= above;
    }
    return front;
}

/* Add the values of the leaf that each row comes to. */
static void add_tree(const Array *a, Py_ssize_t tree, const float *columns, int32_t count, uint16_t lists[2][TOGETHER],
                     Part *parts, double *out)
{
    const int32_t *feature = a[FEATURE].view.buf, *left = a[LEFT].view.buf, *right = a[RIGHT].view.buf;
    const float *threshold = a[THRESHOLD].view.buf;
    const int64_t *starts = a[STARTS].view.buf;
    Py_ssize_t k = LENGTH(a[OUT], 1);
    for (int32_t i = 0; i < count; i++)
        lists[0][i] = (uint16_t)i;
    parts[starts[tree]] = (Part){0, 0, count};
    for (int64_t node = starts[tree]; node < starts[tree + 1]; node++) {
        Part p = parts[node];
        const uint16_t *rows = lists[p.list] + p.from;
        int32_t size = p.to - p.from, middle;
        if (left[node] >= 0) {
            middle = p.from + divide(columns + feature[node] * TOGETHER, threshold[node], rows, size,
                                     lists[!p.list] + p.from);
            parts[starts[tree] + left[node]] = (Part){!p.list, p.from, middle};
            parts[starts[tree] + right[node]] = (Part){!p.list, middle, p.to};
            continue;
        }
        for (Py_ssize_t c = 0; c < k; c++) {
            double value = DOUBLES(a[VALUE])[node * k + c];
            /* Most leaves hold one class. */
            if (value != 0)
                for (int32_t i = 0; i < size; i++)
                    out[rows[i] * k + c] += value;
        }
    }
}

static void mean_of_trees(const Array *a, float *columns, Part *parts)
{
    Py_ssize_t n = LENGTH(a[ROWS], 0), d = LENGTH(a[ROWS], 1), k = LENGTH(a[OUT], 1), trees = LENGTH(a[STARTS], 0) - 1;
    uint16_t lists[2][TOGETHER];
    for (Py_ssize_t first = 0; first < n; first += TOGETHER) {
        int32_t count = (int32_t)(n - first < TOGETHER ? n - first : TOGETHER);
        const float *rows = (const float *)a[ROWS].view.buf + first * d;
        double *out = DOUBLES(a[OUT]) + first * k;
        for (int32_t i = 0; i < count; i++)
            for (Py_ssize_t f = 0; f < d; f++)
                columns[f * TOGETHER + i] = rows[i * d + f];
        memset(out, 0, (size_t)(count * k) * sizeof(double));
        for (Py_ssize_t t = 0; t < trees; t++)
            add_tree(a, t, columns, count, lists, parts, out);
        for (Py_ssize_t i = 0; i < count * k; i++)
            out[i] /= (double)trees;
    }
}

/* What is wrong with the arrays, or NULL. */
static const char *misfit(const Array *a)
{
    static const char types[] = "fifiiqdd", axes[] = {2, 1, 1, 1, 1, 1, 2, 2};
    const int32_t *feature = a[FEATURE].view.buf, *left = a[LEFT].view.buf, *right = a[RIGHT].view.buf;
    const int64_t *starts = a[STARTS].view.buf;
    Py_ssize_t nodes, trees;
    for (int i = 0; i < ARRAYS; i++)
        if (!is_plain(&a[i], types[i], axes[i]))
            return "forest takes contiguous arrays of its types";
    nodes = LENGTH(a[FEATURE], 0);
    trees = LENGTH(a[STARTS], 0) - 1;
    if (LENGTH(a[THRESHOLD], 0) != nodes || LENGTH(a[LEFT], 0) != nodes || LENGTH(a[RIGHT], 0) != nodes ||
        LENGTH(a[VALUE], 0) != nodes || LENGTH(a[VALUE], 1) != LENGTH(a[OUT], 1) ||
        LENGTH(a[OUT], 0) != LENGTH(a[ROWS], 0) || trees < 1 || starts[0] != 0 || starts[trees] != nodes)
        return "arrays do not fit";
    for (Py_ssize_t t = 0; t < trees; t++) {
        int64_t size = starts[t + 1] - starts[t];
        uint8_t *met;
        if (size < 1 || starts[t + 1] > nodes)
            return "a tree has no nodes";
        /* Every node but the first is the child of one before it. */
        met = calloc((size_t)size, 1);
        if (!met)
            return "no memory";
        met[0] = 1;
        for (int64_t i = 0; i < size; i++) {
            int64_t node = starts[t] + i, l = left[node], r = right[node];
            int fine = met[i];
            if (fine && l >= 0)
                fine = l > i && r > i && l < size && r < size && l != r && !met[l] && !met[r] && feature[node] >= 0 &&
                       feature[node] < LENGTH(a[ROWS], 1);
            if (!fine) {
                free(met);
                return "a node leads nowhere";
            }
            if (l >= 0)
                met[l] = met[r] = 1;
        }
        free(met);
    }
    return NULL;
}

/* forest(rows, feature, threshold, left, right, starts, value, out): fill `out` with the mean value of the leaves that
   a row comes to. Trees begin at `starts`, which ends with the number of nodes; children are counted from there, and
   leaves have negative ones. */
static PyObject *forest(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    const char *wrong;
    Array a[ARRAYS];
    float *columns;
    Part *parts;
    (void)self;
    if (count != ARRAYS)
        return PyErr_Format(PyExc_TypeError, "forest takes %d arrays", ARRAYS);
    if (take_arrays(args, a, ARRAYS, 1) < 0)
        return NULL;
    wrong = misfit(a);
    if (wrong) {
        give_arrays(a, ARRAYS);
        return PyErr_Format(PyExc_ValueError, "%s", wrong);
    }
    columns = malloc((size_t)LENGTH(a[ROWS], 1) * TOGETHER * sizeof(float));
    parts = malloc((size_t)LENGTH(a[FEATURE], 0) * sizeof(Part));
    if (columns && parts) {
        Py_BEGIN_ALLOW_THREADS
        mean_of_trees(a, columns, parts);
        Py_END_ALLOW_THREADS
    }
    give_arrays(a, ARRAYS);
    wrong = columns && parts ? NULL : "no memory";
    free(columns);
    free(parts);
    if (wrong)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyMethodDef forest_methods[] = {
    {"forest", FASTCALL(forest), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

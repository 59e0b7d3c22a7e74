/* Rows by the number of their value: how many each value has, and which they are. */
#include "loops.h"

/* The number in row i, whatever its type; a negative one is a large one. */
#define CODE(codes, size, i)                                                                  \
    ((size) == 8   ? ((const uint64_t *)(codes))[i]                                           \
     : (size) == 4 ? (uint64_t)(int64_t)((const int32_t *)(codes))[i]                         \
     : (size) == 2 ? (uint64_t)(int64_t)((const int16_t *)(codes))[i]                         \
                   : (uint64_t)(int64_t)((const int8_t *)(codes))[i])

/* Add to the count of each value; -1 where a number is none of a value. Neighbours count apart, so that equal ones
   need not wait for each other. */
static int count_rows(const void *codes, Py_ssize_t size, Py_ssize_t n, int64_t *counts, uint64_t values)
{
    int64_t other[256] = {0};
    for (Py_ssize_t i = 0; i < n; i++) {
        uint64_t code = CODE(codes, size, i);
        if (code >= values)
            return -1;
        if ((i & 1) && code < 256)
            other[code]++;
        else
            counts[code]++;
    }
    for (uint64_t v = 0; v < values && v < 256; v++)
        counts[v] += other[v];
    return 0;
}

/* Write down the rows of each value from its first place on; -1 where there is no room for one. */
static int order_rows(const void *codes, Py_ssize_t size, Py_ssize_t n, int64_t *next, uint64_t values, int64_t *order)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        uint64_t code = CODE(codes, size, i);
        if (code >= values || (uint64_t)next[code] >= (uint64_t)n)
            return -1;
        order[next[code]++] = i;
    }
    return 0;
}

static int is_whole(const Array *array, const char *types)
{
    return array->type && strchr(types, array->type) && array->view.ndim == 1 && PyBuffer_IsContiguous(&array->view, 'C');
}

/* count_codes(code, counts): add to the int64 counts of values how many rows have each.
   order_codes(code, next, order): write down, as int64, the rows of each value in order, from next[value] on; `next`
   is moved on. */
static PyObject *by_code(PyObject *const *args, Py_ssize_t count, int ordering)
{
    Array a[3];
    int taken = 0, failed = 0, arrays = 2 + ordering;
    if (count != arrays)
        return PyErr_Format(PyExc_TypeError, "%d arrays are due", arrays);
    for (; taken < arrays; taken++)
        if (take_array(args[taken], &a[taken], taken > 0) < 0) {
            give_arrays(a, taken);
            return NULL;
        }
    if (!is_whole(&a[0], "bhiq") || !is_whole(&a[1], "q") ||
        (ordering && (!is_whole(&a[2], "q") || LENGTH(a[2], 0) != LENGTH(a[0], 0)))) {
        give_arrays(a, arrays);
        return PyErr_Format(PyExc_TypeError, "codes must be signed integers, counts and rows int64, side by side");
    }
    Py_BEGIN_ALLOW_THREADS
    Py_ssize_t size = a[0].view.itemsize, n = LENGTH(a[0], 0);
    uint64_t values = (uint64_t)LENGTH(a[1], 0);
    failed = ordering ? order_rows(a[0].view.buf, size, n, a[1].view.buf, values, a[2].view.buf)
                      : count_rows(a[0].view.buf, size, n, a[1].view.buf, values);
    Py_END_ALLOW_THREADS
    give_arrays(a, arrays);
    if (failed)
        return PyErr_Format(PyExc_ValueError, "every code must be the number of a value");
    Py_RETURN_NONE;
}

static PyObject *count_codes(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    return by_code(args, count, 0);
}

static PyObject *order_codes(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    return by_code(args, count, 1);
}

PyMethodDef code_methods[] = {
    {"count_codes", FASTCALL(count_codes), METH_FASTCALL, NULL},
    {"order_codes", FASTCALL(order_codes), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

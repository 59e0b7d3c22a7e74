/* Rows by the number of their value: which value a text is, how many rows each value has, and which they are. */
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
        int64_t to = code < values ? next[code] : -1;
        if ((uint64_t)to >= (uint64_t)n)
            return -1;
        order[to] = i;
        next[code] = to + 1;
    }
    return 0;
}

/* Texts of few values, each short: their bytes as one number, and their lengths. */
#define FEW 16
#define SHORT 8

typedef struct {
    uint64_t key[FEW];
    int32_t length[FEW], start[FEW];
    int count;
} Texts;

/* The bytes of a text as a number; what lies behind them in memory is left out. */
static inline uint64_t key_of(const uint8_t *data, int64_t size, int64_t start, int length)
{
    uint64_t key = 0;
    if (start + 8 <= size) {
        memcpy(&key, data + start, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        return length ? key >> (8 * (8 - length)) : 0;
#else
        return length ? key << (8 * (8 - length)) : 0;
#endif
    }
    for (int i = 0; i < length; i++)
        key |= (uint64_t)data[start + i] << (8 * (8 - length + i));
    return key;
}

/* Tell the values of texts apart: 1, or 0 where they are too many or too long, -1 where they are not in the data. */
static int tell_apart(const int32_t *offset, Py_ssize_t n, const uint8_t *data, int64_t size, int32_t *code, Texts *texts)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t start = offset[i], length = (int64_t)offset[i + 1] - start;
        int at = -1;
        uint64_t key;
        if (start < 0 || length < 0 || start + length > size)
            return -1;
        if (length > SHORT)
            return 0;
        key = key_of(data, size, start, (int)length);
        for (int k = 0; k < texts->count; k++)
            at = (key == texts->key[k]) & (length == texts->length[k]) ? k : at;
        if (at < 0) {
            if (texts->count == FEW)
                return 0;
            at = texts->count++;
            texts->key[at] = key;
            texts->length[at] = (int32_t)length;
            texts->start[at] = (int32_t)start;
        }
        code[i] = at;
    }
    return 1;
}

static int is_whole(const Array *array, const char *types)
{
    return array->type && strchr(types, array->type) && array->view.ndim == 1 &&
           PyBuffer_IsContiguous(&array->view, 'C') && is_aligned(array);
}

/* count_codes(code, counts): add to the int64 counts of values how many rows have each.
   order_codes(code, next, order): write down, as int64, the rows of each value in order, from next[value] on; `next`
   is moved on. */
static PyObject *by_code(PyObject *const *args, Py_ssize_t count, int ordering)
{
    Array a[3];
    int failed = 0, arrays = 2 + ordering;
    if (count != arrays)
        return PyErr_Format(PyExc_TypeError, "%d arrays are due", arrays);
    if (take_arrays(args, a, arrays, arrays - 1) < 0)
        return NULL;
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

/* code_texts(offsets, data, code): the value of each text, as its number in the order in which values occur. Text i
   has the bytes of `data` from offsets[i] to offsets[i + 1]. Returns (start, length) of each value; None where these
   are many or long. */
static PyObject *code_texts(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array a[3];
    Texts texts = {0};
    int told = -1;
    PyObject *values;
    (void)self;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "3 arrays are due");
    if (take_arrays(args, a, 3, 1) < 0)
        return NULL;
    if (!is_whole(&a[0], "i") || !is_whole(&a[1], "B") || !is_whole(&a[2], "i") ||
        LENGTH(a[0], 0) != LENGTH(a[2], 0) + 1) {
        give_arrays(a, 3);
        return PyErr_Format(PyExc_TypeError, "offsets and codes must be int32, one offset more, and the data bytes");
    }
    Py_BEGIN_ALLOW_THREADS
    told = tell_apart(a[0].view.buf, LENGTH(a[2], 0), a[1].view.buf, LENGTH(a[1], 0), a[2].view.buf, &texts);
    Py_END_ALLOW_THREADS
    give_arrays(a, 3);
    if (told < 0)
        return PyErr_Format(PyExc_ValueError, "every text must lie in the data");
    if (!told)
        Py_RETURN_NONE;
    values = PyTuple_New(texts.count);
    for (int k = 0; values && k < texts.count; k++) {
        PyObject *place = Py_BuildValue("ii", texts.start[k], texts.length[k]);
        if (!place || PyTuple_SetItem(values, k, place) < 0)
            Py_CLEAR(values);
    }
    return values;
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
    {"code_texts", FASTCALL(code_texts), METH_FASTCALL, NULL},
    {"count_codes", FASTCALL(count_codes), METH_FASTCALL, NULL},
    {"order_codes", FASTCALL(order_codes), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

/* The extension module: its functions by the file they are in, and the buffers they work on. */
#include "loops.h"

int take_array(PyObject *object, Array *array, int writable)
{
    const char *format;
    memset(array, 0, sizeof(*array));
    if (object == Py_None)
        return 0;
    if (PyObject_GetBuffer(object, &array->view, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) < 0)
        return -1;
    format = array->view.format ? array->view.format : "B";
    if (*format == '@' || *format == '=')
        format++;
    array->type = !*format || format[1] ? '\0' : *format;
    if (!array->type) {
        PyErr_Format(PyExc_TypeError, "no loop for arrays of format %s", array->view.format);
        PyBuffer_Release(&array->view);
        return -1;
    }
    /* All integers by their size: q, i, h, b and Q, I, H, B. */
    if (strchr("lq", array->type))
        array->type = array->view.itemsize == 8 ? 'q' : 'i';
    if (strchr("LQ", array->type))
        array->type = array->view.itemsize == 8 ? 'Q' : 'I';
    return 0;
}

void give_arrays(Array *arrays, int count)
{
    for (int i = 0; i < count; i++)
        if (arrays[i].type)
            PyBuffer_Release(&arrays[i].view);
}

int take_arrays(PyObject *const *args, Array *arrays, int count, int written)
{
    for (int i = 0; i < count; i++)
        if (take_array(args[i], &arrays[i], i >= count - written) < 0) {
            give_arrays(arrays, i);
            return -1;
        }
    return 0;
}

int is_aligned(const Array *array)
{
    Py_ssize_t size = array->view.itemsize;
    if ((uintptr_t)array->view.buf % (uintptr_t)size)
        return 0;
    for (int axis = 0; axis < array->view.ndim; axis++)
        if (LENGTH(*array, axis) > 1 && STRIDE(*array, axis) % size)
            return 0;
    return 1;
}

int is_plain(const Array *a, char type, int ndim)
{
    return a->type == type && a->view.ndim == ndim && PyBuffer_IsContiguous(&a->view, 'C') && is_aligned(a);
}

int64_t *copy_integers(const Array *vector)
{
    size_t size = (size_t)LENGTH(*vector, 0) * sizeof(int64_t);
    int64_t *copy = malloc(size + 1);
    if (!copy)
        PyErr_NoMemory();
    else if (size)
        memcpy(copy, vector->view.buf, size);
    return copy;
}

int fail(const char *message)
{
    PyErr_SetString(PyExc_ValueError, message);
    return -1;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_loops", "Loops over rows in C.", 0, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__loops(void)
{
    PyMethodDef *methods[] = {
        score_methods,
        tally_methods,
        cell_methods,
        rank_methods,
        shape_methods,
        draw_methods,
        gap_methods,
        total_methods,
        code_methods,
        machine_methods,
        forest_methods,
        triweight_methods,
        run_methods,
        wide_shape_methods,
    };
    size_t count = sizeof(methods) / sizeof(methods[0]) - !has_wide_vectors();
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < count; i++)
        if (PyModule_AddFunctions(module, methods[i]) < 0)
            Py_CLEAR(module);
    return module;
}

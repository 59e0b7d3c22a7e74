/* The extension module: its functions by the file they are in, and the arguments that they take. */
#include "loops.h"

/* Read the buffer of an object. Returns 0, or -1 with an error set. */
static int take_array(PyObject *object, Array *array, int writable)
{
    const char *format;
    if (PyObject_GetBuffer(object, &array->view, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) < 0)
        return -1;
    format = array->view.format ? array->view.format : "B";
    if (*format == '@' || *format == '=')
        format++;
    array->type = !*format || format[1] ? 'x' : *format;
    /* Integers by their size: q and i, Q and I. */
    if (strchr("lq", array->type))
        array->type = array->view.itemsize == 8 ? 'q' : 'i';
    if (strchr("LQ", array->type))
        array->type = array->view.itemsize == 8 ? 'Q' : 'I';
    return 0;
}

/* Whether every number lies where the machine reads numbers of its size; rows of packed records do not. */
static int is_aligned(const Array *array)
{
    Py_ssize_t size = array->view.itemsize;
    if ((uintptr_t)array->view.buf % (uintptr_t)size)
        return 0;
    for (int axis = 0; axis < array->view.ndim; axis++)
        if (LENGTH(*array, axis) > 1 && STRIDE(*array, axis) % size)
            return 0;
    return 1;
}

/* Whether an array has one of the types and the axes that a word describes; sizes that are new are noted. */
static int fits(Call *call, const Array *array, const char *word, size_t length)
{
    const char *end = word + length, *axes = memchr(word, '(', length);
    if (!array->type || !memchr(word, array->type, (size_t)(axes - word)) || !is_aligned(array) ||
        array->view.ndim != end - axes - 2)
        return 0;
    for (int axis = 0; axis < array->view.ndim; axis++) {
        char letter = axes[1 + axis];
        long long *size = letter >= 'a' ? &call->size[letter - 'a'] : NULL, expected = size ? *size : letter - '0';
        if (size && expected < 0)
            *size = LENGTH(*array, axis);
        else if (LENGTH(*array, axis) != expected)
            return 0;
    }
    return 1;
}

int begin(Call *call, const char *name, const char *description, PyObject *const *args, Py_ssize_t count)
{
    const char *word = description;
    Py_ssize_t i = 0;
    memset(call, 0, sizeof(*call));
    memset(call->size, -1, sizeof(call->size));
    call->name = name;
    for (; *word && i < count; i++) {
        size_t length = strcspn(word, " ");
        int strided = 0, optional = 0, written = 0;
        Array *array = &call->array[i];
        if (*word == '=') {
            call->size[word[1] - 'a'] = PyLong_AsLongLong(args[i]);
            if (PyErr_Occurred())
                break;
        } else {
            for (; strchr("~->", *word); word++, length--) {
                strided |= *word == '~';
                optional |= *word == '-';
                written |= *word == '>';
            }
            if (!(optional && args[i] == Py_None)) {
                if (take_array(args[i], array, written) < 0)
                    break;
                call->count = (int)i + 1;
                if (!fits(call, array, word, length) || !(strided || PyBuffer_IsContiguous(&array->view, 'C'))) {
                    PyErr_Format(PyExc_ValueError, "%s: argument %zd does not fit the others, as in %s", name, i + 1,
                                 description);
                    break;
                }
            }
        }
        word += length;
        word += strspn(word, " ");
    }
    if (!PyErr_Occurred() && (*word || i < count))
        PyErr_Format(PyExc_TypeError, "%s takes the arguments %s", name, description);
    return PyErr_Occurred() ? (finish(call), -1) : 0;
}

PyObject *finish(Call *call)
{
    for (int i = 0; i < call->count; i++)
        if (call->array[i].type)
            PyBuffer_Release(&call->array[i].view);
    for (int i = 0; i < call->pieces; i++)
        free(call->piece[i]);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

void *borrow(Call *call, size_t bytes)
{
    void *piece = malloc(bytes + !bytes);
    if (piece)
        call->piece[call->pieces++] = piece;
    else
        PyErr_NoMemory();
    return piece;
}

int64_t *borrow_places(Call *call, int array, Py_ssize_t least, Py_ssize_t end)
{
    const Array *places = &call->array[array];
    int64_t *place = borrow(call, (size_t)places->view.len);
    if (place)
        memcpy(place, places->view.buf, (size_t)places->view.len);
    for (Py_ssize_t i = 0; place && i < LENGTH(*places, 0); i++)
        if (place[i] < least || place[i] >= end) {
            fail(call, "a place is outside of its array");
            return NULL;
        }
    return place;
}

int fail(const Call *call, const char *message)
{
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%s: %s", call->name, message);
    return -1;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_loops", "Loops over rows in C.", 0, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__loops(void)
{
    PyMethodDef *methods[] = {
        tally_methods, cell_methods, shape_methods, draw_methods, walk_methods, wide_shape_methods,
    };
    size_t count = sizeof(methods) / sizeof(methods[0]) - !has_wide_vectors();
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; module && i < count; i++)
        if (PyModule_AddFunctions(module, methods[i]) < 0)
            Py_CLEAR(module);
    return module;
}

/* Checks of scores: whether all of them lie in [0, 1]. */
#include "loops.h"

/* As unsigned integers the floats from 0 to 1 come before all others, -0.0 excepted. */
#define LARGEST(name, type)                                                   \
    VECTORISED static type name(const type *bits, Py_ssize_t n)               \
    {                                                                         \
        type most = 0;                                                        \
        for (Py_ssize_t i = 0; i < n; i++)                                    \
            most = bits[i] > most ? bits[i] : most;                           \
        return most;                                                          \
    }
LARGEST(largest_64, uint64_t)
LARGEST(largest_32, uint32_t)

/* in_unit(scores): whether a contiguous array of float64 or float32 holds nothing but floats from +0.0 to 1.0. */
static PyObject *in_unit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Array score;
    int fine;
    (void)self;
    if (count != 1 || take_array(args[0], &score, 0) < 0)
        return count == 1 ? NULL : PyErr_Format(PyExc_TypeError, "in_unit takes one array");
    if (!strchr("df", score.type) || !PyBuffer_IsContiguous(&score.view, 'A')) {
        give_arrays(&score, 1);
        return PyErr_Format(PyExc_TypeError, "in_unit takes contiguous floats");
    }
    Py_BEGIN_ALLOW_THREADS
    if (score.type == 'd')
        fine = largest_64(score.view.buf, score.view.len / 8) <= UINT64_C(0x3FF0000000000000);
    else
        fine = largest_32(score.view.buf, score.view.len / 4) <= UINT32_C(0x3F800000);
    Py_END_ALLOW_THREADS
    give_arrays(&score, 1);
    return PyBool_FromLong(fine);
}

PyMethodDef score_methods[] = {
    {"in_unit", FASTCALL(in_unit), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

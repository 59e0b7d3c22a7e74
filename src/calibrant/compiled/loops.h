/* What the files of the extension share: arguments, and how functions are compiled. */
#ifndef CALIBRANT_LOOPS_H
#define CALIBRANT_LOOPS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Vector instructions of the machine it runs on; every sum is written in an order that does not depend on
   them, and nothing is contracted, so that results are the same everywhere. */
#ifdef VECTORISED
#elif defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define VECTORISED __attribute__((target_clones("avx2", "default")))
#else
#define VECTORISED
#endif

/* Rows looked at together: they stay in the nearest cache. */
#define BLOCK 1024

/* An array behind a buffer: `type` is the character of its format, 0 where there is no array. */
typedef struct {
    Py_buffer view;
    char type;
} Array;

#define LENGTH(array, axis) ((array).view.shape[axis])
#define STRIDE(array, axis) ((array).view.strides[axis])
#define DOUBLES(array) ((double *)(array).view.buf)

/* The most arguments of a loop, and the most pieces of memory that one needs. */
#define MOST_ARGUMENTS 16
#define MOST_PIECES 8

/* The arguments of a call, and the memory that it needs; `finish` gives both back. */
typedef struct {
    const char *name;
    Array array[MOST_ARGUMENTS];
    int count;
    long long size[26]; /* of the letters of a description, -1 where it has none such */
    void *piece[MOST_PIECES];
    int pieces;
} Call;

/* Read the arguments of a loop by a description, which has a word for each:

     types(axes)   an array of one of these types: d f (floats), q i (integers), H I (without a sign), ? (booleans).
                   Each axis is a letter, and axes of one letter are equally long; or it is a digit, its length.
                   The numbers lie side by side, and as the machine reads them.
       ~           before it: with any strides; the numbers still lie as the machine reads them.
       -           before it: None may take its place.
       >           before it: it is written to.
     =letter       an integer, kept as the size of a letter.

   Returns 0, or -1 with an error set and nothing held. */
int begin(Call *call, const char *name, const char *description, PyObject *const *args, Py_ssize_t count);
#define SIZE(call, letter) ((Py_ssize_t)(call).size[(letter) - 'a'])

/* Memory that a call needs; NULL with an error set where there is none. */
void *borrow(Call *call, size_t bytes);
/* A copy of the int64 of a vector, all of which lie from a least one to below an end; NULL with an error set where
   one does not, or where there is no memory. */
int64_t *borrow_places(Call *call, int array, Py_ssize_t least, Py_ssize_t end);
/* Set a ValueError that names the loop, unless an error is set; returns -1. */
int fail(const Call *call, const char *message);
/* End a call: returns None, or NULL where an error is set. */
PyObject *finish(Call *call);

/* Another thread may write to the array of a caller at any time. What decides about a place in memory is therefore
   copied, checked as a copy and read from there; or read once and compared where it is used. A compiler may read an
   array again in place of a local variable, but none has a reason to. */

#define LOOP(name) static PyObject *name(PyObject *Py_UNUSED(self), PyObject *const *args, Py_ssize_t count)
#define METHOD(name) {#name, (PyCFunction)(void (*)(void))(name), METH_FASTCALL, NULL}
#define NO_METHOD {NULL, NULL, 0, NULL}

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
/* Numbers that begin where a line of the cache does. */
#define LINED __attribute__((aligned(64)))
/* A count and a sum that lie side by side: the machine adds both at once. */
typedef double Pair __attribute__((vector_size(16), aligned(8), may_alias));
#define ADD_PAIR(at, x) (*(Pair *)(at) += (Pair){1.0, (x)})
#else
#define PREFETCH(address) ((void)0)
#define LINED
#define ADD_PAIR(at, x) ((at)[0] += 1.0, (at)[1] += (x))
#endif

/* Up to BLOCK numbers as double precision; those that are so already stay where they are. */
const double *doubles(const char *from, Py_ssize_t stride, char type, int n, double *to);

/* The methods of each file. */
extern PyMethodDef tally_methods[];
extern PyMethodDef cell_methods[];
extern PyMethodDef shape_methods[];
extern PyMethodDef draw_methods[];
extern PyMethodDef walk_methods[];
/* Those that take the place of others on a machine with wide vectors. */
extern PyMethodDef wide_shape_methods[];
int has_wide_vectors(void);

#endif

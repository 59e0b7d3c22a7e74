/* What the files of the extension share: arrays as buffers, and how functions are compiled. */
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

/* Read the buffer of an object; None gives an array of type 0. Returns 0, or -1 with an error set. */
int take_array(PyObject *object, Array *array, int writable);
/* Take so many arguments, the last of which are written to; returns -1 with none of them held where one is no array. */
int take_arrays(PyObject *const *args, Array *arrays, int count, int written);
void give_arrays(Array *arrays, int count);
/* Whether every number lies where the machine reads numbers of its size; rows of packed records do not. */
int is_aligned(const Array *array);
/* Whether an array has a type and so many axes, and its numbers lie side by side. */
int is_plain(const Array *array, char type, int ndim);
/* Set a ValueError; returns -1. */
int fail(const char *message);

#define LENGTH(array, axis) ((array).view.shape[axis])
#define STRIDE(array, axis) ((array).view.strides[axis])
#define DOUBLES(array) ((double *)(array).view.buf)

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)0)
#endif

/* Numbers that begin where a line of the cache does. */
#if defined(__GNUC__)
#define LINED __attribute__((aligned(64)))
#else
#define LINED
#endif

/* A count and a sum that lie side by side: the machine adds both at once. */
#if defined(__GNUC__)
typedef double Pair __attribute__((vector_size(16), aligned(8), may_alias));
#define ADD_PAIR(at, x) (*(Pair *)(at) += (Pair){1.0, (x)})
#else
#define ADD_PAIR(at, x) ((at)[0] += 1.0, (at)[1] += (x))
#endif

#define FASTCALL(function) ((PyCFunction)(void (*)(void))(function))

/* Up to BLOCK numbers as double precision; those that are so already stay where they are. */
const double *doubles(const char *from, Py_ssize_t stride, char type, int n, double *to);
/* Whether floats, seen as integers, are all from +0.0 to below a limit; and the bits of the next float above 1. */
int doubles_below(const uint64_t *bits, Py_ssize_t n, uint64_t limit);
int floats_below(const uint32_t *bits, Py_ssize_t n, uint32_t limit);
#define DOUBLE_ABOVE_ONE UINT64_C(0x3FF0000000000001)
#define FLOAT_ABOVE_ONE UINT32_C(0x3F800001)
/* Whether integers of a size are all 0 or 1; which of them are 1 is written down. */
int zero_one_labels(const char *label, Py_ssize_t size, Py_ssize_t n, uint8_t *code);
/* Another thread may write to the array of a caller at any time. What decides about a place in memory is therefore
   copied, checked as a copy and read from there; or read once and compared where it is used. A compiler may read an
   array again in place of a local variable, but none has a reason to. */

/* Copy scores; whether all of the copy lie in [0, 1], -0.0 included. */
int copy_in_range(const double *restrict from, int n, double *restrict to);
/* A copy of the int64 of a vector, to be freed; NULL with an error set where there is no memory for it. */
int64_t *copy_integers(const Array *vector);
/* Which of 2^m equal cells each score lies in; 1 is in one of its own. */
void cells_by_power(const double *x, int n, double cells, int32_t *cell);

/* Rows of a matrix looked at together, and columns so few that four rows are looked at side by side. */
#define LOOKED 256
#define FEW_CLASSES 24
/* Whether an array has rows of floats side by side. */
int are_rows(const Array *score);
/* The largest score of up to LOOKED rows, its first column, and their sums; whether all scores lie in [0, 1]. */
int look_into_rows(const Array *score, Py_ssize_t start, int n, double *most, int64_t *best, double *sum);

/* How far the sum farthest from 1 is away from it. */
double farthest(const double *sum, int n);

/* The methods of each file. */
extern PyMethodDef score_methods[];
extern PyMethodDef tally_methods[];
extern PyMethodDef cell_methods[];
extern PyMethodDef rank_methods[];
extern PyMethodDef shape_methods[];
/* Those that take the place of others on a machine with wide vectors. */
extern PyMethodDef wide_shape_methods[];
int has_wide_vectors(void);
extern PyMethodDef draw_methods[];
extern PyMethodDef gap_methods[];
extern PyMethodDef total_methods[];
extern PyMethodDef code_methods[];
extern PyMethodDef machine_methods[];
extern PyMethodDef forest_methods[];
extern PyMethodDef triweight_methods[];
extern PyMethodDef run_methods[];

#endif

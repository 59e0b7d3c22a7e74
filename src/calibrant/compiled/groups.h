/* Groups of scores: what they are, and how a score is found to lie in one. */
#ifndef CALIBRANT_GROUPS_H
#define CALIBRANT_GROUPS_H

#include "loops.h"

/* What is summed, and how the group of a score is found. */
typedef struct {
    Py_ssize_t size;      /* groups */
    Py_ssize_t count;     /* cuts, one less than groups */
    const double *cuts;   /* in order */
    double *lower;        /* edges of k equal parts, the last one infinity; NULL where cuts are others */
    Py_ssize_t k;         /* equal parts */
    double start, per;    /* cuts that are evenly spaced: the first one, and groups in a unit; per is 0 for others */
    int32_t *table;       /* groups by cell of 2^m, ~group where a cut lies inside; NULL without */
    double cells;         /* 2^m */
    int layout;           /* whether the first and the last part are divided by octaves */
    int64_t below, above; /* cells of the first and of the last part */
    int64_t first;        /* the code of the least distance to the wall that has a cell of its own */
    int shift;            /* bits of a distance that do not tell its cell */
    int powers, squares, sums;
} Groups;

/* The groups of up to BLOCK scores. Returns -1 where a score is outside of [0, 1], which has no group. */
int groups_of(const Groups *g, const double *scores, int n, int32_t *group);

/* Prepare the search between cuts for so many rows; what a search before allocated is freed. Returns 0, or -1 with
   an error set. */
int prepare_cuts(Groups *g, const double *cuts, Py_ssize_t count, Py_ssize_t rows);

/* Read a layout from the integers of a call, below, above, least and shift, which are those of the letters v to y: cells
   of equal parts with these edges, side by side, 0 first and infinity last; they are copied. Returns 0 or -1. */
int check_layout(Groups *g, const Call *call, const Array *edges);

/* Free what `prepare_cuts` and `check_layout` allocated. */
void free_groups(Groups *g);

#endif

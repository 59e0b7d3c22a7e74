/* Columns of Parquet files: numbers of which none is missing, plain or by dictionary, as they are or in Snappy.

   Everything else is left to others: where a column holds it, or is not as it should be, the answer is no, and nobody
   reads what was written until then. The format: https://parquet.apache.org/docs/file-format/. */
#include "loops.h"
#if !defined(_WIN32)
#include <unistd.h>

/* Bytes that are left to read. */
typedef struct {
    const uint8_t *at, *end;
} Bytes;

#define LEFT(bytes) ((bytes).end - (bytes).at)
/* No page is larger. */
#define MOST_BYTES (1 << 27)

/* A number of the machine's order from up to eight bytes. */
static inline uint64_t word_of(const uint8_t *at, int64_t size)
{
    uint64_t word = 0;
    if (size >= 8)
        memcpy(&word, at, 8);
    else
        for (int64_t k = 0; k < size; k++)
            word |= (uint64_t)at[k] << (8 * k);
    return word;
}

static int take_varint(Bytes *bytes, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && LEFT(*bytes) > 0; shift += 7) {
        uint8_t next = *bytes->at++;
        *value |= (uint64_t)(next & 127) << shift;
        if (next < 128)
            return 0;
    }
    return -1;
}

/* ---- headers of pages, in Thrift's compact protocol ---- */

#define FIELDS 16
enum { STOP, YES, NO, BYTE, INT_16, INT_32, INT_64, FLOATING, BINARY, STRUCT = 12 };
/* Fields of a header; the fields of a structure in field f are from f * FIELDS on. */
enum {
    KIND = 1,
    SIZE,
    STORED,
    DATA = 5 * FIELDS,
    DICTIONARY = 7 * FIELDS,
    DATA_2 = 8 * FIELDS,
    ALL_FIELDS = 9 * FIELDS,
};
/* Of DATA and DICTIONARY, and of DATA_2. */
enum { VALUES = 1, ENCODING, LEVEL_ENCODING };
enum { VALUES_2 = 1, MISSING_2, ROWS_2, ENCODING_2, LEVELS_2, REPEATS_2, SQUEEZED_2 };

/* Read a structure; whole numbers and booleans of the first fields are noted, and those one level below. */
static int take_struct(Bytes *bytes, int64_t *values, int depth)
{
    uint64_t id = 0, number;
    if (depth > 4)
        return -1;
    while (LEFT(*bytes) > 0) {
        uint8_t head = *bytes->at++;
        int noted;
        if (head == STOP)
            return 0;
        if (head >> 4)
            id += head >> 4;
        else if (take_varint(bytes, &number) < 0 || number & 1)
            return -1;
        else
            id = number >> 1;
        noted = values && id < FIELDS;
        switch (head & 15) {
        case YES:
        case NO:
            number = (head & 15) == YES ? 2 : 0;
            break;
        case INT_16:
        case INT_32:
        case INT_64:
            if (take_varint(bytes, &number) < 0)
                return -1;
            break;
        case BINARY:
            if (take_varint(bytes, &number) < 0 || number > (uint64_t)LEFT(*bytes))
                return -1;
            bytes->at += number;
            continue;
        case STRUCT:
            if (take_struct(bytes, noted && !depth && id < ALL_FIELDS / FIELDS ? values + id * FIELDS : NULL, depth + 1))
                return -1;
            continue;
        default:
            return -1;
        }
        if (noted)
            values[id] = (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
    }
    return -1;
}

/* ---- Snappy ---- */

/* Bytes behind the end of what is written that may be spoilt. */
#define SLACK 64

/* Copy what was written before, which may reach into what is written now. */
static void copy_before(uint8_t *to, int64_t offset, int64_t n)
{
    const uint8_t *from = to - offset;
    if (offset >= 16)
        for (int64_t k = 0; k < n; k += 16)
            memcpy(to + k, from + k, 16);
    else if (offset >= 8)
        for (int64_t k = 0; k < n; k += 8)
            memcpy(to + k, from + k, 8);
    else
        for (int64_t k = 0; k < n; k++)
            to[k] = from[k];
}

/* Write `size` bytes, with room for SLACK more; -1 where it would be others. */
static int unsqueeze(Bytes from, uint8_t *to, int64_t size)
{
    uint8_t *start = to, *end = to + size;
    uint64_t length;
    if (take_varint(&from, &length) < 0 || length != (uint64_t)size)
        return -1;
    while (LEFT(from) > 0) {
        uint8_t tag = *from.at++;
        int more = (tag & 3) == 0 ? (tag >> 2 < 60 ? 0 : (tag >> 2) - 59) : (tag & 3) == 3 ? 4 : tag & 3;
        int64_t n = (tag >> 2) + 1, said;
        if (LEFT(from) < more)
            return -1;
        said = (int64_t)word_of(from.at, more);
        from.at += more;
        if ((tag & 3) == 0) {
            n = more ? said + 1 : n;
            if (LEFT(from) < n || end - to < n)
                return -1;
            if (n <= 16 && LEFT(from) >= 16)
                memcpy(to, from.at, 16);
            else
                memcpy(to, from.at, (size_t)n);
            from.at += n;
        } else {
            if ((tag & 3) == 1) {
                n = ((tag >> 2) & 7) + 4;
                said |= (int64_t)(tag >> 5) << 8;
            }
            if (end - to < n || said < 1 || said > to - start)
                return -1;
            copy_before(to, said, n);
        }
        to += n;
    }
    return to == end ? 0 : -1;
}

/* ---- values ---- */

/* What a column becomes: numbers of some bytes, by their number in a dictionary or as they are. */
typedef struct {
    uint8_t *out;         /* the next value */
    int64_t left;         /* values that are due */
    int size, stored;     /* bytes of a value, and of one in the file; 0 where it is a bit */
    uint8_t *dictionary;  /* of `size` bytes each */
    int64_t entries;
} Column;

/* The numbers of some values, each of so many bits. */
static void unpack(Bytes from, int width, int n, uint32_t *to)
{
    uint64_t mask = (UINT64_C(1) << width) - 1;
    for (int i = 0; i < n; i++) {
        int64_t bit = (int64_t)i * width;
        const uint8_t *at = from.at + (bit >> 3);
        to[i] = (uint32_t)((word_of(at, from.end - at) >> (bit & 7)) & mask);
    }
}

/* Single bits as bytes, eight at a time. */
static void unpack_bits(const uint8_t *from, int n, uint8_t *to)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    int i = 0;
    for (; i + 8 <= n; i += 8) {
        /* Every byte keeps another bit, and becomes 1 where that is set. */
        uint64_t spread = (from[i >> 3] * ones) & UINT64_C(0x8040201008040201);
        spread = ((spread + 127 * ones) >> 7) & ones;
        memcpy(to + i, &spread, 8);
    }
    for (; i < n; i++)
        to[i] = (from[i >> 3] >> (i & 7)) & 1;
}

VECTORISED static uint32_t largest(const uint32_t *number, int n)
{
    uint32_t most = 0;
    for (int i = 0; i < n; i++)
        most = number[i] > most ? number[i] : most;
    return most;
}

#define TAKE(type)                                                        \
    for (int i = 0; i < n; i++)                                           \
        ((type *)column->out)[i] = ((const type *)column->dictionary)[number[i]]

/* Write values by their numbers. */
static int take_numbered(Column *column, const uint32_t *number, int n)
{
    if (largest(number, n) >= (uint64_t)column->entries)
        return -1;
    if (column->size == 8)
        TAKE(uint64_t);
    else if (column->size == 4)
        TAKE(uint32_t);
    else if (column->size == 2)
        TAKE(uint16_t);
    else
        TAKE(uint8_t);
    column->out += (int64_t)n * column->size;
    column->left -= n;
    return 0;
}

#define CHOOSE(name, type)                                                                                      \
    VECTORISED static void name(const uint8_t *restrict bit, int n, const type *pair, type *restrict out)       \
    {                                                                                                           \
        type first = pair[0], change = (type)(pair[0] ^ pair[1]);                                               \
        for (int i = 0; i < n; i++)                                                                             \
            out[i] = first ^ (change & (type)(0 - bit[i]));                                                     \
    }
CHOOSE(choose_8, uint8_t)
CHOOSE(choose_16, uint16_t)
CHOOSE(choose_32, uint32_t)
CHOOSE(choose_64, uint64_t)

/* Write values of two by single bits. */
static void take_bits(Column *column, const uint8_t *from, int64_t n)
{
    uint8_t bit[BLOCK];
    for (int64_t a = 0; a < n; a += BLOCK) {
        int m = (int)(n - a < BLOCK ? n - a : BLOCK);
        unpack_bits(from + a / 8, m, bit);
        if (column->size == 8)
            choose_64(bit, m, (const uint64_t *)column->dictionary, (uint64_t *)column->out);
        else if (column->size == 4)
            choose_32(bit, m, (const uint32_t *)column->dictionary, (uint32_t *)column->out);
        else if (column->size == 2)
            choose_16(bit, m, (const uint16_t *)column->dictionary, (uint16_t *)column->out);
        else
            choose_8(bit, m, column->dictionary, column->out);
        column->out += (int64_t)m * column->size;
        column->left -= m;
    }
}

/* Write a run of values by their numbers, which are side by side, of so many bits each. */
static int take_packed(Column *column, Bytes from, int width, int64_t n)
{
    uint32_t number[BLOCK];
    if (width == 1 && column->entries >= 2) {
        take_bits(column, from.at, n);
        return 0;
    }
    for (int64_t a = 0; a < n; a += BLOCK) {
        int m = (int)(n - a < BLOCK ? n - a : BLOCK);
        unpack((Bytes){from.at + a * width / 8, from.end}, width, m, number);
        if (take_numbered(column, number, m) < 0)
            return -1;
    }
    return 0;
}

/* Write a run of equal values. */
static int take_equal(Column *column, uint32_t number, int64_t n)
{
    if (number >= (uint64_t)column->entries)
        return -1;
    for (int64_t i = 0; i < n; i++, column->out += column->size)
        memcpy(column->out, column->dictionary + (int64_t)number * column->size, (size_t)column->size);
    column->left -= n;
    return 0;
}

/* Whether bits are all 1. */
static int all_ones(const uint8_t *from, int64_t n)
{
    for (int64_t k = 0; k < n / 8; k++)
        if (from[k] != 255)
            return 0;
    return n % 8 == 0 || (from[n / 8] | 255 << n % 8) % 256 == 255;
}

/* Runs of equal numbers and of numbers side by side, of so many bits each. With a column, values are written by
   their numbers; without, all numbers must be single bits of 1. */
static int take_runs(Bytes from, int width, int64_t n, Column *column)
{
    int whole = (width + 7) / 8;
    while (n > 0) {
        uint64_t head;
        int64_t count, bytes;
        int packed, failed;
        if (take_varint(&from, &head) < 0 || head >> 1 > MOST_BYTES)
            return -1;
        packed = head & 1;
        count = (int64_t)(head >> 1) * (packed ? 8 : 1);
        bytes = packed ? (int64_t)(head >> 1) * width : whole;
        count = count < n ? count : n;
        if (!count || LEFT(from) < (packed ? (count * width + 7) / 8 : bytes))
            return -1;
        if (packed)
            failed = column ? take_packed(column, from, width, count) : !all_ones(from.at, count);
        else {
            uint32_t number = (uint32_t)word_of(from.at, whole);
            failed = column ? take_equal(column, number, count) : number != 1;
        }
        if (failed)
            return -1;
        from.at += bytes < LEFT(from) ? bytes : LEFT(from);
        n -= count;
    }
    return 0;
}

/* Values as they are, of the bytes of the file or of fewer, whose leading ones hold no more than the sign. */
static int take_plain(Bytes from, int stored, int size, int64_t n, uint8_t *out)
{
    if (LEFT(from) < n * stored)
        return -1;
    if (stored == size)
        memcpy(out, from.at, (size_t)(n * size));
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(out + i * size, from.at + i * stored, (size_t)size);
    return 0;
}

/* ---- pages ---- */

enum { DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_2 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, RLE_DICTIONARY = 8 };

static int take_dictionary(Column *column, Bytes page, const int64_t *header)
{
    int64_t entries = header[DICTIONARY + VALUES], encoding = header[DICTIONARY + ENCODING];
    if (column->dictionary || !column->stored || entries < 1 || entries > MOST_BYTES / 8 ||
        (encoding != PLAIN && encoding != PLAIN_DICTIONARY))
        return -1;
    column->dictionary = malloc((size_t)(entries * column->size));
    column->entries = entries;
    if (!column->dictionary)
        return -1;
    return take_plain(page, column->stored, column->size, entries, column->dictionary);
}

/* Skip what says which of n values are there, all of them; its length comes first. */
static int skip_levels(Bytes *page, int64_t n)
{
    int64_t size = LEFT(*page) < 4 ? -1 : (int64_t)word_of(page->at, 4);
    if (size < 0 || size > LEFT(*page) - 4 ||
        take_runs((Bytes){page->at + 4, page->at + 4 + size}, 1, n, NULL) < 0)
        return -1;
    page->at += 4 + size;
    return 0;
}

static int take_values(Column *column, Bytes page, int64_t encoding, int64_t n)
{
    if (column->stored && encoding == PLAIN) {
        if (take_plain(page, column->stored, column->size, n, column->out) < 0)
            return -1;
        column->out += n * column->size;
        column->left -= n;
        return 0;
    }
    if (column->stored) {
        int width = LEFT(page) > 0 ? *page.at++ : 255;
        if ((encoding != PLAIN_DICTIONARY && encoding != RLE_DICTIONARY) || !column->dictionary || width > 32)
            return -1;
        return take_runs(page, width, n, column);
    }
    if (encoding == RLE) { /* whose length comes first */
        page.at += LEFT(page) < 4 ? LEFT(page) : 4;
        return take_runs(page, 1, n, column);
    }
    if (encoding != PLAIN || LEFT(page) < (n + 7) / 8)
        return -1;
    take_bits(column, page.at, n);
    return 0;
}

/* ---- files ---- */

/* A part of a file, of which some bytes are in memory: as many as make up a page, which stay in the nearest caches. */
typedef struct {
    int number;      /* of the open file */
    int64_t at, left; /* where the bytes are that are not read yet, and how many */
    uint8_t *room;
    int64_t size;
    Bytes held;
} Part;

/* What a header may take: more bytes are read with the page before it. */
#define HEADER 512

/* Have the next n bytes in memory, or all that there are. */
static int hold(Part *part, int64_t n)
{
    int64_t kept = LEFT(part->held);
    n = n < kept + part->left ? n : kept + part->left;
    if (kept >= n)
        return 0;
    if (n > part->size) {
        uint8_t *room = malloc((size_t)n);
        if (!room)
            return -1;
        if (kept)
            memcpy(room, part->held.at, (size_t)kept);
        free(part->room);
        part->room = room;
        part->size = n;
    } else
        memmove(part->room, part->held.at, (size_t)kept);
    while (kept < n) {
        ssize_t got = pread(part->number, part->room + kept, (size_t)(n - kept), (off_t)part->at);
        if (got <= 0)
            return -1;
        kept += got;
        part->at += got;
        part->left -= got;
    }
    part->held = (Bytes){part->room, part->room + kept};
    return 0;
}

/* Read a column from its pages. */
static int take_pages(Column *column, Part *part, int squeezed, int optional)
{
    uint8_t *scratch = NULL;
    int64_t room = 0;
    int failed = 0;
    while (column->left > 0 && !failed) {
        int64_t header[ALL_FIELDS] = {0}, levels = 0, n, encoding;
        Bytes page;
        header[DATA_2 + SQUEEZED_2] = 1;
        failed = -1;
        if (hold(part, HEADER) < 0 || take_struct(&part->held, header, 0) < 0 || header[STORED] < 0 ||
            header[STORED] > MOST_BYTES || header[SIZE] < 0 || header[SIZE] > MOST_BYTES ||
            hold(part, header[STORED] + HEADER) < 0 || header[STORED] > LEFT(part->held))
            break;
        page = (Bytes){part->held.at, part->held.at + header[STORED]};
        part->held.at = page.end;
        if (header[KIND] == DATA_PAGE_2) { /* levels come first, as they are */
            levels = header[DATA_2 + LEVELS_2];
            if (header[DATA_2 + MISSING_2] || header[DATA_2 + REPEATS_2] || levels < 0 || levels > LEFT(page) ||
                levels > header[SIZE])
                break;
            page.at += levels;
        }
        if (squeezed && (header[KIND] != DATA_PAGE_2 || header[DATA_2 + SQUEEZED_2])) {
            int64_t size = header[SIZE] - levels;
            if (size > room || !scratch) {
                free(scratch);
                scratch = malloc((size_t)(size + SLACK));
                room = size;
            }
            if (!scratch || unsqueeze(page, scratch, size) < 0)
                break;
            page = (Bytes){scratch, scratch + size};
        }
        if (header[KIND] == DICTIONARY_PAGE) {
            failed = take_dictionary(column, page, header);
            continue;
        }
        n = header[KIND] == DATA_PAGE ? header[DATA + VALUES] : header[DATA_2 + VALUES_2];
        encoding = header[KIND] == DATA_PAGE ? header[DATA + ENCODING] : header[DATA_2 + ENCODING_2];
        if ((header[KIND] != DATA_PAGE && header[KIND] != DATA_PAGE_2) || n < 1 || n > column->left)
            break;
        if (header[KIND] == DATA_PAGE && optional &&
            (header[DATA + LEVEL_ENCODING] != RLE || skip_levels(&page, n) < 0))
            break;
        failed = take_values(column, page, encoding, n);
    }
    free(scratch);
    return failed;
}

/* read_pages(file, start, length, stored, squeezed, optional, out): read a column from pages of an open file, from
   `start` on; whether all of `out` was written. A value takes `stored` bytes in the file, 0 where it is a bit, which
   becomes a byte; `squeezed` is whether pages are in Snappy, `optional` whether values may be missing, which none of
   them is. */
static PyObject *read_pages(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    static uint8_t bits[] = {0, 1};
    Array out;
    Column column = {0};
    Part part = {0};
    long long numbers[6];
    int read;
    (void)self;
    if (count != 7)
        return PyErr_Format(PyExc_TypeError, "read_pages takes seven arguments");
    for (int i = 0; i < 6; i++)
        numbers[i] = PyLong_AsLongLong(args[i]);
    if (PyErr_Occurred() || take_array(args[6], &out, 1) < 0)
        return NULL;
    if (!out.type || !strchr("?bBhHiIqQfd", out.type) || !PyBuffer_IsContiguous(&out.view, 'C') ||
        !is_aligned(&out) || (numbers[3] != 0 && numbers[3] != 4 && numbers[3] != 8) ||
        out.view.itemsize > (numbers[3] ? numbers[3] : 1)) {
        give_arrays(&out, 1);
        return PyErr_Format(PyExc_TypeError, "read_pages writes numbers that are not larger than they are stored");
    }
    if (numbers[0] < 0 || numbers[0] > INT_MAX || numbers[1] < 0 || numbers[2] < 0) {
        give_arrays(&out, 1);
        return PyErr_Format(PyExc_ValueError, "there is no such part of a file");
    }
    Py_BEGIN_ALLOW_THREADS
    part.number = (int)numbers[0];
    part.at = numbers[1];
    part.left = numbers[2];
    column.out = out.view.buf;
    column.left = out.view.len / out.view.itemsize;
    column.size = (int)out.view.itemsize;
    column.stored = (int)numbers[3];
    if (!column.stored) {
        column.dictionary = bits;
        column.entries = 2;
    }
    read = take_pages(&column, &part, numbers[4] != 0, numbers[5] != 0) == 0;
    free(part.room);
    if (column.stored)
        free(column.dictionary);
    Py_END_ALLOW_THREADS
    give_arrays(&out, 1);
    return PyBool_FromLong(read);
}

PyMethodDef page_methods[] = {
    {"read_pages", FASTCALL(read_pages), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
#else /* where a file is read in other ways, all is left to others */
PyMethodDef page_methods[] = {
    {NULL, NULL, 0, NULL},
};
#endif

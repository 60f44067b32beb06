/* What every page is asked before it is parsed, in one pass: how many "<" it holds, and how many start tags of
 * formatting elements. `formatting.py` has the same in Python, for where nothing is compiled; it takes three times as
 * long. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum {
    LONGEST = 6,
    /* a bit for each letter that a name begins with: b c e f i n s t u */
    FIRST = 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 9 | 1 << 14 | 1 << 19 | 1 << 20 | 1 << 21,
};

/* the names of `formatting.NAMES` by their length, one after another */
static const char *const NAMES[] = {"", "bisu", "emtt", "big", "codefontnobr", "small", "strikestrong"};

static int
is_name(const char *name, int length)
{
    for (const char *known = NAMES[length]; *known; known += length) {
        if (!memcmp(known, name, length)) {
            return 1;
        }
    }
    return 0;
}

/* For text of one, two and four bytes a letter: `is_start` looks at what follows a "<", `scan` goes through all of it.
 * A word of eight bytes holds several letters; `hits` is 0 unless one of them is "<". */
#define FOR_LETTERS_OF(TYPE)                                                                           \
    static int is_start_##TYPE(const TYPE *at, const TYPE *end)                                        \
    {                                                                                                  \
        char name[LONGEST];                                                                            \
        int length = 0;                                                                                \
        if (at == end || *at > 'u' || !(FIRST >> (*at & 31) & 1)) {                                    \
            return 0;                                                                                  \
        }                                                                                              \
        for (; at < end && length < LONGEST; at++) {                                                   \
            TYPE letter = *at | 32;                                                                    \
            if (*at < 'A' || letter < 'a' || letter > 'z') {                                           \
                break;                                                                                 \
            }                                                                                          \
            name[length++] = (char)letter;                                                             \
        }                                                                                              \
        return at < end && (*at == '>' || *at == ' ' || *at == '/' || (*at >= 9 && *at <= 13))         \
               && is_name(name, length);                                                               \
    }                                                                                                  \
                                                                                                       \
    static void scan_##TYPE(const TYPE *text, Py_ssize_t size, Py_ssize_t *tags, Py_ssize_t *starts)   \
    {                                                                                                  \
        enum { LETTERS = 8 / sizeof(TYPE), BITS = 8 * sizeof(TYPE) };                                  \
        const uint64_t ones = UINT64_MAX / (UINT64_MAX >> (64 - BITS));                                \
        const TYPE *at = text, *const end = text + size;                                               \
        Py_ssize_t tag = 0, start = 0;                                                                 \
        for (; end - at >= LETTERS; at += LETTERS) {                                                   \
            uint64_t word, hits;                                                                       \
            memcpy(&word, at, sizeof word);                                                            \
            word ^= ones * '<';                                                                        \
            hits = (word - ones) & ~word & ones << (BITS - 1);                                         \
            if (!hits) {                                                                               \
                continue;                                                                              \
            }                                                                                          \
            for (int place = 0; place < LETTERS; place++) {                                            \
                if (at[place] == '<') {                                                                \
                    tag++;                                                                             \
                    start += is_start_##TYPE(at + place + 1, end);                                     \
                }                                                                                      \
            }                                                                                          \
        }                                                                                              \
        for (; at < end; at++) {                                                                       \
            if (*at == '<') {                                                                          \
                tag++;                                                                                 \
                start += is_start_##TYPE(at + 1, end);                                                 \
            }                                                                                          \
        }                                                                                              \
        *tags = tag;                                                                                   \
        *starts = start;                                                                               \
    }

FOR_LETTERS_OF(Py_UCS1)
FOR_LETTERS_OF(Py_UCS2)
FOR_LETTERS_OF(Py_UCS4)

static PyObject *
count_tags(PyObject *Py_UNUSED(module), PyObject *page)
{
    Py_ssize_t tags = 0, starts = 0;
    if (PyBytes_Check(page)) {
        scan_Py_UCS1((const Py_UCS1 *)PyBytes_AS_STRING(page), PyBytes_GET_SIZE(page), &tags, &starts);
    }
    else if (PyUnicode_Check(page)) {
        const void *letters = PyUnicode_DATA(page);
        Py_ssize_t size = PyUnicode_GET_LENGTH(page);
        int kind = PyUnicode_KIND(page);
        if (kind == PyUnicode_1BYTE_KIND) {
            scan_Py_UCS1(letters, size, &tags, &starts);
        }
        else if (kind == PyUnicode_2BYTE_KIND) {
            scan_Py_UCS2(letters, size, &tags, &starts);
        }
        else {
            scan_Py_UCS4(letters, size, &tags, &starts);
        }
    }
    else {
        return PyErr_Format(PyExc_TypeError, "a page is str or bytes, not %.100s", Py_TYPE(page)->tp_name);
    }
    return Py_BuildValue("nn", tags, starts);
}

static PyMethodDef METHODS[] = {
    {"count_tags", count_tags, METH_O, "Return how many '<' a page holds, and how many formatting elements begin in it."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "_tags", .m_methods = METHODS};

PyMODINIT_FUNC
PyInit__tags(void)
{
    return PyModuleDef_Init(&MODULE);
}

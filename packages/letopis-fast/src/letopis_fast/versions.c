/* Versions of solid frames: the same as letopis.store.solid.frame_format, where no token is an object.
 *
 * The format is written down in docs/internals/solid-frames.md. Whatever does not fit gives None, and the twin in
 * Python tells what is wrong; so nothing here needs words. Input may be hostile: every read is checked against the end
 * of its text, every count against what there is, and memory is bounded by the number of tokens.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 185, LONG = 241, BASE = 249, NO_DIGIT = 255, NEWEST_REFERENCE = 8 };
#define LONG_FROM (SHORT + (int64_t)(LONG - SHORT) * BASE)
#define LARGEST ((int64_t)1 << 40)

/* Where a token begins, and how many bytes it has. */
typedef struct {
    const unsigned char *text;
    uint32_t size;
} Token;

typedef struct {
    Token *items;
    Py_ssize_t count, room;
} Tokens;

/* Bytes from `at` to `end`; a read that fails leaves `broken` set. */
typedef struct {
    const unsigned char *at, *end;
    int broken;
} Text;

static unsigned char rank_of[256];

static void fill_ranks(void)
{
    static const unsigned char reserved[] = {0, '\n', '"', '&', '/', '>', '?'};
    int next = 0;
    for (int value = 0; value < 256; value++)
        rank_of[value] = memchr(reserved, value, sizeof reserved) ? NO_DIGIT : (unsigned char)next++;
}

static int64_t broken(Text *text)
{
    text->broken = 1;
    return 0;
}

static int64_t read_number(Text *text)
{
    if (text->at >= text->end)
        return broken(text);
    int rank = rank_of[*text->at++];
    if (rank < SHORT)
        return rank;
    if (rank == NO_DIGIT)
        return broken(text);
    int more = rank < LONG ? 1 : rank - LONG + 1;
    if (text->end - text->at < more)
        return broken(text);
    int64_t value = rank < LONG ? rank - SHORT : 0;
    while (more--) {
        int digit = rank_of[*text->at++];
        if (digit >= BASE || value > LARGEST)
            return broken(text);
        value = value * BASE + digit;
    }
    return value + (rank < LONG ? SHORT : LONG_FROM);
}

static int64_t read_signed(Text *text)
{
    int64_t value = read_number(text);
    return value & 1 ? -((value + 1) >> 1) : value >> 1;
}

/* Makes room for more tokens, at most `most` of them in all. */
static int reserve(Tokens *tokens, int64_t more, Py_ssize_t most)
{
    if (more > most - tokens->count)
        return 0;
    Py_ssize_t needed = tokens->count + (Py_ssize_t)more;
    if (needed <= tokens->room)
        return 1;
    Py_ssize_t room = tokens->room * 2 > needed ? tokens->room * 2 : needed + 1024;
    Token *items = realloc(tokens->items, (size_t)room * sizeof(Token));
    if (items == NULL)
        return 0;
    tokens->items = items;
    tokens->room = room;
    return 1;
}

/* Takes `count` tokens off the text; fewer are no fit. */
static int take_tokens(Tokens *tokens, Text *text, int64_t count, const unsigned char *is_end, Py_ssize_t most)
{
    if (count > text->end - text->at || !reserve(tokens, count, most))
        return 0;
    while (count--) {
        const unsigned char *begin = text->at;
        while (text->at < text->end && !is_end[*text->at])
            text->at++;
        if (text->at >= text->end)
            return 0;
        text->at++;
        tokens->items[tokens->count++] = (Token){begin, (uint32_t)(text->at - begin)};
    }
    return 1;
}

static int copy_tokens(Tokens *to, const Tokens *from, int64_t begin, int64_t count, Py_ssize_t most)
{
    if (count == 0)
        return 1;
    if (!reserve(to, count, most))
        return 0;
    memcpy(to->items + to->count, from->items + begin, (size_t)count * sizeof(Token));
    to->count += (Py_ssize_t)count;
    return 1;
}

/* The version that the operations of a script make of its base. */
static int apply(Tokens *made, const Tokens *base, Text *script, const unsigned char *is_end, Py_ssize_t most)
{
    int64_t cursor = 0;
    made->count = 0;
    while (script->at < script->end) {
        int64_t copied = read_number(script), count = read_number(script), seek = read_signed(script);
        if (script->broken || copied > base->count - cursor || !copy_tokens(made, base, cursor, copied, most))
            return 0;
        if (count && !take_tokens(made, script, count, is_end, most))
            return 0;
        cursor += copied + count + seek;
        if (cursor < 0 || cursor > base->count)
            return 0;
    }
    return copy_tokens(made, base, cursor, base->count - cursor, most);
}

/* The tokens of the newest form, which ends with an end. */
static int cut(Tokens *tokens, Text text, const unsigned char *is_end, Py_ssize_t most)
{
    while (text.at < text.end)
        if (!take_tokens(tokens, &text, 1, is_end, most))
            return 0;
    return 1;
}

/* The scripts from the wanted version back to the newest, each without its base: how many, 0 where they do not fit. */
static Py_ssize_t chain_of(Text *chain, const Text *scripts, Py_ssize_t index)
{
    Py_ssize_t length = 0;
    while (index) {
        Text script = scripts[index - 1];
        int64_t named = read_number(&script);
        if (script.broken || (named != NEWEST_REFERENCE && named > index - 1 + (named > NEWEST_REFERENCE)))
            return 0;
        index = named == NEWEST_REFERENCE ? 0 : index - 1 - (Py_ssize_t)named + (named > NEWEST_REFERENCE);
        chain[length++] = script;
    }
    return length;
}

/* Where the first `count` scripts stand, each up to its NUL. */
static int split(Text *scripts, Py_ssize_t count, const unsigned char *at, const unsigned char *end)
{
    for (Py_ssize_t number = 0; number < count; number++) {
        const unsigned char *stop = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
        if (stop == NULL)
            return 0;
        scripts[number] = (Text){at, stop, 0};
        at = stop + 1;
    }
    return 1;
}

/* The text of all tokens without the closing end; None where it is too long. */
static PyObject *joined(const Tokens *tokens, int64_t most)
{
    int64_t size = 0;
    for (Py_ssize_t at = 0; at < tokens->count; at++)
        size += tokens->items[at].size;
    if (size > most)
        Py_RETURN_NONE;
    if (size == 0)
        return PyBytes_FromStringAndSize(NULL, 0);
    PyObject *text = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size - 1);
    if (text == NULL)
        return NULL;
    char *to = PyBytes_AsString(text);
    for (Py_ssize_t at = 0; at < tokens->count; at++) {
        Token token = tokens->items[at];
        uint32_t taken = token.size;
        /* What follows without a gap is copied in one go: most of a version stands in its base like that. */
        while (at + 1 < tokens->count && tokens->items[at + 1].text == token.text + taken
               && taken < UINT32_MAX - tokens->items[at + 1].size)
            taken += tokens->items[++at].size;
        if (at + 1 == tokens->count)
            taken--;
        memcpy(to, token.text, taken);
        to += taken;
    }
    return text;
}

static PyObject *unfolded(Text form, const Text *chain, Py_ssize_t length, const unsigned char *is_end,
                          Py_ssize_t most_tokens, Py_ssize_t most_bytes)
{
    Tokens base = {NULL, 0, 0}, made = {NULL, 0, 0};
    PyObject *text = NULL;
    int fits = cut(&base, form, is_end, most_tokens);
    while (fits && length--) {
        Text script = chain[length];
        fits = apply(&made, &base, &script, is_end, most_tokens);
        Tokens before = base;
        base = made;
        made = before;
    }
    if (fits)
        text = joined(&base, most_bytes);
    free(base.items);
    free(made.items);
    if (text == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return text;
}

static PyObject *unfold(PyObject *module, PyObject *args)
{
    const unsigned char *newest, *scripts, *ends;
    Py_ssize_t newest_size, scripts_size, ends_size, index, most_tokens, most_bytes;
    unsigned char is_end[256] = {0};
    (void)module;
    if (!PyArg_ParseTuple(args, "y#y#ny#nn", &newest, &newest_size, &scripts, &scripts_size, &index, &ends, &ends_size,
                          &most_tokens, &most_bytes))
        return NULL;
    if (index < 1 || index > scripts_size || newest_size > most_bytes || scripts_size > most_bytes
        || most_bytes >= INT32_MAX)
        Py_RETURN_NONE;
    for (Py_ssize_t at = 0; at < ends_size; at++)
        is_end[ends[at]] = 1;
    Text *each = malloc(2 * (size_t)index * sizeof(Text));
    unsigned char *form = malloc((size_t)newest_size + 1);
    PyObject *text = NULL;
    if (each != NULL && form != NULL && split(each, index, scripts, scripts + scripts_size)) {
        memcpy(form, newest, (size_t)newest_size);
        form[newest_size] = '\n';
        Text whole = {form, form + newest_size + 1, 0};
        Py_ssize_t length = chain_of(each + index, each, index);
        if (length)
            text = unfolded(whole, each + index, length, is_end, most_tokens, most_bytes);
    }
    free(each);
    free(form);
    if (text == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return text;
}

static PyMethodDef methods[] = {
    {"unfold", unfold, METH_VARARGS, "The form of an old version of a solid frame; None where it does not fit."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "letopis_fast.versions", "Versions of solid frames, in C.", 0, methods, NULL, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit_versions(void)
{
    fill_ranks();
    return PyModule_Create(&module);
}

/* Heads of records and of answers, as nearly all of them are written: the same as in letopis.exchange.record_stream and
 * letopis.exchange.warc_records.
 *
 * Lines end with a carriage return and a line feed, hold ASCII and go on in no other line. Whatever is written otherwise
 * gives None, and the twin in Python reads it. Input may be hostile: every read is checked against the end of the bytes.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

enum { MOST_NAME = 128, MOST_DIGITS = 18 };

/* Bytes from `at` to `end`. */
typedef struct {
    const char *at, *end;
} Text;

/* What was read of a head: the fields in order, the first value of each by its name in lower case (NULL: not wanted),
 * the length that it tells (-1: none, or no number), and where its last line ends. */
typedef struct {
    PyObject *fields, *named;
    long long length;
    const char *end;
} Head;

static int is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* What Python takes for a blank in ASCII. */
static int is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || (byte >= '\x1c' && byte <= '\x1f');
}

static Text trimmed(Text text)
{
    while (text.at < text.end && is_blank(*text.at))
        text.at++;
    while (text.at < text.end && is_blank(text.end[-1]))
        text.end--;
    return text;
}

static PyObject *string_of(Text text)
{
    return PyUnicode_FromStringAndSize(text.at, text.end - text.at);
}

/* The line at `at` without its break; nothing where that is not usual, or where there is other than ASCII. */
static Text line_at(const char *at, const char *end)
{
    const Text none = {NULL, NULL};
    const char *feed = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (feed == NULL || feed == at || feed[-1] != '\r')
        return none;
    unsigned char seen = 0;
    for (const char *byte = at; byte < feed; byte++)
        seen |= (unsigned char)*byte;
    return seen < 0x80 ? (Text){at, feed - 1} : none;
}

static long long number_of(Text text)
{
    long long number = 0;
    if (text.at == text.end || text.end - text.at > MOST_DIGITS)
        return -1;
    for (; text.at < text.end; text.at++) {
        if (!is_digit(*text.at))
            return -1;
        number = 10 * number + (*text.at - '0');
    }
    return number;
}

/* Notes a value under its name in lower case, unless there is one; 1 where it did, 0 where the name is too long. */
static int note(Head *head, Text name, Text value, PyObject *text)
{
    char low[MOST_NAME];
    Py_ssize_t size = name.end - name.at;
    if (size > MOST_NAME)
        return 0;
    for (Py_ssize_t at = 0; at < size; at++)
        low[at] = name.at[at] >= 'A' && name.at[at] <= 'Z' ? (char)(name.at[at] + 32) : name.at[at];
    PyObject *key = PyUnicode_FromStringAndSize(low, size);
    if (key == NULL)
        return -1;
    int known = PyDict_Contains(head->named, key);
    int done = known < 0 ? -1 : 1;
    if (known == 0) {
        if (size == 14 && memcmp(low, "content-length", 14) == 0)
            head->length = number_of(value);
        done = PyDict_SetItem(head->named, key, text) < 0 ? -1 : 1;
    }
    Py_DECREF(key);
    return done;
}

/* Takes the field of a line, if it is one; 1, or 0 where it is unusual, or -1 with an error. */
static int take_field(Head *head, Text line)
{
    const char *colon = memchr(line.at, ':', (size_t)(line.end - line.at));
    if (colon == NULL)
        return 1;
    Text name = trimmed((Text){line.at, colon}), value = trimmed((Text){colon + 1, line.end});
    PyObject *first = string_of(name), *second = string_of(value);
    PyObject *pair = first != NULL && second != NULL ? PyTuple_Pack(2, first, second) : NULL;
    int done = pair == NULL || PyList_Append(head->fields, pair) < 0 ? -1 : 1;
    if (done > 0 && head->named != NULL)
        done = note(head, name, value, second);
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_XDECREF(pair);
    return done;
}

/* Takes the lines behind the first one up to the blank one; 1, or 0 where one is unusual, or -1 with an error. */
static int take_fields(Head *head, Text line, const char *end)
{
    for (;;) {
        const char *next = line.end + 2;
        if (end - next >= 2 && next[0] == '\r' && next[1] == '\n') {
            head->end = line.end;
            return 1;
        }
        line = line_at(next, end);
        if (line.at == line.end || *line.at == ' ' || *line.at == '\t' || *line.at == '\r')
            return 0;
        int done = take_field(head, line);
        if (done < 1)
            return done;
    }
}

/* The fields as a tuple; NULL where there are none to answer with. */
static PyObject *fields_of(Head *head, Text line, const char *end)
{
    PyObject *fields = NULL;
    head->fields = PyList_New(0);
    if (head->fields != NULL && take_fields(head, line, end) > 0)
        fields = PyList_AsTuple(head->fields);
    Py_XDECREF(head->fields);
    return fields;
}

static PyObject *none_unless_error(PyObject *made)
{
    if (made == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return made;
}

/* Whether a line is WARC/, digits, a dot and digits. */
static int is_first_of_record(Text line)
{
    if (line.end - line.at < 8 || memcmp(line.at, "WARC/", 5) != 0)
        return 0;
    const char *at = line.at + 5;
    while (at < line.end && is_digit(*at))
        at++;
    if (at == line.at + 5 || at == line.end || *at++ != '.' || at == line.end)
        return 0;
    while (at < line.end && is_digit(*at))
        at++;
    return at == line.end;
}

static PyObject *record_head(PyObject *module, PyObject *args)
{
    const char *data;
    Py_ssize_t size, from;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#n", &data, &size, &from))
        return NULL;
    if (from < 0 || from > size)
        Py_RETURN_NONE;
    const char *at = data + from, *end = data + size;
    while (at < end && (*at == '\r' || *at == '\n'))
        at++;
    Text line = line_at(at, end);
    if ((at > data && at[-1] != '\n') || !is_first_of_record(line))
        Py_RETURN_NONE;
    Head head = {NULL, PyDict_New(), -1, NULL};
    PyObject *made = NULL, *fields = head.named != NULL ? fields_of(&head, line, end) : NULL;
    if (fields != NULL && head.length >= 0)
        made = Py_BuildValue("(s#OOy#nL)", line.at, line.end - line.at, fields, head.named, at, head.end + 1 - at,
                             (Py_ssize_t)(head.end + 4 - data), head.length);
    Py_XDECREF(fields);
    Py_XDECREF(head.named);
    return none_unless_error(made);
}

/* The three digits behind the first word of a line; -1 where there is something else. */
static int status_of(Text line)
{
    while (line.at < line.end && !is_blank(*line.at))
        line.at++;
    line = trimmed(line);
    if (line.end - line.at < 3 || (line.end - line.at > 3 && !is_blank(line.at[3])))
        return -1;
    return (int)number_of((Text){line.at, line.at + 3});
}

static PyObject *answer_head(PyObject *module, PyObject *args)
{
    const char *block;
    Py_ssize_t size, most;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#n", &block, &size, &most))
        return NULL;
    const char *end = block + (most < 0 ? 0 : size < most ? size : most);
    Text line = line_at(block, end);
    if (line.end - line.at < 5 || memcmp(line.at, "HTTP/", 5) != 0 || status_of(line) < 0)
        Py_RETURN_NONE;
    Head head = {NULL, NULL, -1, NULL};
    PyObject *made = NULL, *fields = fields_of(&head, line, end);
    if (fields != NULL)
        made = Py_BuildValue("(iOn)", status_of(line), fields, (Py_ssize_t)(head.end + 4 - block));
    Py_XDECREF(fields);
    return none_unless_error(made);
}

static PyMethodDef methods[] = {
    {"record_head", record_head, METH_VARARGS, "The head of the next record; None where it is unusual."},
    {"answer_head", answer_head, METH_VARARGS, "The head of an answer; None where it is unusual."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "letopis_fast.heads", "Heads of records and of answers, in C.", 0, methods, NULL, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit_heads(void)
{
    return PyModule_Create(&module);
}

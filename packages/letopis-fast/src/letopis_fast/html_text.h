/* Text of a page: buffers, and character references as the HTML standard has them decoded. */

#ifndef LETOPIS_HTML_TEXT_H
#define LETOPIS_HTML_TEXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char byte;

/* Bytes of the page. */
typedef struct {
    const byte *at;
    Py_ssize_t size;
} Slice;

typedef struct {
    byte *bytes;
    Py_ssize_t size, room;
} Buffer;

/* html.entities.html5, where this module was loaded: `amp;` and `amp` to `&`. */
static PyObject *named_references;
enum { LONGEST_NAME = 32, PART = 0x1E };

static int is_blank(byte c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

static int is_letter(byte c)
{
    return (byte)((c | 32) - 'a') < 26;
}

static int is_digit(byte c)
{
    return (byte)(c - '0') < 10;
}

static byte lower(byte c)
{
    return (byte)(c - 'A') < 26 ? c | 32 : c;
}

static int is_all_blank(Slice text)
{
    for (Py_ssize_t at = 0; at < text.size; at++)
        if (!is_blank(text.at[at]))
            return 0;
    return 1;
}

static int has_byte(Slice text, byte wanted)
{
    return text.size && memchr(text.at, wanted, (size_t)text.size) != NULL;
}

/* Whether a text has a word, which is in lower case, in any case. Signs are searched first: they are few. */
static int has_word(Slice text, const char *word)
{
    Py_ssize_t size = (Py_ssize_t)strlen(word), sign = 0;
    while (sign < size && is_letter((byte)word[sign]))
        sign++;
    const byte *end = text.at + text.size;
    for (const byte *at = text.at; end - at >= size; at++) {
        if (sign < size && (at = memchr(at + sign, word[sign], (size_t)(end - at - size + 1))) == NULL)
            return 0;
        at -= sign < size ? sign : 0;
        Py_ssize_t same = 0;
        while (same < size && lower(at[same]) == (byte)word[same])
            same++;
        if (same == size)
            return 1;
    }
    return 0;
}

static int append(Buffer *to, const void *bytes, Py_ssize_t size)
{
    if (size > to->room - to->size) {
        Py_ssize_t room = 2 * to->room + size + 256;
        byte *grown = realloc(to->bytes, (size_t)room);
        if (grown == NULL)
            return 0;
        to->bytes = grown;
        to->room = room;
    }
    if (size)
        memcpy(to->bytes + to->size, bytes, (size_t)size);
    to->size += size;
    return 1;
}

static int append_character(Buffer *to, uint32_t code)
{
    byte text[4];
    Py_ssize_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const byte starts[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (Py_ssize_t at = size - 1; at > 0; at--, code >>= 6)
        text[at] = (byte)(0x80 | (code & 0x3F));
    text[0] = (byte)(starts[size] | code);
    return append(to, text, size);
}

/* The character that a number means: 128 to 159 are taken for windows-1252, impossible ones are replaced. */
static uint32_t character_of(uint32_t number)
{
    static const uint16_t windows[32] = {
        0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D,
        0, 0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,
        0x017E, 0x0178,
    };
    if (number == 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000))
        return 0xFFFD;
    if (number >= 0x80 && number < 0xA0 && windows[number - 0x80])
        return windows[number - 0x80];
    return number;
}

/* Decodes `&#8211;`; how many bytes it took, 0 where it is none. */
static Py_ssize_t take_number(Buffer *to, Slice text)
{
    Py_ssize_t at = 2;
    int is_hex = at < text.size && lower(text.at[at]) == 'x';
    uint32_t number = 0;
    Py_ssize_t first = at += is_hex;
    for (; at < text.size; at++) {
        byte c = lower(text.at[at]);
        if (!is_digit(c) && !(is_hex && c >= 'a' && c <= 'f'))
            break;
        if (number <= 0x10FFFF)
            number = number * (is_hex ? 16 : 10) + (uint32_t)(is_digit(c) ? c - '0' : c - 'a' + 10);
    }
    if (at == first)
        return 0;
    if (!append_character(to, character_of(number)))
        return -1;
    return at + (at < text.size && text.at[at] == ';');
}

/* Appends what a name with so many bytes refers to: 1 if it is one, 0 if not, -1 on a fault. */
static int append_named(Buffer *to, const byte *name, Py_ssize_t size)
{
    char key[LONGEST_NAME + 2];
    memcpy(key, name, (size_t)size);
    key[size] = 0;
    PyObject *found = PyDict_GetItemString(named_references, key);
    if (found == NULL)
        return 0;
    Py_ssize_t length;
    const char *meant = PyUnicode_AsUTF8AndSize(found, &length);
    return meant != NULL && append(to, meant, length) ? 1 : -1;
}

/* Decodes `&nbsp;`, or the longest name that may lack its semicolon; how many bytes it took, 0 where there is none. */
static Py_ssize_t take_name(Buffer *to, Slice text, int in_attribute)
{
    Py_ssize_t size = 0;
    const byte *name = text.at + 1;
    while (size < text.size - 1 && size < LONGEST_NAME && (is_letter(name[size]) || is_digit(name[size])))
        size++;
    int found = 0;
    if (size < text.size - 1 && name[size] == ';' && (found = append_named(to, name, size + 1)) != 0)
        return found < 0 ? found : size + 2;
    if (in_attribute && size < text.size - 1 && name[size] == '=')
        return 0;
    for (Py_ssize_t least = in_attribute ? size : 2; size >= least && size >= 2; size--)
        if ((found = append_named(to, name, size)) != 0)
            return found < 0 ? found : size + 1;
    return 0;
}

/* Appends a text as the parser reads it: references decoded, line ends made one. */
static int append_read(Buffer *to, Slice text, int has_references, int in_attribute)
{
    const byte *end = text.at + text.size;
    while (text.at < end) {
        const byte *stop = text.at;
        while (stop < end && *stop != '\r' && !(*stop == '&' && has_references))
            stop++;
        if (!append(to, text.at, stop - text.at))
            return 0;
        if (stop == end)
            break;
        Py_ssize_t taken = 1;
        if (*stop == '\r') {
            taken += stop + 1 < end && stop[1] == '\n';
            if (!append(to, "\n", 1))
                return 0;
        } else {
            Slice reference = {stop, end - stop};
            taken = reference.size < 2 ? 0
                : stop[1] == '#'       ? take_number(to, reference)
                                       : take_name(to, reference, in_attribute);
            if (taken < 0 || (taken == 0 && !append(to, "&", 1)))
                return 0;
            taken += taken == 0;
        }
        text.at = stop + taken;
    }
    return 1;
}

/* How many bytes of white space a text begins with, as Python sees it: more kinds of it than HTML knows. */
static Py_ssize_t blank_at(const byte *at, const byte *end)
{
    if (*at <= ' ')
        return *at == ' ' || (*at >= 9 && *at <= 13) || (*at >= 28 && *at <= 31);
    if (*at == 0xC2 && end - at > 1)
        return at[1] == 0x85 || at[1] == 0xA0 ? 2 : 0;
    if (*at < 0xE1 || *at > 0xE3 || end - at < 3)
        return 0;
    uint32_t code = (uint32_t)(*at & 15) << 12 | (uint32_t)(at[1] & 63) << 6 | (at[2] & 63);
    int is_space = (code >= 0x2000 && code <= 0x200A) || code == 0x1680 || code == 0x202F || code == 0x205F;
    return is_space || code == 0x2028 || code == 0x2029 || code == 0x3000 ? 3 : 0;
}

/* Makes one blank of each run of white space, none at the ends, nor beside a mark that parts texts. */
static void fold(Buffer *text, int has_parts)
{
    const byte *at = text->bytes, *end = text->bytes + text->size;
    byte *to = text->bytes;
    int waiting = 0;
    while (at < end) {
        Py_ssize_t blank = blank_at(at, end);
        if (blank == 0) {
            if (waiting && to > text->bytes && !(has_parts && to[-1] == PART))
                *to++ = ' ';
            waiting = 0;
            *to++ = *at++;
        } else if (has_parts && *at == PART) {
            waiting = 0;
            *to++ = *at++;
        } else {
            waiting = 1;
            at += blank;
        }
    }
    text->size = to - text->bytes;
}

static PyObject *string_of(const byte *bytes, Py_ssize_t size)
{
    return PyUnicode_DecodeUTF8((const char *)bytes, size, "strict");
}

/* A text as the parser reads it, as a string; NULL where it is not UTF-8. */
static PyObject *string_read(Slice text, int has_references, int in_attribute)
{
    if (!has_byte(text, '\r') && !(has_references && has_byte(text, '&')))
        return string_of(text.at, text.size);
    Buffer read = {NULL, 0, 0};
    PyObject *string = append_read(&read, text, has_references, in_attribute) ? string_of(read.bytes, read.size) : NULL;
    free(read.bytes);
    return string;
}

#endif

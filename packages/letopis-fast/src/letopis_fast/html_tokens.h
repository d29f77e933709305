/* The tags, the declarations and the text between them, as the HTML standard cuts a page. */

#ifndef LETOPIS_HTML_TOKENS_H
#define LETOPIS_HTML_TOKENS_H

#include "html_names.h"
#include "html_text.h"

enum { MOST_OPEN = 60, LONGEST_LINK = 4096, NAME_ROOM = 16 };
enum { NOWHERE = -1, NO_SLOT = -1 };
enum { NO_PIECE, TEXT_PIECE, BREAK_PIECE, PART_PIECE };
enum { JOINS_NOTHING, JOINS_BLANK, JOINS_TEXT };
/* How far the page is: before its root, in the head, in a <noscript> there, behind the head, in the body. */
enum { START, IN_HEAD, IN_HEAD_NOSCRIPT, AFTER_HEAD, IN_BODY };

/* An element whose end has not been seen. */
typedef struct {
    Slice name;
    int element, number, holder, kind, block;
    Py_ssize_t frame; /* its place among the frames */
    char has_children, is_hidden, in_content, is_foreign;
} Open;

typedef struct {
    Slice value;
    char has_value;
} Attribute;

typedef struct {
    Slice name;
    int element, closes_itself;
    uint32_t present;
    Attribute attributes[ATTRIBUTES];
} Tag;

typedef struct {
    const byte *at, *end;
    int full, phase, number, depth, form, in_standards_mode;
    uint32_t root_attributes;
    Open open[MOST_OPEN];
    /* The pieces of text since the last block ended, and what holds them. */
    Buffer text;
    int last_piece, holder, kind, blank_before;
    int joins; /* whether the next text is part of the text before it: JOINS_NOTHING, JOINS_BLANK or JOINS_TEXT */
    /* The link that is open. */
    Buffer link;
    int link_at, link_block;
    Py_ssize_t link_slot, link_size;
    PyObject *base, *events, *frames, *styles, *backgrounds;
} Reader;

static byte first_element[27], first_attribute[128], next_attribute[ATTRIBUTES];
static PyObject *element_strings[ELEMENT_COUNT], *attribute_strings[ATTRIBUTES], *kind_strings[KINDS], *no_text;

static uint32_t rules_of(const Open *open)
{
    return elements[open->element].rules;
}

static Open *innermost(Reader *r)
{
    return &r->open[r->depth - 1];
}

static int same_name(Slice name, const char *known, Py_ssize_t size)
{
    if (name.size != size)
        return 0;
    for (Py_ssize_t at = 0; at < size; at++)
        if (lower(name.at[at]) != (byte)known[at])
            return 0;
    return 1;
}

static int same_names(Slice one, Slice other)
{
    if (one.size != other.size)
        return 0;
    for (Py_ssize_t at = 0; at < one.size; at++)
        if (lower(one.at[at]) != lower(other.at[at]))
            return 0;
    return 1;
}

static int element_of(Slice name)
{
    int letter = lower(name.at[0]) - 'a';
    for (int at = first_element[letter]; at < first_element[letter + 1]; at++)
        if (same_name(name, elements[at].name, elements[at].size))
            return at;
    return UNKNOWN;
}

static void take_attribute(Tag *tag, Slice name, Slice value, int has_value)
{
    for (int at = first_attribute[lower(name.at[0]) & 127]; at < ATTRIBUTES; at = next_attribute[at])
        if (same_name(name, attribute_names[at], (Py_ssize_t)strlen(attribute_names[at]))) {
            if (!(tag->present & BIT(at))) /* of several the first counts */
                tag->attributes[at] = (Attribute){value, (char)has_value};
            tag->present |= BIT(at);
            return;
        }
}

/* Reads the value behind an equals sign; 0 where it is missing or goes on to the end of the page. */
static int read_value(Reader *r, Slice *value)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
    if (r->at == r->end || *r->at == '>')
        return 0;
    const byte *begin = r->at, *stop;
    if (*begin == '"' || *begin == '\'') {
        begin++;
        stop = memchr(begin, begin[-1], (size_t)(r->end - begin));
        if (stop == NULL)
            return 0;
        r->at = stop + 1;
    } else {
        for (stop = begin; stop < r->end && !is_blank(*stop) && *stop != '>'; stop++)
            ;
        r->at = stop;
    }
    *value = (Slice){begin, stop - begin};
    return 1;
}

/* Reads a tag from its name on to behind its end; 0 where it does not end. */
static int read_tag(Reader *r, Tag *tag)
{
    const byte *begin = r->at;
    while (r->at < r->end && !is_blank(*r->at) && *r->at != '/' && *r->at != '>')
        r->at++;
    tag->name = (Slice){begin, r->at - begin};
    tag->element = element_of(tag->name);
    tag->present = 0;
    for (;;) {
        for (tag->closes_itself = 0; r->at < r->end && (is_blank(*r->at) || *r->at == '/'); r->at++)
            tag->closes_itself = *r->at == '/';
        if (r->at >= r->end)
            return 0;
        if (*r->at == '>') {
            r->at++;
            return 1;
        }
        const byte *name = r->at++;
        while (r->at < r->end && !is_blank(*r->at) && *r->at != '/' && *r->at != '>' && *r->at != '=')
            r->at++;
        Slice found = {name, r->at - name}, value = {name, 0};
        while (r->at < r->end && is_blank(*r->at))
            r->at++;
        int has_value = r->at < r->end && *r->at == '=';
        if (has_value && (r->at++, !read_value(r, &value)))
            return 0;
        take_attribute(tag, found, value, has_value);
    }
}

/* Passes what begins with `<!` or `<?`; 0 where it does not end or stands in a drawing. */
static int pass_declaration(Reader *r)
{
    const byte *at = r->at + 1;
    if (*r->at == '!' && r->end - at >= 2 && at[0] == '-' && at[1] == '-') {
        at += 2;
        if (r->end - at >= 2 && (*at == '>' || (*at == '-' && at[1] == '>')))
            return 0;
        for (; r->end - at >= 3; at++) {
            at = memchr(at, '-', (size_t)(r->end - at) - 2);
            if (at == NULL)
                return 0;
            if (at[1] == '-' && (at[2] == '>' || (at[2] == '!' && r->end - at > 3 && at[3] == '>'))) {
                r->at = at + (at[2] == '>' ? 3 : 4);
                return 1;
            }
        }
        return 0;
    }
    at = memchr(at, '>', (size_t)(r->end - at));
    Slice declared = {r->at + 1, at == NULL ? 0 : at - r->at - 1};
    if (at == NULL || (r->depth && innermost(r)->is_foreign))
        return 0;
    if (r->phase == IN_BODY && declared.size >= 7 && same_name((Slice){declared.at, 7}, "doctype", 7))
        return 0; /* it is nothing: the texts around it are one */
    if (r->phase == START && r->depth == 0 && same_name(declared, "doctype html", 12))
        r->in_standards_mode = 1;
    r->at = at + 1;
    return 1;
}

/* The text from here to the next markup. */
static Slice next_text(Reader *r)
{
    const byte *begin = r->at, *at = begin;
    while ((at = memchr(at, '<', (size_t)(r->end - at))) != NULL) {
        byte next = at + 1 < r->end ? at[1] : 0;
        if (is_letter(next) || next == '/' || next == '!' || next == '?')
            break;
        at++;
    }
    r->at = at == NULL ? r->end : at;
    return (Slice){begin, r->at - begin};
}

#endif

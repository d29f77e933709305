/* The elements that are open, and what is found while they are. */

#ifndef LETOPIS_HTML_STACK_H
#define LETOPIS_HTML_STACK_H

#include "html_tokens.h"

static PyObject *attribute_string(const Tag *tag, int at)
{
    if (!tag->attributes[at].has_value)
        return Py_NewRef(Py_None);
    return string_read(tag->attributes[at].value, 1, 1);
}

static PyObject *attribute_strings_of(const Tag *tag, uint32_t wanted)
{
    PyObject *found = PyDict_New();
    wanted &= tag->present;
    for (int at = 0; found != NULL && wanted >> at; at++) {
        if (!(wanted >> at & 1))
            continue;
        PyObject *value = attribute_string(tag, at);
        if (value == NULL || PyDict_SetItem(found, attribute_strings[at], value) < 0)
            Py_CLEAR(found);
        Py_XDECREF(value);
    }
    return found;
}

static int append_new(PyObject *list, PyObject *item)
{
    int done = item != NULL && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return done;
}

/* Adds an event: an element with its attributes, or a block, which has none. Takes over the references. */
static int add_event(Reader *r, PyObject *name, PyObject *attributes, PyObject *text, int number)
{
    PyObject *event = attributes && text ? PyTuple_New(4) : NULL, *order = event ? PyLong_FromLong(number) : NULL;
    if (order == NULL) {
        Py_XDECREF(event);
        Py_XDECREF(attributes);
        Py_XDECREF(text);
        return 0;
    }
    PyTuple_SetItem(event, 0, Py_NewRef(name));
    PyTuple_SetItem(event, 1, attributes);
    PyTuple_SetItem(event, 2, text);
    PyTuple_SetItem(event, 3, order);
    return append_new(r->events, event);
}

/* Ends the block that the pieces make. */
static int flush(Reader *r)
{
    int done = 1;
    if (r->last_piece != NO_PIECE && r->holder != NOWHERE) {
        fold(&r->text, 1);
        PyObject *said = string_of(r->text.bytes, r->text.size);
        done = add_event(r, kind_strings[r->kind], Py_NewRef(Py_None), said, r->holder);
    }
    r->text.size = 0;
    r->last_piece = NO_PIECE;
    return done;
}

static int add_break(Reader *r)
{
    if (r->last_piece == NO_PIECE)
        return 1;
    int is_second = r->last_piece == BREAK_PIECE;
    r->last_piece = is_second ? PART_PIECE : BREAK_PIECE;
    return append(&r->text, is_second ? "\x1e" : "\n", 1);
}

/* A node begins in the innermost element. Its first one parts texts, if that is a block. */
static void begin_node(Reader *r)
{
    r->joins = JOINS_NOTHING;
    if (r->depth && !innermost(r)->has_children) {
        innermost(r)->has_children = 1;
        if (rules_of(innermost(r)) & BLOCK)
            r->blank_before = 0;
    }
}

static int add_link_blank(Reader *r)
{
    return r->link_at < 0 || append(&r->link, " ", 1);
}

/* Adds a text to the link that it stands in, parted from the text of another block. */
static int add_link_text(Reader *r, Slice text, int has_references)
{
    int block = innermost(r)->block > r->open[r->link_at].number ? innermost(r)->block : r->open[r->link_at].number;
    if (block != r->link_block && r->link.size && !add_link_blank(r))
        return 0;
    r->link_block = block;
    return append_read(&r->link, text, has_references, 0) && r->link.size < LONGEST_LINK;
}

static int add_text(Reader *r, Slice text, int has_references)
{
    Open *around = innermost(r);
    int holder = around->is_hidden ? NOWHERE : around->holder, kind = around->is_hidden ? PARAGRAPH : around->kind;
    if (holder != r->holder || r->last_piece == NO_PIECE) {
        if (!flush(r))
            return 0;
        r->holder = holder;
        r->kind = kind;
    } else if (r->blank_before && !append(&r->text, " ", 1)) {
        return 0;
    }
    r->last_piece = TEXT_PIECE;
    return holder == NOWHERE || append_read(&r->text, text, has_references, 0);
}

/* A text that stands right in the innermost element. After a tag that is nothing it goes on with the text before. */
static int take_text(Reader *r, Slice text, int has_references)
{
    int joins = r->joins;
    begin_node(r);
    if (r->link_at >= 0 && !add_link_text(r, text, has_references))
        return 0;
    Py_ssize_t before = 0;
    while (before < text.size && is_blank(text.at[before]))
        before++;
    int blank = before == text.size;
    if (has_references && !blank && text.at[before] == '&') {
        Buffer read = {NULL, 0, 0};
        int done = append_read(&read, text, 1, 0);
        blank = done && is_all_blank((Slice){read.bytes, read.size});
        free(read.bytes);
        if (!done)
            return 0;
    }
    if (!blank && r->full && !(rules_of(innermost(r)) & SILENT) && !add_text(r, text, has_references))
        return 0;
    r->joins = blank && joins != JOINS_TEXT ? JOINS_BLANK : JOINS_TEXT;
    r->blank_before = r->joins == JOINS_BLANK;
    return r->joins == JOINS_BLANK || !blank || r->last_piece != TEXT_PIECE || append(&r->text, " ", 1);
}

/* Elements */

static int is_marked(const Tag *tag)
{
    const Attribute *names = &tag->attributes[CLASS], *id = &tag->attributes[ID];
    if (tag->present & BIT(ROLE))
        return 1;
    if ((tag->present & BIT(CLASS))
        && (has_byte(names->value, '&') || has_word(names->value, "footer") || has_word(names->value, "navbar")
            || has_word(names->value, "cookie")))
        return 1;
    return (tag->present & BIT(ID)) && (has_byte(id->value, '&') || has_word(id->value, "cookie"));
}

/* Notes an element that is frame by its name, or may be so by its attributes, which Python decides. */
static int note_frame(Reader *r, Open *open, const Tag *tag)
{
    int is_menu = open->element == NAV || open->element == MENU;
    PyObject *attributes = NULL;
    if (rules_of(open) & FRAMING && (is_menu || !open->in_content))
        attributes = Py_NewRef(Py_None);
    else if (is_marked(tag))
        attributes = attribute_strings_of(tag, BIT(ROLE) | BIT(CLASS) | BIT(ID));
    else
        return 1;
    if (attributes == NULL)
        return 0;
    open->frame = PyList_Size(r->frames);
    return append_new(r->frames, Py_BuildValue("[iiN]", open->number, open->in_content, attributes));
}

/* Takes what any element may carry: pictures in its style and behind it. */
static int take_looks(Reader *r, const Tag *tag)
{
    Slice style = tag->attributes[STYLE_OF].value;
    if ((tag->present & BIT(STYLE_OF)) && (has_byte(style, '&') || has_word(style, "url("))
        && !append_new(r->styles, string_read(style, 1, 1)))
        return 0;
    return !(tag->present & BIT(BACKGROUND)) || append_new(r->backgrounds, attribute_string(tag, BACKGROUND));
}

/* Takes what an element without text of its own carries. */
static int take_element(Reader *r, const Tag *tag, int number)
{
    uint32_t wanted = elements[tag->element].wanted;
    if (!take_looks(r, tag))
        return 0;
    if (tag->element == BASE && r->base == NULL && (tag->present & BIT(HREF))) {
        r->base = attribute_string(tag, HREF);
        return r->base != NULL;
    }
    if (!(tag->present & wanted & TELLING) || tag->element == SCRIPT)
        return 1;
    return add_event(r, element_strings[tag->element], attribute_strings_of(tag, wanted), Py_NewRef(no_text), number);
}

/* Opens an element in the innermost one; `tag` is NULL for one that the page left out. */
static int push(Reader *r, int element, const Tag *tag)
{
    static const Open nothing = {{NULL, 0}, 0, 0, 0, PARAGRAPH, 0, NO_SLOT, 0, 0, 0, 0};
    const Open *around = r->depth ? innermost(r) : &nothing;
    uint32_t rules = elements[element].rules;
    if (r->depth == MOST_OPEN)
        return 0;
    begin_node(r);
    Open *open = &r->open[r->depth++];
    *open = *around;
    open->name = tag ? tag->name : (Slice){(const byte *)elements[element].name, elements[element].size};
    open->element = element;
    open->number = ++r->number;
    open->frame = NO_SLOT;
    open->has_children = 0;
    open->is_hidden |= (rules & HIDDEN) != 0;
    open->in_content |= (rules_of(around) & CONTENT) != 0;
    open->is_foreign |= element == SVG;
    if (rules & BLOCK) {
        int own = elements[element].kind;
        open->block = open->holder = open->number;
        open->kind = own == NO_KIND || (own == PARAGRAPH && around->kind != CELL) ? around->kind : own;
        if (!flush(r))
            return 0;
    }
    if (r->full && (element == TR || element == TD || element == TH)
        && !add_event(r, element_strings[element], PyDict_New(), Py_NewRef(no_text), open->number))
        return 0;
    if (tag == NULL)
        return 1;
    return (!r->full || note_frame(r, open, tag)) && take_element(r, tag, open->number);
}

/* Passes an element that holds nothing. */
static int take_void(Reader *r, const Tag *tag)
{
    begin_node(r);
    int number = ++r->number, link = 0;
    if ((elements[tag->element].rules & BLOCK) && !flush(r))
        return 0;
    if (tag->element == BR && (!add_break(r) || !add_link_blank(r)))
        return 0;
    if (tag->element == IMG && r->link_at >= 0 && r->depth - r->link_at <= 5)
        link = r->open[r->link_at].number;
    return take_element(r, tag, tag->element == IMG ? link : number);
}

/* The text of the open link is complete. */
static int end_link(Reader *r)
{
    fold(&r->link, 0);
    PyObject *text = string_of(r->link.bytes, r->link.size), *event = PyList_GetItem(r->events, r->link_slot);
    r->link_at = -1;
    return text != NULL && event != NULL && PyTuple_SetItem(event, 2, text) == 0;
}

static int begin_link(Reader *r, const Tag *tag)
{
    if (r->link_at >= 0 || !push(r, A, tag))
        return 0;
    if (tag->present & BIT(HREF)) {
        r->link_at = r->depth - 1;
        r->link_slot = PyList_Size(r->events) - 1;
        r->link.size = r->link_block = 0;
    }
    return 1;
}

static int pop(Reader *r)
{
    Open *ended = innermost(r);
    r->joins = JOINS_NOTHING;
    if (r->depth - 1 == r->link_at && !end_link(r))
        return 0;
    r->depth--;
    return ended->frame == NO_SLOT || append_new(PyList_GetItem(r->frames, ended->frame), PyLong_FromLong(r->number));
}

/* Ends all elements from the one at a place on. Formatting that is left open goes on elsewhere: not here. */
static int pop_to(Reader *r, int at)
{
    int left_open = 0;
    while (r->depth > at) {
        if (rules_of(innermost(r)) & FORMATTING)
            left_open = 1;
        if (rules_of(innermost(r)) & MARKER)
            left_open = 0;
        if (!pop(r))
            return 0;
    }
    return !left_open;
}

/* Ends elements whose end may be left out, but for one kind. */
static int pop_implied(Reader *r, int but)
{
    while ((rules_of(innermost(r)) & IMPLIED) && innermost(r)->element != but)
        if (!pop(r))
            return 0;
    return 1;
}

/* Where an element is open that an end tag here may end, -1 where none is. */
static int scope_of(Reader *r, int element)
{
    for (int at = r->depth - 1; at >= 0; at--) {
        int found = r->open[at].element;
        if (found == element)
            return at;
        if ((elements[found].rules & BARRIER) || (element == P && found == BUTTON)
            || (element == LI && (found == OL || found == UL)))
            break;
    }
    return -1;
}

static int end_element(Reader *r, int element)
{
    int at = scope_of(r, element);
    return at < 0 || (pop_implied(r, (elements[element].rules & IMPLIED) ? element : UNKNOWN) && pop_to(r, at));
}

static int is_heading(int element)
{
    return element >= H1 && element <= H6;
}

/* An `<li>`, `<dt>` or `<dd>` ends the one before it. */
static int end_item(Reader *r, int one, int other)
{
    for (int at = r->depth - 1; at >= 0; at--) {
        int found = r->open[at].element;
        if (found == one || found == other)
            return pop_implied(r, found) && pop_to(r, at);
        if ((elements[found].rules & SPECIAL) && found != ADDRESS && found != DIV && found != P)
            break;
    }
    return 1;
}

/* Where an element of one kind is open inside of the innermost cell, caption or object, -1 where none is. */
static int formatting_at(Reader *r, int element)
{
    for (int at = r->depth - 1; at >= 0 && !(rules_of(&r->open[at]) & MARKER); at--)
        if (r->open[at].element == element)
            return at;
    return -1;
}

#endif

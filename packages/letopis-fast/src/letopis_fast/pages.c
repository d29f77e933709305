/* Pages in HTML, read in one pass without a tree, for the same result as letopis.extract.html has from the parser.
 *
 * Most pages nest their elements as the standard expects. In those, what is open at a place is a plain stack, and this
 * pass follows the standard: ends that may be left out, tables, text that only looks like markup. Whatever needs more
 * (elements that move, formatting that goes on elsewhere, mathematics, damaged markup) gives None, and the parser reads
 * the page. Input may be hostile: every read is checked against the end of the page, and at most MOST_OPEN elements are
 * open at once.
 */

#include "html_stack.h"

/* Which events there are; html_blocks.py reads no others. */
enum { FORMAT = 2 };

/* Tables */

static int pop_to_table(Reader *r)
{
    while (innermost(r)->element != TABLE)
        if (!(rules_of(innermost(r)) & TABLE_PART) || !pop(r))
            return 0;
    return 1;
}

/* Ends the cell or the caption that the innermost elements stand in, if they do. */
static int end_cell(Reader *r)
{
    for (int at = r->depth - 1; at >= 0 && !(rules_of(&r->open[at]) & TABLE_PART); at--) {
        int found = r->open[at].element;
        if (found == TD || found == TH || found == CAPTION)
            return pop_implied(r, UNKNOWN) && pop_to(r, at);
    }
    return 1;
}

/* Parts of a table that stand where they may, or whose surroundings were left out. */
static int start_table_part(Reader *r, const Tag *tag)
{
    int element = tag->element;
    if (!(rules_of(innermost(r)) & TABLE_PART))
        return 0;
    if (element == COL) {
        if (innermost(r)->element != COLGROUP && !(pop_to_table(r) && push(r, COLGROUP, NULL)))
            return 0;
        return take_void(r, tag);
    }
    if (element == TD || element == TH) {
        if (innermost(r)->element == COLGROUP && !pop(r))
            return 0;
        if (innermost(r)->element == TABLE && !push(r, TBODY, NULL))
            return 0;
        return (innermost(r)->element == TR || push(r, TR, NULL)) && push(r, element, tag);
    }
    if (element == TR) {
        if ((innermost(r)->element == TR || innermost(r)->element == COLGROUP) && !pop(r))
            return 0;
        return (innermost(r)->element != TABLE || push(r, TBODY, NULL)) && push(r, TR, tag);
    }
    return pop_to_table(r) && push(r, element, tag);
}

static int is_table_part(int element)
{
    return element == TBODY || element == THEAD || element == TFOOT || element == TR || element == TD || element == TH
        || element == CAPTION || element == COL || element == COLGROUP;
}

/* Where a part of the innermost table is open, -1 where it is not. */
static int table_scope_of(Reader *r, int element)
{
    for (int at = r->depth - 1; at >= 0; at--) {
        if (r->open[at].element == element)
            return at;
        if (r->open[at].element == TABLE)
            break;
    }
    return -1;
}

/* The end of a table or of a part of it. One that is not open is nothing. */
static int end_table_part(Reader *r, int element)
{
    int at = table_scope_of(r, element);
    if (at < 0)
        return element != COL;
    if (element == TD || element == TH || element == CAPTION)
        return pop_implied(r, UNKNOWN) && pop_to(r, at);
    return end_cell(r) && pop_to(r, at);
}

/* Elements that hold nothing but text */

/* Where the end tag of such an element begins, NULL where there is none. */
static const byte *raw_end(const Reader *r, int element)
{
    Py_ssize_t size = elements[element].size;
    for (const byte *at = r->at; r->end - at > size + 2; at++) {
        at = memchr(at, '<', (size_t)(r->end - at - size - 2));
        if (at == NULL)
            return NULL;
        byte behind = at[size + 2];
        if (at[1] == '/' && (is_blank(behind) || behind == '/' || behind == '>')
            && same_name((Slice){at + 2, size}, elements[element].name, size))
            return at;
    }
    return NULL;
}

static int is_script_with_data(const Tag *tag)
{
    const Attribute *type = &tag->attributes[TYPE];
    return (tag->present & BIT(TYPE)) && (has_byte(type->value, '&') || has_word(type->value, "application/ld+json"));
}

/* What a script, a style sheet or a title carries. */
static int take_raw(Reader *r, const Tag *tag, Slice text, int has_references)
{
    int element = tag->element, parent = r->depth > 1 ? r->open[r->depth - 2].element : UNKNOWN;
    Slice said = text;
    if (element == SCRIPT) {
        if (!is_script_with_data(tag) && !(tag->present & BIT(SRC)))
            return 1;
        said.size = is_script_with_data(tag) ? text.size : 0;
    } else if (element == STYLE) {
        if (!has_word(text, "url(") && !has_word(text, "@import") && !(has_references && has_byte(text, '&')))
            return 1;
    } else if (element != TITLE || (elements[parent].rules & HIDDEN)) {
        return 1;
    }
    PyObject *attributes = attribute_strings_of(tag, elements[element].wanted);
    PyObject *string = string_read(said, has_references, 0);
    return add_event(r, element_strings[element], attributes, string, innermost(r)->number);
}

static void pass_line_end(Reader *r)
{
    if (r->at < r->end && *r->at == '\r')
        r->at++;
    if (r->at < r->end && *r->at == '\n')
        r->at++;
}

static int start_raw(Reader *r, Tag *tag)
{
    int element = tag->element, has_references = element == TITLE || element == TEXTAREA;
    if (element == TEXTAREA)
        pass_line_end(r);
    const byte *end = raw_end(r, element);
    if (end == NULL || !push(r, element, tag))
        return 0;
    Slice text = {r->at, end - r->at};
    if (element == SCRIPT && has_word(text, "<!--") && has_word(text, "<script"))
        return 0;
    if (!take_raw(r, tag, text, has_references) || (text.size && !take_text(r, text, has_references)))
        return 0;
    r->at = end + 2;
    Tag closing;
    return read_tag(r, &closing) && pop(r);
}

/* Passes over the text of an element in a template; 0 where what follows may not be read as elsewhere. */
static int pass_in_template(Reader *r, int element)
{
    if (element == SVG || element == SELECT || (elements[element].rules & REFUSED))
        return 0;
    const byte *end = elements[element].rules & RAW ? raw_end(r, element) : r->at;
    if (end == NULL || (element == SCRIPT && has_word((Slice){r->at, end - r->at}, "<!--")))
        return 0;
    r->at = end;
    return 1;
}

/* Passes over a template, which is no part of the page. */
static int pass_template(Reader *r, const Tag *tag)
{
    int inside = 1;
    begin_node(r);
    if ((rules_of(innermost(r)) & TABLE_PART) || !take_element(r, tag, ++r->number))
        return 0;
    while (inside) {
        Tag found;
        next_text(r);
        if (r->end - r->at < 3)
            return 0;
        int is_end = r->at[1] == '/';
        r->at += 1 + is_end;
        if (*r->at == '!' || *r->at == '?') {
            if (is_end || (r->end - r->at > 1 && r->at[1] == '[') || !pass_declaration(r))
                return 0;
            continue;
        }
        if (!is_letter(*r->at) || !read_tag(r, &found))
            return 0;
        if (found.element == TEMPLATE)
            inside += is_end ? -1 : 1;
        else if (!is_end && !pass_in_template(r, found.element))
            return 0;
    }
    return 1;
}

/* Drawings */

static int start_foreign(Reader *r, Tag *tag)
{
    int around = innermost(r)->element, element = tag->element;
    int is_text = element == TITLE || element == STYLE || element == DESC;
    if (around == TITLE || around == STYLE || around == DESC)
        return 0;
    if (element != UNKNOWN && element != SVG && element != IMAGE && !is_text)
        return 0;
    if (!is_text)
        return push(r, element, tag) && (!tag->closes_itself || pop(r));
    if (tag->closes_itself || !push(r, element, tag))
        return 0;
    const byte *end = memchr(r->at, '<', (size_t)(r->end - r->at));
    return end != NULL && end + 1 < r->end && end[1] == '/' && take_raw(r, tag, (Slice){r->at, end - r->at}, 1);
}

static int end_foreign(Reader *r, const Tag *tag)
{
    return same_names(innermost(r)->name, tag->name) && pop(r);
}

/* Tags */

static int begin_body(Reader *r)
{
    if (r->depth == 0 && !push(r, HTML, NULL))
        return 0;
    r->phase = IN_BODY;
    return push(r, BODY, NULL);
}

/* A second root or body adds the attributes that the first one lacks; 0 where one of these matters. */
static int start_again(Reader *r, const Tag *tag)
{
    uint32_t languages = BIT(LANG) | BIT(XML_LANG), missing = tag->present & ~r->root_attributes;
    if ((tag->present & (BIT(BACKGROUND) | BIT(STYLE_OF))) || is_marked(tag))
        return 0;
    if (tag->element == BODY || !(missing & languages))
        return 1;
    if (r->root_attributes & languages)
        return 0;
    r->root_attributes |= tag->present;
    return take_element(r, tag, 1);
}

/* A start tag before the body; sets `done` where nothing is left to do. */
static int start_in_head(Reader *r, Tag *tag, int *done)
{
    int element = tag->element, is_first = r->depth == 0;
    *done = element == HTML || element == HEAD_TAG || element == BODY || element == NOSCRIPT;
    if (element == HTML) {
        if (!is_first)
            return start_again(r, tag);
        r->phase = IN_HEAD;
        r->root_attributes = tag->present;
        return push(r, HTML, tag);
    }
    if (is_first && !push(r, HTML, NULL))
        return 0;
    if (r->phase == START)
        r->phase = IN_HEAD;
    if (r->phase == IN_HEAD_NOSCRIPT) {
        if (element == LINK || element == META || element == STYLE || element == HEAD_TAG || element == NOSCRIPT)
            return 1;
        r->phase = IN_HEAD;
    }
    if (element == HEAD_TAG) /* an element of no consequence, but for what hangs on it */
        return r->phase != IN_HEAD || innermost(r)->has_children || (take_looks(r, tag) && !is_marked(tag));
    if (element == BODY) {
        r->phase = IN_BODY;
        return push(r, BODY, tag);
    }
    if (element == NOSCRIPT && r->phase == IN_HEAD) {
        r->phase = IN_HEAD_NOSCRIPT;
        return take_looks(r, tag) && !is_marked(tag);
    }
    *done = 0;
    return (elements[element].rules & HEAD) || begin_body(r);
}

static int start_in_select(Reader *r, const Tag *tag)
{
    if (tag->element != OPTION && tag->element != OPTGROUP)
        return 0;
    return pop_implied(r, tag->element == OPTION ? OPTGROUP : UNKNOWN) && push(r, tag->element, tag);
}

/* Ends a formatting element and what is open in it; 0 where that would go on elsewhere. */
static int end_formatting(Reader *r, int element)
{
    int at = formatting_at(r, element);
    if (at < 0)
        return 1;
    for (int above = at + 1; above < r->depth; above++)
        if (rules_of(&r->open[above]) & (SPECIAL | FORMATTING))
            return 0;
    while (r->depth > at)
        if (!pop(r))
            return 0;
    return 1;
}

/* What a start tag ends before its element begins; 0 where it does more than that. */
static int make_room(Reader *r, int element)
{
    uint32_t rules = elements[element].rules;
    if (element == LI && !end_item(r, LI, LI))
        return 0;
    if ((element == DD || element == DT) && !end_item(r, DD, DT))
        return 0;
    if (element == TABLE && !r->in_standards_mode && scope_of(r, P) >= 0)
        return 0;
    if (((rules & ENDS_P) || element == LI || element == DD || element == DT || element == TABLE) && !end_element(r, P))
        return 0;
    if (is_heading(element) && is_heading(innermost(r)->element) && !pop(r))
        return 0;
    if ((element == A || element == NOBR) && !end_formatting(r, element))
        return 0;
    if (element == FORM && r->form)
        return 0;
    if (element == BUTTON && scope_of(r, BUTTON) >= 0)
        return 0;
    return element != OPTION || innermost(r)->element != OPTION || pop(r);
}

/* What may stand between the parts of a table without moving in front of it. */
static int start_in_table(Reader *r, Tag *tag)
{
    const Attribute *type = &tag->attributes[TYPE];
    if (innermost(r)->element == COLGROUP)
        return 0;
    if (tag->element == SCRIPT || tag->element == STYLE)
        return start_raw(r, tag);
    if (tag->element == INPUT && (tag->present & BIT(TYPE)) && same_name(type->value, "hidden", 6))
        return take_void(r, tag);
    if (tag->element != FORM || r->form || !push(r, FORM, tag))
        return 0;
    r->form = innermost(r)->number;
    return pop(r);
}

static int start_tag(Reader *r, Tag *tag)
{
    int element = tag->element, done = 0;
    uint32_t rules = elements[element].rules;
    if (r->phase == IN_BODY && innermost(r)->is_foreign)
        return start_foreign(r, tag);
    if (rules & REFUSED)
        return 0;
    if (r->phase != IN_BODY && !start_in_head(r, tag, &done))
        return 0;
    if (done || element == HEAD_TAG)
        return 1;
    if (element == HTML || element == BODY)
        return start_again(r, tag);
    if (element == TEMPLATE)
        return pass_template(r, tag);
    if (scope_of(r, SELECT) >= 0)
        return start_in_select(r, tag);
    if (is_table_part(element))
        return (rules_of(innermost(r)) & TABLE_PART || end_cell(r)) && start_table_part(r, tag);
    if (rules_of(innermost(r)) & TABLE_PART)
        return start_in_table(r, tag);
    if (element == OPTGROUP || !make_room(r, element))
        return 0;
    if (rules & RAW)
        return start_raw(r, tag);
    if (rules & VOID)
        return take_void(r, tag);
    if (element == A)
        return begin_link(r, tag);
    if (!push(r, element, tag))
        return 0;
    if (element == FORM)
        r->form = innermost(r)->number;
    if (element == SVG && tag->closes_itself)
        return pop(r);
    if (element == PRE || element == LISTING)
        pass_line_end(r);
    return 1;
}

/* Ends the form that is open; one that was ended by something else is not. */
static int end_form(Reader *r)
{
    int at = r->depth - 1, form = r->form;
    while (at >= 0 && r->open[at].number != form && !(rules_of(&r->open[at]) & BARRIER))
        at--;
    r->form = 0;
    if (form == 0 || at < 0 || r->open[at].number != form)
        return 1;
    return pop_implied(r, UNKNOWN) && r->depth - 1 == at && pop(r);
}

static int end_heading(Reader *r)
{
    for (int at = r->depth - 1; at >= 0 && !(rules_of(&r->open[at]) & BARRIER); at--)
        if (is_heading(r->open[at].element))
            return pop_implied(r, UNKNOWN) && pop_to(r, at);
    return 1;
}

/* The end of an element without rules of its own. */
static int end_other(Reader *r, const Tag *tag)
{
    for (int at = r->depth - 1; at >= 0; at--) {
        Open *open = &r->open[at];
        if (open->element == tag->element && same_names(open->name, tag->name))
            return pop_implied(r, tag->element) && pop_to(r, at);
        if (rules_of(open) & SPECIAL)
            break;
    }
    return 1;
}

static int end_tag_in_head(Reader *r, int element)
{
    if (element == BODY || element == HTML || element == BR || element == TEMPLATE)
        return 0;
    if (r->phase == IN_HEAD_NOSCRIPT)
        r->phase = element == NOSCRIPT ? IN_HEAD : IN_HEAD_NOSCRIPT;
    else if (element == HEAD_TAG)
        r->phase = AFTER_HEAD;
    return r->depth != 0;
}

static int end_tag(Reader *r, Tag *tag)
{
    int element = tag->element;
    uint32_t rules = elements[element].rules;
    if (r->phase != IN_BODY)
        return !(rules & REFUSED) && end_tag_in_head(r, element);
    if (innermost(r)->is_foreign)
        return end_foreign(r, tag);
    if (rules & REFUSED)
        return 0;
    if (element == BODY || element == HTML)
        return 1;
    if (scope_of(r, SELECT) >= 0 && element != SELECT && element != OPTION && element != OPTGROUP)
        return 0;
    if (element == TABLE || is_table_part(element))
        return end_table_part(r, element);
    if ((rules_of(innermost(r)) & TABLE_PART) && (element == P || element == BR))
        return 0;
    if (element == P && scope_of(r, P) < 0)
        return push(r, P, NULL) && pop(r);
    if (element == FORM)
        return end_form(r);
    if (is_heading(element))
        return end_heading(r);
    if (rules & FORMATTING)
        return end_formatting(r, element);
    int is_choice = (element == OPTION || element == OPTGROUP) && scope_of(r, SELECT) < 0;
    if (((rules & (CLOSES | IMPLIED)) && !is_choice) || element == SELECT)
        return end_element(r, element);
    if (element == BR) { /* stands for a line break */
        tag->present = 0;
        return take_void(r, tag);
    }
    return end_other(r, tag);
}

static int text_in_page(Reader *r, Slice text)
{
    int blank = is_all_blank(text);
    if (r->phase != IN_BODY) {
        if (blank)
            return 1;
        if (has_byte(text, '&') || !begin_body(r)) /* a reference may be white space */
            return 0;
    }
    if ((rules_of(innermost(r)) & TABLE_PART) && !blank)
        return 0;
    return take_text(r, text, 1);
}

/* Reads one tag, comment or declaration. */
static int read_markup(Reader *r)
{
    Tag tag;
    byte next = *++r->at;
    if (next == '!' || next == '?') {
        if (r->phase == IN_BODY)
            begin_node(r);
        return pass_declaration(r);
    }
    if (next != '/')
        return read_tag(r, &tag) && start_tag(r, &tag);
    r->at++;
    if (r->at >= r->end || !is_letter(*r->at))
        return 0;
    return read_tag(r, &tag) && end_tag(r, &tag);
}

static int read_page(Reader *r)
{
    while (r->at < r->end) {
        Slice text = next_text(r);
        if (text.size && !text_in_page(r, text))
            return 0;
        if (r->at < r->end && !read_markup(r))
            return 0;
    }
    while (r->depth)
        if (!pop(r))
            return 0;
    return flush(r);
}

static PyObject *events(PyObject *module, PyObject *args)
{
    Reader r = {.holder = NOWHERE, .link_at = -1};
    Py_ssize_t size;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#p", &r.at, &size, &r.full))
        return NULL;
    if (size >= INT32_MAX || memchr(r.at, 0, (size_t)size) != NULL)
        Py_RETURN_NONE;
    r.end = r.at + size;
    r.events = PyList_New(0);
    r.frames = PyList_New(0);
    r.styles = PyList_New(0);
    r.backgrounds = PyList_New(0);
    PyObject *found = NULL;
    if (r.events && r.frames && r.styles && r.backgrounds && read_page(&r))
        found = PyTuple_Pack(5, r.base ? r.base : Py_None, r.events, r.frames, r.styles, r.backgrounds);
    free(r.text.bytes);
    free(r.link.bytes);
    Py_XDECREF(r.base);
    Py_XDECREF(r.events);
    Py_XDECREF(r.frames);
    Py_XDECREF(r.styles);
    Py_XDECREF(r.backgrounds);
    if (found != NULL)
        return found;
    /* Text that is not UTF-8 is left to the parser, too; a lack of memory is not. */
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

static int intern_names(void)
{
    for (int at = 1; at < ELEMENT_COUNT; at++)
        if ((element_strings[at] = PyUnicode_InternFromString(elements[at].name)) == NULL)
            return 0;
    for (int at = 0; at < ATTRIBUTES; at++)
        if ((attribute_strings[at] = PyUnicode_InternFromString(attribute_names[at])) == NULL)
            return 0;
    for (int at = 1; at < KINDS; at++)
        if ((kind_strings[at] = PyUnicode_InternFromString(kind_names[at])) == NULL)
            return 0;
    if ((no_text = PyUnicode_FromString("")) == NULL)
        return 0;
    PyObject *entities = PyImport_ImportModule("html.entities");
    named_references = entities ? PyObject_GetAttrString(entities, "html5") : NULL;
    Py_XDECREF(entities);
    return named_references != NULL;
}

static void index_elements(void)
{
    int at = 1;
    for (int letter = 0; letter < 26; letter++) {
        first_element[letter] = (byte)at;
        while (at < ELEMENT_COUNT && elements[at].name[0] == 'a' + letter)
            at++;
    }
    first_element[26] = (byte)at;
}

/* Chains the attributes that begin with the same letter. */
static void index_attributes(void)
{
    memset(first_attribute, ATTRIBUTES, sizeof first_attribute);
    for (int at = ATTRIBUTES - 1; at >= 0; at--) {
        next_attribute[at] = first_attribute[(byte)attribute_names[at][0]];
        first_attribute[(byte)attribute_names[at][0]] = (byte)at;
    }
}

static PyMethodDef methods[] = {
    {"events", events, METH_VARARGS, "What a page in HTML shows in order; None where the parser is needed."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "letopis_fast.pages", "Pages in HTML, in C.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_pages(void)
{
    index_elements();
    index_attributes();
    PyObject *made = intern_names() ? PyModule_Create(&module) : NULL;
    if (made != NULL && PyModule_AddIntConstant(made, "FORMAT", FORMAT) < 0)
        Py_CLEAR(made);
    return made;
}

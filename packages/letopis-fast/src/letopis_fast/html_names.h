/* The elements and attributes that reading a page in HTML distinguishes. All others are elements without any rule. */

#ifndef LETOPIS_HTML_NAMES_H
#define LETOPIS_HTML_NAMES_H

#include <stdint.h>

/* What the rules of HTML say of an element, and what Letopis makes of it. */
enum {
    SPECIAL = 1 << 0,    /* ends the search for what a stray end tag ends */
    BARRIER = 1 << 1,    /* what an end tag inside of it ends is inside of it */
    VOID = 1 << 2,       /* without content */
    FORMATTING = 1 << 3, /* left open, it goes on in the elements after its own */
    ENDS_P = 1 << 4,     /* its start ends an open paragraph */
    IMPLIED = 1 << 5,    /* its end may be left out */
    HEAD = 1 << 6,       /* may stand in the head */
    TABLE_PART = 1 << 7, /* only parts of a table may stand right in it */
    RAW = 1 << 8,        /* holds nothing but text */
    CLOSES = 1 << 9,     /* its end tag ends all that is open inside */
    MARKER = 1 << 10,    /* formatting left open in it ends with it */
    REFUSED = 1 << 11,   /* left to the parser */
    BLOCK = 1 << 12,     /* its text is a block */
    HIDDEN = 1 << 13,    /* its text is not read */
    FRAMING = 1 << 14,   /* may be the frame of a page */
    CONTENT = 1 << 15,   /* what a page says */
    SILENT = 1 << 16     /* its text is not text of the page */
};

enum {
    HREF, SRC, ALT, CONTENT_OF, SRCSET, POSTER, DATA_SRC, DATA_ORIGINAL, DATA_LAZY_SRC, LONGDESC, LANG, XML_LANG,
    DATETIME, ACTION, FORMACTION, CITE, DATA, REL, TITLE_OF, TYPE, NAME, PROPERTY, ITEMPROP, HTTP_EQUIV, STYLE_OF,
    BACKGROUND, CLASS, ID, ROLE, ATTRIBUTES
};
#define BIT(attribute) ((uint32_t)1 << (attribute))
/* An element that has none of these carries nothing. */
#define TELLING (BIT(REL) - 1)

static const char *const attribute_names[ATTRIBUTES] = {
    "href", "src", "alt", "content", "srcset", "poster", "data-src", "data-original", "data-lazy-src", "longdesc",
    "lang", "xml:lang", "datetime", "action", "formaction", "cite", "data", "rel", "title", "type", "name", "property",
    "itemprop",
    "http-equiv", "style", "background", "class", "id", "role",
};

/* What the text of an element is: the names of letopis.model.BlockKind. */
enum {
    NO_KIND, PARAGRAPH, HEADING_1, HEADING_2, HEADING_3, HEADING_4, HEADING_5, HEADING_6, ITEM, CELL, QUOTE, CODE_TEXT,
    KINDS
};
static const char *const kind_names[KINDS] = {
    "", "paragraph", "h1", "h2", "h3", "h4", "h5", "h6", "item", "cell", "quote", "code",
};

#define FLOW (SPECIAL | ENDS_P | CLOSES)
#define MEDIA (BIT(SRC) | BIT(POSTER) | BIT(SRCSET))
#define LINKED (BIT(HREF) | BIT(REL) | BIT(TITLE_OF) | BIT(ALT))
#define LAZY (BIT(DATA_SRC) | BIT(DATA_ORIGINAL) | BIT(DATA_LAZY_SRC))
#define PICTURE (BIT(SRC) | BIT(ALT) | BIT(SRCSET) | BIT(LONGDESC) | BIT(TITLE_OF) | LAZY)
#define SAID (BIT(CONTENT_OF) | BIT(NAME) | BIT(PROPERTY) | BIT(ITEMPROP) | BIT(HTTP_EQUIV))

/* Sorted by name: X(constant, name, rules, kind of its text, attributes of which Letopis takes something). */
#define ELEMENTS(X) \
    X(A, "a", FORMATTING, 0, LINKED) \
    X(ADDRESS, "address", FLOW | BLOCK, 0, 0) \
    X(APPLET, "applet", REFUSED, 0, 0) \
    X(AREA, "area", SPECIAL | VOID, 0, LINKED) \
    X(ARTICLE, "article", FLOW | BLOCK | CONTENT, 0, 0) \
    X(ASIDE, "aside", FLOW | BLOCK | FRAMING, 0, 0) \
    X(AUDIO, "audio", 0, 0, MEDIA) \
    X(B, "b", FORMATTING, 0, 0) \
    X(BASE, "base", SPECIAL | VOID | HEAD, 0, 0) \
    X(BASEFONT, "basefont", SPECIAL | VOID | HEAD, 0, 0) \
    X(BGSOUND, "bgsound", SPECIAL | VOID | HEAD, 0, 0) \
    X(BIG, "big", FORMATTING, 0, 0) \
    X(BLOCKQUOTE, "blockquote", FLOW | BLOCK, QUOTE, BIT(CITE)) \
    X(BODY, "body", SPECIAL | BLOCK, 0, 0) \
    X(BR, "br", SPECIAL | VOID, 0, 0) \
    X(BUTTON, "button", SPECIAL | CLOSES | BLOCK, 0, BIT(FORMACTION)) \
    X(CAPTION, "caption", SPECIAL | BARRIER | MARKER | BLOCK, CELL, 0) \
    X(CENTER, "center", FLOW | BLOCK, 0, 0) \
    X(CODE, "code", FORMATTING, 0, 0) \
    X(COL, "col", SPECIAL | VOID, 0, 0) \
    X(COLGROUP, "colgroup", SPECIAL | TABLE_PART, 0, 0) \
    X(DATALIST, "datalist", HIDDEN, 0, 0) \
    X(DD, "dd", SPECIAL | IMPLIED | BLOCK, CELL, 0) \
    X(DEL, "del", 0, 0, BIT(CITE)) \
    X(DESC, "desc", 0, 0, 0) \
    X(DETAILS, "details", FLOW | BLOCK, 0, 0) \
    X(DIALOG, "dialog", ENDS_P | CLOSES | BLOCK, 0, 0) \
    X(DIR, "dir", FLOW | BLOCK, 0, 0) \
    X(DIV, "div", FLOW | BLOCK, 0, 0) \
    X(DL, "dl", FLOW | BLOCK, 0, 0) \
    X(DT, "dt", SPECIAL | IMPLIED | BLOCK, CELL, 0) \
    X(EM, "em", FORMATTING, 0, 0) \
    X(EMBED, "embed", SPECIAL | VOID, 0, MEDIA) \
    X(FIELDSET, "fieldset", FLOW | BLOCK, 0, 0) \
    X(FIGCAPTION, "figcaption", FLOW | BLOCK, 0, 0) \
    X(FIGURE, "figure", FLOW | BLOCK, 0, 0) \
    X(FONT, "font", FORMATTING, 0, 0) \
    X(FOOTER, "footer", FLOW | BLOCK | FRAMING, 0, 0) \
    X(FOREIGNOBJECT, "foreignobject", 0, 0, 0) \
    X(FORM, "form", SPECIAL | ENDS_P | BLOCK, 0, BIT(ACTION)) \
    X(FRAME, "frame", REFUSED, 0, 0) \
    X(FRAMESET, "frameset", REFUSED, 0, 0) \
    X(H1, "h1", SPECIAL | ENDS_P | BLOCK, HEADING_1, 0) \
    X(H2, "h2", SPECIAL | ENDS_P | BLOCK, HEADING_2, 0) \
    X(H3, "h3", SPECIAL | ENDS_P | BLOCK, HEADING_3, 0) \
    X(H4, "h4", SPECIAL | ENDS_P | BLOCK, HEADING_4, 0) \
    X(H5, "h5", SPECIAL | ENDS_P | BLOCK, HEADING_5, 0) \
    X(H6, "h6", SPECIAL | ENDS_P | BLOCK, HEADING_6, 0) \
    X(HEAD_TAG, "head", SPECIAL, 0, 0) \
    X(HEADER, "header", FLOW | BLOCK | FRAMING, 0, 0) \
    X(HGROUP, "hgroup", FLOW | BLOCK, 0, 0) \
    X(HR, "hr", SPECIAL | ENDS_P | VOID | BLOCK, 0, 0) \
    X(HTML, "html", SPECIAL | BARRIER | BLOCK, 0, BIT(LANG) | BIT(XML_LANG)) \
    X(I, "i", FORMATTING, 0, 0) \
    X(IFRAME, "iframe", SPECIAL | RAW, 0, BIT(SRC) | BIT(TITLE_OF) | BIT(LONGDESC)) \
    X(IMAGE, "image", REFUSED, 0, 0) \
    X(IMG, "img", SPECIAL | VOID, 0, PICTURE) \
    X(INPUT, "input", SPECIAL | VOID, 0, BIT(SRC) | BIT(ALT) | BIT(FORMACTION)) \
    X(INS, "ins", 0, 0, BIT(CITE)) \
    X(KEYGEN, "keygen", SPECIAL | VOID, 0, 0) \
    X(LABEL, "label", BLOCK, 0, 0) \
    X(LEGEND, "legend", BLOCK, 0, 0) \
    X(LI, "li", SPECIAL | IMPLIED | BLOCK, ITEM, 0) \
    X(LINK, "link", SPECIAL | VOID | HEAD, 0, BIT(HREF) | BIT(REL) | BIT(TYPE) | BIT(TITLE_OF)) \
    X(LISTING, "listing", FLOW, 0, 0) \
    X(MAIN, "main", FLOW | BLOCK | CONTENT, 0, 0) \
    X(MARQUEE, "marquee", REFUSED, 0, 0) \
    X(MATH, "math", REFUSED, 0, 0) \
    X(MENU, "menu", FLOW | BLOCK | FRAMING, 0, 0) \
    X(META, "meta", SPECIAL | VOID | HEAD, 0, SAID) \
    X(NAV, "nav", FLOW | BLOCK | FRAMING, 0, 0) \
    X(NOBR, "nobr", FORMATTING, 0, 0) \
    X(NOEMBED, "noembed", SPECIAL | RAW | HIDDEN, 0, 0) \
    X(NOFRAMES, "noframes", SPECIAL | HEAD | RAW | HIDDEN, 0, 0) \
    X(NOSCRIPT, "noscript", SPECIAL | HIDDEN, 0, 0) \
    X(OBJECT, "object", SPECIAL | BARRIER | MARKER | CLOSES | HIDDEN, 0, BIT(DATA)) \
    X(OL, "ol", FLOW | BLOCK, 0, 0) \
    X(OPTGROUP, "optgroup", IMPLIED, 0, 0) \
    X(OPTION, "option", IMPLIED, 0, 0) \
    X(P, "p", SPECIAL | ENDS_P | IMPLIED | BLOCK, PARAGRAPH, 0) \
    X(PARAM, "param", SPECIAL | VOID, 0, 0) \
    X(PLAINTEXT, "plaintext", REFUSED, 0, 0) \
    X(PRE, "pre", FLOW | BLOCK, CODE_TEXT, 0) \
    X(Q, "q", 0, 0, BIT(CITE)) \
    X(RB, "rb", REFUSED, 0, 0) \
    X(RP, "rp", REFUSED, 0, 0) \
    X(RT, "rt", REFUSED, 0, 0) \
    X(RTC, "rtc", REFUSED, 0, 0) \
    X(RUBY, "ruby", 0, 0, 0) \
    X(S, "s", FORMATTING, 0, 0) \
    X(SCRIPT, "script", SPECIAL | HEAD | RAW | SILENT, 0, BIT(SRC) | BIT(TYPE)) \
    X(SEARCH, "search", FLOW, 0, 0) \
    X(SECTION, "section", FLOW | BLOCK, 0, 0) \
    X(SELECT, "select", SPECIAL | BARRIER | HIDDEN, 0, 0) \
    X(SMALL, "small", FORMATTING, 0, 0) \
    X(SOURCE, "source", SPECIAL | VOID, 0, MEDIA) \
    X(SPAN, "span", 0, 0, 0) \
    X(STRIKE, "strike", FORMATTING, 0, 0) \
    X(STRONG, "strong", FORMATTING, 0, 0) \
    X(STYLE, "style", SPECIAL | HEAD | RAW | SILENT, 0, 0) \
    X(SUB, "sub", 0, 0, 0) \
    X(SUMMARY, "summary", FLOW | BLOCK, 0, 0) \
    X(SUP, "sup", 0, 0, 0) \
    X(SVG, "svg", HIDDEN, 0, 0) \
    X(TABLE, "table", SPECIAL | BARRIER | TABLE_PART | BLOCK, 0, 0) \
    X(TBODY, "tbody", SPECIAL | TABLE_PART | BLOCK, 0, 0) \
    X(TD, "td", SPECIAL | BARRIER | MARKER | BLOCK, CELL, 0) \
    X(TEMPLATE, "template", SPECIAL | HEAD | HIDDEN, 0, 0) \
    X(TEXTAREA, "textarea", SPECIAL | RAW | HIDDEN, 0, 0) \
    X(TFOOT, "tfoot", SPECIAL | TABLE_PART | BLOCK, 0, 0) \
    X(TH, "th", SPECIAL | BARRIER | MARKER | BLOCK, CELL, 0) \
    X(THEAD, "thead", SPECIAL | TABLE_PART | BLOCK, 0, 0) \
    X(TIME, "time", 0, 0, BIT(DATETIME)) \
    X(TITLE, "title", SPECIAL | HEAD | RAW | SILENT, 0, 0) \
    X(TR, "tr", SPECIAL | TABLE_PART | BLOCK, 0, 0) \
    X(TRACK, "track", SPECIAL | VOID, 0, MEDIA) \
    X(TT, "tt", FORMATTING, 0, 0) \
    X(U, "u", FORMATTING, 0, 0) \
    X(UL, "ul", FLOW | BLOCK, 0, 0) \
    X(VAR, "var", 0, 0, 0) \
    X(VIDEO, "video", 0, 0, MEDIA) \
    X(WBR, "wbr", SPECIAL | VOID, 0, 0) \
    X(XMP, "xmp", REFUSED, 0, 0)

#define CONSTANT(constant, name, rules, kind, wanted) constant,
#define DESCRIPTION(constant, name, rules, kind, wanted) {name, sizeof name - 1, kind, rules, wanted},

enum { UNKNOWN, ELEMENTS(CONSTANT) ELEMENT_COUNT };

typedef struct {
    const char *name;
    unsigned char size, kind;
    uint32_t rules, wanted;
} Element;

static const Element elements[ELEMENT_COUNT] = {{"", 0, 0, 0, 0}, ELEMENTS(DESCRIPTION)};

#endif

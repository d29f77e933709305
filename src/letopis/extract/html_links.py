"""What single elements of an HTML page carry: links, the title, the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from letopis.extract.charsets import in_page_charset
from letopis.extract.html_elements import ACTIONS, AREA, ElementAction, tags_of
from letopis.extract.metadata import HtmlHead, primary_language
from letopis.extract.pages import MAX_BLOCKS, MAX_FIELD, MAX_LINKS, PageDraft, fold_whitespace
from letopis.extract.simple_formats import css_refs
from letopis.model import Link, LinkType
from letopis.urls import join, joiner

_STYLE_LIMIT = 256 * 1024
_SRCSET_LIMIT = 16 * 1024
_LD_LIMIT = 64 * 1024
_LAZY = ("data-src", "data-original", "data-lazy-src")
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")
_new_link = tuple.__new__
# Looking a member up in its enumeration is slow in Python 3.11: done once.
_A = LinkType.A
_AREA = LinkType.AREA
_CSS = LinkType.CSS
_FEED = LinkType.FEED
_FORM = LinkType.FORM
_IFRAME = LinkType.IFRAME
_IMG = LinkType.IMG
_LINK = LinkType.LINK
_MEDIA = LinkType.MEDIA
_SCRIPT = LinkType.SCRIPT
_SITEMAP = LinkType.SITEMAP


REFERRING_SELECTOR = "object[data],[background],[cite],[formaction],[longdesc]"
REFERRING = frozenset(("data", "background", "cite", "formaction", "longdesc"))
"""Attributes that refer to other documents on elements that are walked for other reasons, or not at all."""
CITED = "cite"
"""The relation of a source that a quotation names: nothing that the page needs."""


def _reference_joiner(draft: PageDraft) -> Callable[[str], str | None]:
    """What makes addresses of the references of a page, as a browser that reads it in its charset does."""
    join_all, charset = joiner(draft.base), draft.charset
    if charset in ("", "utf-8") or charset.startswith("utf-16"):
        return join_all
    return lambda reference: join_all(in_page_charset(reference, charset))


class LinkCollector:
    """Collects what elements carry into a draft. Used for one page.

    `anchor` is the text of the last link seen, `alts` the texts of pictures
    since somebody cleared them, `join` what makes addresses of references.
    """

    def __init__(self, tree: LexborHTMLParser, draft: PageDraft, *, alts: bool, base: LexborNode | None) -> None:
        self.anchor = ""
        self.alts: list[str] = []
        self._keep_alts = alts
        self._tree = tree
        self._draft = draft
        self._links = draft.links
        self._head = HtmlHead()
        self._bare = 0
        self._base(base)
        self.join = _reference_joiner(draft)

    def handlers(self) -> dict[int, Callable[[LexborNode], None]]:
        """What takes in an element, by the parser's number of the element."""
        return {tag: method.__get__(self) for tag, method in ELEMENT_METHODS.items()}

    def style_attributes(self) -> None:
        """Links in the style attributes of any element."""
        self.styled([node.attributes.get("style") or "" for node in self._tree.css('[style*="url("]')])

    def styled(self, styles: Sequence[str]) -> None:
        """Links in style attributes that were found already."""
        for style in styles[:MAX_LINKS]:
            self._styles(style)

    def referring(self, found: Sequence[Mapping[str, str | None]]) -> None:
        """Links in attributes that elements of many kinds have; see `REFERRING`."""
        for attributes in found:
            self._add(attributes.get("data"), _MEDIA)
            self._add(attributes.get("background"), _IMG, rel="background")
            self._add(attributes.get("formaction"), _FORM)
            self._add(attributes.get("cite"), _LINK, rel=CITED)
            self._add(attributes.get("longdesc"), _LINK, rel=CITED)

    def settle(self) -> None:
        """Puts into the draft what only the whole page can tell."""
        self._head.settle(self._draft)
        self._bound()

    def settle_basic(self) -> None:
        """The same without descriptions and dates."""
        self._head.settle_basic(self._draft)
        self._bound()

    def settle_leading(self) -> None:
        """The same of what leads to other documents alone."""
        self._head.settle_leading(self._draft)
        self._bound()

    def _bound(self) -> None:
        if len(self._links) > MAX_LINKS:
            del self._links[MAX_LINKS:]
            self._draft.warn("there are more links than are kept; the rest was left out")

    def _base(self, node: LexborNode | None) -> None:
        """The first `<base>` holds for all links, wherever it stands."""
        if node is not None:
            self._draft.base = join(self._draft.url, node.attributes.get("href") or "") or self._draft.url

    def _add(
        self, ref: str | None, type: LinkType, text: str = "", rel: str | None = "", title: str | None = ""
    ) -> str:
        target = self.join(ref) if ref else None
        if target is None:
            return ""
        if len(self._links) <= MAX_LINKS:
            self._links.append(Link(target, type, text, rel or "", title or ""))
        return target

    def _a(self, node: LexborNode) -> None:
        attributes = node.attributes
        href = attributes.get("href")
        if href is None:
            return
        text = fold_whitespace(node.text()[:MAX_FIELD])
        self.anchor = text
        target = self.join(href)
        if target is None or len(self._links) > MAX_LINKS:
            return
        kind = _AREA if node.tag_id == AREA else _A
        if len(attributes) == 1 and text:  # nothing but an address, as most links
            self._links.append(_new_link(Link, (target, kind, text, "", "")))
            return
        if not text:
            self._bare = node.mem_id
            text = fold_whitespace((attributes.get("alt") or "")[:MAX_FIELD])
        rel, title = attributes.get("rel") or "", attributes.get("title") or ""
        self._links.append(_new_link(Link, (target, kind, text, rel, title)))

    def _img(self, node: LexborNode) -> None:
        attributes = node.attributes
        alt = fold_whitespace((attributes.get("alt") or "")[:MAX_FIELD])
        src = attributes.get("src")
        if not src or src.startswith("data:"):
            src = next((attributes[name] for name in _LAZY if attributes.get(name)), src)
        target = self._add(src, _IMG, alt, title=attributes.get("title"))
        srcset = attributes.get("srcset")
        for ref in srcset_urls(srcset) if srcset else ():
            if self.join(ref) != target:
                self._add(ref, _IMG, alt, rel="srcset")
        if alt and self._bare and _is_inside(node, self._bare):
            self._name_link(alt)
        if alt and self._keep_alts and len(self.alts) < MAX_BLOCKS:
            self.alts.append(alt)

    def _name_link(self, alt: str) -> None:
        """A link that shows only a picture is called what the picture is called."""
        last = next((at for at in range(len(self._links) - 1, -1, -1) if self._links[at].type is _A), None)
        if last is not None:
            self._links[last] = self._links[last]._replace(text=alt)
        self._bare = 0

    def _media(self, node: LexborNode) -> None:
        attributes = node.attributes
        self._add(attributes.get("src"), _MEDIA)
        self._add(attributes.get("poster"), _IMG)
        for ref in srcset_urls(attributes.get("srcset") or ""):
            self._add(ref, _IMG, rel="srcset")

    def _input(self, node: LexborNode) -> None:
        attributes = node.attributes
        self._add(attributes.get("src"), _IMG, fold_whitespace((attributes.get("alt") or "")[:MAX_FIELD]))

    def _frame(self, node: LexborNode) -> None:
        attributes = node.attributes
        self._add(attributes.get("src"), _IFRAME, title=attributes.get("title"))

    def _form(self, node: LexborNode) -> None:
        attributes = node.attributes
        self._add(attributes.get("action"), _FORM)

    def _link(self, node: LexborNode) -> None:
        attributes = node.attributes
        rel = (attributes.get("rel") or "").lower()
        kind = _LINK
        if "alternate" in rel and (attributes.get("type") or "").lower() in _FEEDS:
            kind = _FEED
        elif rel == "sitemap":
            kind = _SITEMAP
        target = self._add(attributes.get("href"), kind, rel=rel, title=attributes.get("title"))
        if rel == "canonical" and not self._draft.canonical:
            self._draft.canonical = target

    def _script(self, node: LexborNode) -> None:
        attributes = node.attributes
        self._add(attributes.get("src"), _SCRIPT)
        if attributes.get("type") == "application/ld+json" and len(self._head.ld) < 32:
            self._head.ld.append(node.text()[:_LD_LIMIT])

    def _meta(self, node: LexborNode) -> None:
        self._head.add(node.attributes)

    def _title(self, node: LexborNode) -> None:
        if ACTIONS.get(node.parent.tag_id if node.parent else 0) is not ElementAction.HIDE:
            self._draft.head(title=node.text())

    def _time(self, node: LexborNode) -> None:
        attributes = node.attributes
        stamp = attributes.get("datetime")
        if stamp and len(self._head.times) < 8:
            self._head.times.append(stamp)

    def _root(self, node: LexborNode) -> None:
        attributes = node.attributes
        self._draft.declared_language = primary_language(attributes.get("lang") or attributes.get("xml:lang") or "")

    def _style(self, node: LexborNode) -> None:
        self._styles(node.text())

    def _styles(self, text: str) -> None:
        for ref in css_refs(text[:_STYLE_LIMIT]):
            self._add(ref, _CSS)


ELEMENT_METHODS: dict[int, Callable[[LinkCollector, LexborNode], None]] = {
    tag: method
    for action, method in (
        (ElementAction.A, LinkCollector._a),
        (ElementAction.IMG, LinkCollector._img),
        (ElementAction.LINK, LinkCollector._link),
        (ElementAction.SCRIPT, LinkCollector._script),
        (ElementAction.FRAME, LinkCollector._frame),
        (ElementAction.FORM, LinkCollector._form),
        (ElementAction.MEDIA, LinkCollector._media),
        (ElementAction.INPUT, LinkCollector._input),
        (ElementAction.META, LinkCollector._meta),
        (ElementAction.TITLE, LinkCollector._title),
        (ElementAction.STYLE, LinkCollector._style),
        (ElementAction.TIME, LinkCollector._time),
        (ElementAction.ROOT, LinkCollector._root),
    )
    for tag in tags_of(action)
}
"""What takes in an element, by the parser's number of the element."""


def _is_inside(node: LexborNode, outer: int) -> bool:
    """Whether an element stands inside another, at most a few levels up."""
    above = node.parent
    for _ in range(4):
        if above is None or above.mem_id == outer:
            break
        above = above.parent
    return above is not None and above.mem_id == outer


def srcset_urls(srcset: str) -> list[str]:
    """The addresses of a srcset attribute: `a.png 1x, b.png 2x`. Addresses may hold commas."""
    found: list[str] = []
    wanted = True
    for word in srcset[:_SRCSET_LIMIT].split():
        part = word
        if not wanted:
            _, comma, part = word.partition(",")
            wanted = bool(comma)
        if wanted and part.strip(","):
            found.append(part.strip(","))
            wanted = part.endswith(",")
    return found[:32]

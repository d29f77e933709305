"""What single elements of an HTML page carry: links, the title, the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from selectolax.lexbor import LexborNode

from letopis.extract.charsets import in_page_charset
from letopis.extract.html_elements import ACTIONS, AREA, BLOCKS, BREAK, TEXT, ElementAction, tags_of
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
_JOINT = "\x1f"
"""Stands between the texts of a link while it is seen whether there are several."""
_MOST_CLIMBED = 64
_HIDING = (ElementAction.HIDE, ElementAction.OBJECT)
_new_link = tuple.__new__
AnyNode = Any
"""An element: a node of the parser's tree, or an event where a page is read without one."""
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

    def __init__(self, draft: PageDraft, *, alts: bool, base: str | None) -> None:
        self.anchor = ""
        self.alts: list[str] = []
        self._keep_alts = alts
        self._draft = draft
        self._links = draft.links
        self._head = HtmlHead()
        self._bare = 0
        if base is not None:
            draft.base = join(draft.url, base) or draft.url
        self.join = _reference_joiner(draft)

    def styled(self, styles: Sequence[str]) -> None:
        """Links in style attributes."""
        for style in styles[:MAX_LINKS]:
            self._styles(style)

    def backgrounds(self, found: Sequence[str]) -> None:
        """Background pictures of elements of any kind."""
        for ref in found:
            self._add(ref, _IMG, rel="background")

    def settle(self) -> None:
        """Adds to the draft what only the whole page shows."""
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

    def _add(
        self, ref: str | None, type: LinkType, text: str = "", rel: str | None = "", title: str | None = ""
    ) -> str:
        target = self.join(ref) if ref else None
        if target is None:
            return ""
        if len(self._links) <= MAX_LINKS:
            self._links.append(_new_link(Link, (target, type, text, rel or "", title or "")))
        return target

    def _a(self, node: AnyNode, attributes: dict[str, str | None]) -> None:
        if attributes.get("href") is None:
            return
        only = node.child
        if only is not None and only.tag_id == TEXT and only.next is None:  # most links hold one text
            text = (only.text_content or "")[:MAX_FIELD]
        else:
            text = node.text(separator=_JOINT)[:MAX_FIELD]
            if _JOINT in text:
                text = _spaced_text(node)
        self._anchor(attributes, fold_whitespace(text), _AREA if node.tag_id == AREA else _A, node.mem_id)

    def _anchor(self, attributes: dict[str, str | None], text: str, kind: LinkType, number: int) -> None:
        """A link that a reader can follow, with the text that it shows."""
        self.anchor = text
        target = self.join(attributes["href"] or "")
        if target is None or len(self._links) > MAX_LINKS:
            return
        if text and len(attributes) == 1:  # nothing but an address, as most links
            self._links.append(_new_link(Link, (target, kind, text, "", "")))
            return
        if not text:
            self._bare = number
            text = fold_whitespace((attributes.get("alt") or "")[:MAX_FIELD])
        rel, title = attributes.get("rel") or "", attributes.get("title") or ""
        self._links.append(_new_link(Link, (target, kind, text, rel, title)))

    def _img(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        alt = attributes.get("alt") or ""
        if alt:
            alt = fold_whitespace(alt[:MAX_FIELD])
        src = attributes.get("src")
        if not src or src.startswith("data:"):
            src = next((attributes[name] for name in _LAZY if attributes.get(name)), src)
        target = self._add(src, _IMG, alt, "", attributes.get("title"))
        srcset = attributes.get("srcset")
        if srcset:
            self._sizes(srcset, alt, target)
        if "longdesc" in attributes:
            self._add(attributes["longdesc"], _LINK, rel=CITED)
        if alt and self._bare and self._is_in_bare(node):
            self._name_link(alt)
        if alt and self._keep_alts and len(self.alts) < MAX_BLOCKS:
            self.alts.append(alt)

    def _sizes(self, srcset: str, alt: str, shown: str) -> None:
        """The same picture in other sizes, but for the one that is shown anyway."""
        for ref in srcset_urls(srcset):
            target = self.join(ref)
            if target is not None and target != shown and len(self._links) <= MAX_LINKS:
                self._links.append(_new_link(Link, (target, _IMG, alt, "srcset", "")))

    def _is_in_bare(self, node: AnyNode) -> bool:
        """Whether a picture stands in the last link that shows no text."""
        return _is_inside(node, self._bare)

    def _name_link(self, alt: str) -> None:
        """A link that shows only a picture is called what the picture is called."""
        last = next((at for at in range(len(self._links) - 1, -1, -1) if self._links[at].type is _A), None)
        if last is not None:
            self._links[last] = self._links[last]._replace(text=alt)
        self._bare = 0

    def _media(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._add(attributes.get("src"), _MEDIA)
        self._add(attributes.get("poster"), _IMG)
        for ref in srcset_urls(attributes.get("srcset") or ""):
            self._add(ref, _IMG, rel="srcset")

    def _input(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._add(attributes.get("src"), _IMG, fold_whitespace((attributes.get("alt") or "")[:MAX_FIELD]))
        self._add(attributes.get("formaction"), _FORM)

    def _cited(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._add(attributes.get("cite"), _LINK, rel=CITED)

    def _button(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._add(attributes.get("formaction"), _FORM)

    def _object(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._add(attributes.get("data"), _MEDIA)

    def _frame(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._add(attributes.get("src"), _IFRAME, title=attributes.get("title"))
        self._add(attributes.get("longdesc"), _LINK, rel=CITED)

    def _form(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._add(attributes.get("action"), _FORM)

    def _link(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        href = attributes.get("href")
        target = self.join(href) if href else None
        if target is None:
            return
        rel = (attributes.get("rel") or "").lower()
        kind = _FEED if leads_to_feed(rel, attributes) else _SITEMAP if rel == "sitemap" else _LINK
        if len(self._links) <= MAX_LINKS:
            self._links.append(_new_link(Link, (target, kind, "", rel, attributes.get("title") or "")))
        if rel == "canonical" and not self._draft.canonical:
            self._draft.canonical = target

    def _script(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        src = attributes.get("src")
        if src:
            self._add(src, _SCRIPT)
        if attributes.get("type") == "application/ld+json" and len(self._head.ld) < 32:
            self._head.ld.append(self._text_of(node)[:_LD_LIMIT])

    def _meta(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._head.add(attributes)

    def _title(self, node: AnyNode, attributes: dict[str, str | None]) -> None:
        if ACTIONS.get(node.parent.tag_id if node.parent else 0) not in _HIDING:
            self._draft.head(title=node.text())

    def _time(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        stamp = attributes.get("datetime")
        if stamp and len(self._head.times) < 8:
            self._head.times.append(stamp)

    def _root(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._draft.declared_language = primary_language(attributes.get("lang") or attributes.get("xml:lang") or "")

    def _style(self, node: LexborNode, attributes: dict[str, str | None]) -> None:
        self._styles(self._text_of(node))

    def _text_of(self, node: AnyNode) -> str:
        return str(node.text())

    def _styles(self, text: str) -> None:
        for ref in css_refs(text[:_STYLE_LIMIT]):
            self._add(ref, _CSS)


ElementMethod = Callable[[Any, AnyNode, dict[str, str | None]], None]
ELEMENT_METHODS: dict[int, ElementMethod] = {
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
        (ElementAction.CITED, LinkCollector._cited),
        (ElementAction.BUTTON, LinkCollector._button),
        (ElementAction.OBJECT, LinkCollector._object),
    )
    for tag in tags_of(action)
}
"""What takes in an element, by the parser's number of the element."""


def leads_to_feed(rel: str, attributes: Mapping[str, str | None]) -> bool:
    """Whether a `<link>` of this relation, in lower case, names a feed."""
    return "alternate" in rel and (attributes.get("type") or "").lower() in _FEEDS


def _spaced_text(node: LexborNode) -> str:
    """The text of a link that holds several, with a blank where a line or a block ends between them."""
    pieces: list[str] = []
    room, last = MAX_FIELD, 0
    for inner in node.traverse(include_text=True):
        tag = inner.tag_id
        if tag == BREAK:
            pieces.append(" ")
        elif tag == TEXT:
            block = _block_inside(inner, node.mem_id)
            if block != last and pieces:
                pieces.append(" ")
            last = block
            pieces.append((inner.text_content or "")[:room])
            room -= len(pieces[-1])
        if room <= 0:
            break
    return "".join(pieces)


def _block_inside(text: LexborNode, outer: int) -> int:
    """The nearest block element around a text inside of a link, or the link."""
    above = text.parent
    for _ in range(_MOST_CLIMBED):
        if above is None or above.mem_id == outer:
            break
        if above.tag_id in BLOCKS:
            return above.mem_id
        above = above.parent
    return outer


def _is_inside(node: LexborNode, outer: int) -> bool:
    """Whether an element is inside another, at most a few levels up."""
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

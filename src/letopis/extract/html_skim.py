"""Where an HTML page leads to, and nothing else of it: what a crawl asks of a page it meets for the first time.

Text is passed over, and of most elements nothing but the parser's number is
looked at.
"""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from letopis.extract.draft import MAX_LINKS, Draft
from letopis.extract.html_links import METHODS, Finder
from letopis.extract.html_names import ANCHOR, AREA, BASE, Do, tags_of
from letopis.extract.source import Source, charset_of
from letopis.model import Link, LinkType

_LEADING = frozenset((ANCHOR, AREA))
_TELLING = (Do.LINK, Do.META, Do.FRAME)
_WANTED = _LEADING | {BASE} | {tag for action in _TELLING for tag in tags_of(action)}
_A, _AREA = LinkType.A, LinkType.AREA
_UNLIKE_ASCII = ("utf-16", "utf-7", "iso-2022", "hz")
"""Charsets in which the bytes of plain letters mean something else."""
_new = tuple.__new__


def skim(source: Source, draft: Draft) -> None:
    """Links that lead to other documents, with `rel` but without their texts, and what is said to robots.

    References are nearly always ASCII, and then the charset of the page does
    not matter; it is found out only where one is not.
    """
    draft.charset = "utf-8"
    if _is_unlike_ascii(source):
        body, draft.charset = source.utf8()
        _read(parsed(body), draft)
    elif not _read(parsed(source.body), draft):
        body, draft.charset = source.utf8()
        if body is not source.body:
            draft.links.clear()
            _read(parsed(body), draft)


def parsed(body: bytes) -> LexborHTMLParser:
    """The tree of a page in UTF-8."""
    return LexborHTMLParser(body.removeprefix(BOM_UTF8))


def _is_unlike_ascii(source: Source) -> bool:
    body = source.body
    marked = b"\x1b" in body or body.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    return marked or charset_of(source.header("content-type")).startswith(_UNLIKE_ASCII)


def _read(tree: LexborHTMLParser, draft: Draft) -> bool:
    """Whether all that was found is ASCII."""
    root = tree.root
    if root is None:
        return True
    nodes = list(islice((node for node in root.traverse() if node.tag_id in _WANTED), MAX_LINKS + 1))
    finder = Finder(tree, draft, alts=False, base=_base(nodes))
    links, join = draft.links, finder.join
    plain = True
    for node in nodes:
        tag = node.tag_id
        if tag in _LEADING:
            attributes = node.attributes
            href = attributes.get("href")
            if href is None:
                continue
            plain = plain and href.isascii()
            target = join(href)
            if target is not None:
                kind = _AREA if tag == AREA else _A
                links.append(_new(Link, (target, kind, "", attributes.get("rel") or "", "")))
        else:
            plain = plain and _is_plain(node)
            if tag != BASE:
                METHODS[tag](finder, node)
    finder.settle_leading()
    return plain


def _is_plain(node: LexborNode) -> bool:
    """Whether what a base, another element of the head or a frame leads to is ASCII."""
    attributes = node.attributes
    told = attributes.get("content") if "http-equiv" in attributes else None
    return all((ref or "").isascii() for ref in (attributes.get("href"), attributes.get("src"), told))


def _base(nodes: Iterable[LexborNode]) -> LexborNode | None:
    return next((node for node in nodes if node.tag_id == BASE and "href" in node.attributes), None)

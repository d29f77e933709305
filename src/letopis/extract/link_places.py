"""Where links stand in the source of a page, and the names of the places in it that links can lead to. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from html import unescape
from urllib.parse import unquote

from letopis.extract.charsets import in_page_charset
from letopis.extract.html_links import srcset_urls
from letopis.extract.rewriter import ATTRIBUTE_VALUE
from letopis.extract.simple_formats import css_refs
from letopis.tuples import NamedTuple
from letopis.urls import joiner

_ENDS = r"(?>[^>\"']++|\"[^\"]*\"|'[^']*')*+>?"
_TAG = re.compile(
    rf"<(?:!--.*?(?:-->|\Z)|(?P<raw>script|style|textarea|title|xmp)\b(?P<head>{_ENDS}).*?(?=</(?P=raw)|\Z)"
    rf"|(?P<name>[a-z][a-z0-9]*)(?=[\s/])(?P<rest>{_ENDS}))",
    re.IGNORECASE | re.DOTALL,
)
_REFERENCE = re.compile(
    r"(?<=[\s\"'/])(href|src|srcset|imagesrcset|action|formaction|poster|background|cite|longdesc|data|style)"
    + ATTRIBUTE_VALUE,
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\s\"'/])(id|name)" + ATTRIBUTE_VALUE, re.IGNORECASE)


class LinkPlace(NamedTuple):
    """A link in the source: line and column of its attribute from 1 on, its address, and the place it names there."""

    line: int
    column: int
    target: str
    fragment: str


def link_places(text: str, url: str, charset: str = "utf-8") -> Iterator[LinkPlace]:
    """The links of a page in the order of its source."""
    join = joiner(url)
    breaks = [found.start() for found in re.finditer("\n", text)]
    for tag in _TAG.finditer(text):
        for at, written in _references(tag):
            reference, _, fragment = written.strip().partition("#")
            target = join(in_page_charset(reference, charset)) if reference else url
            if target is None:
                continue
            if (tag["name"] or "").lower() == "base":
                join, url = joiner(target), target
                continue
            line = bisect_right(breaks, at)
            yield LinkPlace(line + 1, at - (breaks[line - 1] if line else -1), target, fragment)


def _references(tag: re.Match[str]) -> Iterator[tuple[int, str]]:
    """What a tag refers to, with the places of its attributes; a style sheet in a page stands where its tag does."""
    part = "head" if tag["raw"] else "rest"
    for found in _REFERENCE.finditer(tag[part] or ""):
        name, value = found[1].lower(), unescape(_value(found))
        if name == "data" and (tag["name"] or "").lower() != "object":
            continue
        several = srcset_urls if name.endswith("srcset") else css_refs if name == "style" else None
        for written in several(value) if several is not None else (value,):
            yield tag.start(part) + found.start(), written
    if (tag["raw"] or "").lower() == "style":
        yield from ((tag.start(), written) for written in css_refs(tag[0][tag.end("head") - tag.start() :]))


def place_names(text: str) -> frozenset[str]:
    """The ids of elements, and the names of anchors."""
    found = set()
    for tag in _TAG.finditer(text):
        for name in _NAME.finditer(tag["head"] or tag["rest"] or ""):
            if name[1].lower() == "id" or (tag["name"] or "").lower() in ("a", "map"):
                found.add(unescape(_value(name)))
    return frozenset(found)


def leads_somewhere(fragment: str, names: frozenset[str]) -> bool:
    """Whether a page has the place: browsers know the top themselves, and scripts what begins with `!` or `/`."""
    if not fragment or fragment.lower() == "top" or fragment.startswith(("!", "/", ":~:")):
        return True
    plain = fragment.partition(":~:")[0]
    return plain in names or unquote(plain) in names


def _value(found: re.Match[str]) -> str:
    return found[3] if found[3] is not None else found[4] if found[4] is not None else found[5]

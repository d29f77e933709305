"""What of a page is compared and shown: chosen parts in, noisy parts out.

Filters act on copies, at comparison and display; what is stored is always
what the server sent. They run in the order given. Markup filters (`css`,
`xpath`, `remove`) and `jsonpath` choose from the source; `include`,
`exclude` and `ignore` work on lines or blocks of text afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import regex
from lxml import etree
from lxml import html as lxml_html
from selectolax.lexbor import LexborHTMLParser

from letopis.change.jsonpath import compile_path, find
from letopis.errors import UsageError
from letopis.model import Block, Page

_SECONDS = 1.0
_MOST_PATTERN = 2000
_MOST_SOURCE = 1 << 24


class FilterKind(StrEnum):
    """What a filter does; the words are those of settings and the command line."""

    CSS = "css"
    XPATH = "xpath"
    REMOVE = "remove"
    JSONPATH = "jsonpath"
    INCLUDE = "include"
    EXCLUDE = "exclude"
    IGNORE = "ignore"


_SOURCE_KINDS = frozenset((FilterKind.CSS, FilterKind.XPATH, FilterKind.REMOVE, FilterKind.JSONPATH))


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter; a wrong expression is a UsageError at once, not at the next check.

    css, xpath: keep what matches. remove: drop elements by CSS. jsonpath:
    keep values. include, exclude: keep or drop lines that match a regular
    expression. ignore: drop the matching text itself, wherever it stands.
    """

    kind: FilterKind
    expression: str

    def __post_init__(self) -> None:
        _CHECKS[self.kind](self.expression)


def filter_source(source: str, content_type: str, filters: Sequence[Filter]) -> str:
    """The source after its markup or JSON filters; unchanged when it has none.

    JSON gives one value a line, sorted keys. UsageError when nothing can be
    parsed as what the filter needs.
    """
    is_json = "json" in content_type
    for one in filters:
        if one.kind is FilterKind.JSONPATH:
            source = _by_jsonpath(source, one.expression)
            is_json = False
        elif one.kind in _SOURCE_KINDS and not is_json:
            source = _MARKUP[one.kind](source[:_MOST_SOURCE], one.expression)
    return source


def filter_text(text: str, filters: Sequence[Filter]) -> str:
    """The text after its line filters."""
    lines = text.split("\n")
    for one in filters:
        lines = _by_pattern(lines, one) if one.kind not in _SOURCE_KINDS else lines
    return "\n".join(lines)


def filter_page(page: Page, filters: Sequence[Filter]) -> Page:
    """The page with its blocks filtered like lines; frame marks follow their blocks."""
    patterns = [one for one in filters if one.kind not in _SOURCE_KINDS]
    if not patterns:
        return page
    kept: list[tuple[int, Block]] = []
    for index, block in enumerate(page.blocks):
        texts = [block.text]
        for one in patterns:
            texts = _by_pattern(texts, one)
        kept += [(index, Block(block.kind, text)) for text in texts if text]
    frame = frozenset(n for n, (index, _) in enumerate(kept) if index in page.frame)
    return replace(page, blocks=tuple(block for _, block in kept), frame=frame)


def _by_css(source: str, selector: str) -> str:
    return "\n".join(node.html or "" for node in LexborHTMLParser(source).css(selector))


def _by_remove(source: str, selector: str) -> str:
    document = LexborHTMLParser(source)
    chosen = document.css(selector)
    if any(node.tag == "html" for node in chosen):
        return ""
    for node in chosen:
        node.decompose()
    return document.html or ""


def _by_xpath(source: str, expression: str) -> str:
    parser = lxml_html.HTMLParser(no_network=True, huge_tree=False, encoding="utf-8")
    try:
        root = lxml_html.fromstring(source.encode("utf-8", "replace") or b"<html></html>", parser=parser)
        found = root.xpath(expression, smart_strings=False)
    except (etree.XPathError, etree.ParserError) as error:
        raise UsageError(
            f"the XPath '{expression}' cannot be used on this page ({error}); correct the expression"
        ) from None
    return "\n".join(_xpath_text(item) for item in (found if isinstance(found, list) else [found]))


def _xpath_text(item: object) -> str:
    if isinstance(item, etree._Element):
        return str(etree.tostring(item, encoding="unicode", method="html", with_tail=False))
    return str(item)


def _by_jsonpath(source: str, expression: str) -> str:
    try:
        document = json.loads(source)
    except (ValueError, RecursionError):
        raise UsageError(
            f"the JSONPath '{expression}' needs a JSON document; remove the filter or watch another URL"
        ) from None
    return "\n".join(
        json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) for value in find(document, expression)
    )


def _by_pattern(lines: Iterable[str], one: Filter) -> list[str]:
    pattern = _pattern(one.expression)
    try:
        if one.kind is FilterKind.IGNORE:
            return pattern.sub("", "\n".join(lines), timeout=_SECONDS).split("\n")
        wanted = one.kind is FilterKind.INCLUDE
        return [line for line in lines if bool(pattern.search(line, timeout=_SECONDS, concurrent=False)) == wanted]
    except TimeoutError:
        raise UsageError(
            f"the pattern '{one.expression}' takes too long on this page; write it without nested repeats"
        ) from None


def _pattern(expression: str) -> regex.Pattern[str]:
    if len(expression) > _MOST_PATTERN:
        raise UsageError(f"a pattern of {len(expression)} characters is too long; use at most {_MOST_PATTERN}")
    try:
        return regex.compile(expression, regex.MULTILINE)
    except regex.error as error:
        raise UsageError(f"'{expression}' is not a regular expression ({error}); correct it") from None


def _check_css(selector: str) -> None:
    try:
        LexborHTMLParser("<p></p>").css(selector)
    except Exception as error:
        raise UsageError(f"'{selector}' is not a CSS selector ({error}); correct it") from None


def _check_xpath(expression: str) -> None:
    try:
        etree.XPath(expression)
    except etree.XPathError as error:
        raise UsageError(f"'{expression}' is not an XPath ({error}); correct it") from None


def _check_pattern(expression: str) -> None:
    _pattern(expression)


def _check_jsonpath(expression: str) -> None:
    compile_path(expression)


_MARKUP = {FilterKind.CSS: _by_css, FilterKind.XPATH: _by_xpath, FilterKind.REMOVE: _by_remove}
_CHECKS = {
    FilterKind.CSS: _check_css,
    FilterKind.REMOVE: _check_css,
    FilterKind.XPATH: _check_xpath,
    FilterKind.JSONPATH: _check_jsonpath,
    FilterKind.INCLUDE: _check_pattern,
    FilterKind.EXCLUDE: _check_pattern,
    FilterKind.IGNORE: _check_pattern,
}

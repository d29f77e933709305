"""What of a page is compared and shown: selected parts in, noisy parts out, by CSS, XPath, JSONPath or pattern.

Filters work on copies, for comparison and display; the archive stores what the server sent. They run in the given
order; consecutive filters of one kind select together what any of them finds. Markup filters (`css`, `xpath`,
`remove`) and `jsonpath` select from the source; `include`, `exclude` and `ignore` then work on lines or blocks of text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from selectolax.lexbor import LexborHTMLParser

from letopis.bounded import check_pattern, run_bounded
from letopis.change.offers import price_markup, stock_markup
from letopis.errors import TooCostly, UsageError
from letopis.lazy import etree, lazy, regex
from letopis.model import Block, Page
from letopis.model.page import FilterKind

if TYPE_CHECKING:
    from lxml import html as lxml_html
else:
    lxml_html = lazy("lxml.html")

JsonPathStep = Callable[[Any], Iterable[Any]]
_TOKEN = re.compile(
    r"\.\.(?P<deep>\*|[^\s.\[\]()'\"*?@$]+|(?=\[))"
    r"|\.(?P<name>\*|[^\s.\[\]()'\"*?@$]+)"
    r"|\[\s*(?P<inside>\*|'(?:[^'\\]|\\.)*'(?:\s*,\s*'(?:[^'\\]|\\.)*')*|\"(?:[^\"\\]|\\.)*\"(?:\s*,\s*\"(?:[^\"\\]|\\.)*\")*"
    r"|(?:-?\d{1,18})?\s*:\s*(?:-?\d{1,18})?(?:\s*:\s*(?:-?\d{1,18})?)?|-?\d{1,18}(?:\s*,\s*-?\d{1,18})*)\s*\]"
)
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_MOST_VALUES = 100_000


def compile_jsonpath(path: str) -> list[JsonPathStep]:
    """The steps of a path; UsageError names the place that cannot be read."""
    text = path.strip()
    at = 1 if text.startswith("$") else 0
    if at == 0 and not text.startswith(("[", ".")):
        text = "." + text
    steps: list[JsonPathStep] = []
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise UsageError(
                f"'{path}' is not a JSONPath that Letopis reads (at '{text[at : at + 20]}'); use $.a.b[0], [*] or .."
            )
        steps += _steps(token)
        at = token.end()
    return steps


def jsonpath_values(document: Any, path: str) -> list[Any]:
    """All values at a path, in document order, at most 100,000."""
    values: Iterable[Any] = [document]
    for step in compile_jsonpath(path):
        values = list(_limited(value for parent in values for value in step(parent)))
    return list(values)


def _limited(values: Iterator[Any]) -> Iterator[Any]:
    for n, value in enumerate(values):
        if n == _MOST_VALUES:
            raise UsageError(f"the JSONPath finds more than {_MOST_VALUES} values; choose a narrower one")
        yield value


def _steps(token: re.Match[str]) -> list[JsonPathStep]:
    if token["deep"] is not None:
        return [_descend] + ([_named(token["deep"])] if token["deep"] else [])
    if token["name"] is not None:
        return [_named(token["name"])]
    inside = token["inside"]
    if inside == "*":
        return [_children]
    if inside[0] in "'\"":
        return [_keys([re.sub(r"\\(.)", r"\1", one or two) for one, two in _QUOTED.findall(inside)])]
    if ":" in inside:
        return [_slice(*[int(part.strip()) if part.strip() else None for part in inside.split(":")])]
    return [_indices([int(part.strip()) for part in inside.split(",")])]


def _named(name: str) -> JsonPathStep:
    return _children if name == "*" else _keys([name])


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _descend(value: Any) -> Iterator[Any]:
    """The value and all values inside it, by a stack: no depth can exhaust it."""
    stack = [value]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(_children(current))))


def _keys(names: list[str]) -> JsonPathStep:
    return lambda value: [value[name] for name in names if name in value] if isinstance(value, dict) else ()


def _indices(wanted: list[int]) -> JsonPathStep:
    return lambda value: [value[n] for n in wanted if -len(value) <= n < len(value)] if isinstance(value, list) else ()


def _slice(*bounds: int | None) -> JsonPathStep:
    if len(bounds) == 3 and bounds[2] == 0:
        raise UsageError("the step of a JSONPath slice must not be 0; write [start:stop:1]")
    return lambda value: value[slice(*bounds)] if isinstance(value, list) else ()


_FILTER_SECONDS = 5.0
_MOST_EXPRESSION = 2000
_MOST_SOURCE = 1 << 24


_SOURCE_KINDS = frozenset(
    (FilterKind.CSS, FilterKind.XPATH, FilterKind.REMOVE, FilterKind.JSONPATH, FilterKind.PRICE, FilterKind.STOCK)
)


@dataclass(frozen=True, slots=True)
class ContentFilter:
    """One filter; an invalid expression raises a UsageError at once, not at the next check.

    css, xpath: keep what matches. remove: drop elements by CSS. jsonpath: keep values. include, exclude: keep or drop
    lines that match a regular expression. ignore: drop the matching text itself, wherever it is. price, stock: keep
    the price, or whether a product is in stock, according to the elements that match a CSS selector.
    """

    kind: FilterKind
    expression: str

    def __post_init__(self) -> None:
        if len(self.expression) > _MOST_EXPRESSION:
            raise UsageError(
                f"a filter of {len(self.expression)} characters is too long; use at most {_MOST_EXPRESSION}"
            )
        _CHECKS[self.kind](self.expression)


def filter_source(source: str, content_type: str, filters: Sequence[ContentFilter]) -> str:
    """The source after its markup or JSON filters; unchanged when it has none.

    JSON gives one value a line, sorted keys. UsageError when the source is not what the filter needs, or when it takes
    too long.
    """
    chosen = [one for one in filters if one.kind in _SOURCE_KINDS]
    return _filtered("source", chosen, [source], content_type)[0][0] if chosen else source


def filter_text(text: str, filters: Sequence[ContentFilter]) -> str:
    """The text after its line filters."""
    patterns = [one for one in filters if one.kind not in _SOURCE_KINDS]
    return "\n".join(_filtered("lines", patterns, text.split("\n"))[0]) if patterns else text


def filter_page(page: Page, filters: Sequence[ContentFilter]) -> Page:
    """The page with its blocks filtered like lines; frame marks follow their blocks."""
    patterns = [one for one in filters if one.kind not in _SOURCE_KINDS]
    if not patterns:
        return page
    kept = [
        (index, Block(block.kind, text))
        for index, (block, texts) in enumerate(
            zip(page.blocks, _filtered("blocks", patterns, [block.text for block in page.blocks]), strict=True)
        )
        for text in texts
        if text
    ]
    frame = frozenset(n for n, (index, _) in enumerate(kept) if index in page.frame)
    cells = page.cells.among([index for index, _ in kept])
    return page._replace(blocks=tuple(block for _, block in kept), frame=frame, cells=cells)


def _filtered(step: str, filters: Sequence[ContentFilter], texts: list[str], content_type: str = "") -> list[list[str]]:
    """Filters come from users and pages from strangers: both meet where they can be stopped."""
    order = {"step": step, "filters": [(one.kind, one.expression) for one in filters], "content_type": content_type}
    try:
        answer = run_bounded(f"{__name__}:filter_for_another", order, json.dumps(texts).encode(), _FILTER_SECONDS)
    except TooCostly as error:
        shown = ", ".join(f"{one.kind}:{one.expression}"[:80] for one in filters)
        raise UsageError(f"the filter '{shown}' cannot be used on this page: {error}; write a simpler one") from None
    found: list[list[str]] = json.loads(answer)
    return found


def filter_for_another(order: Mapping[str, Any], body: bytes) -> bytes:
    """Source, lines or blocks behind filters, as JSON, for the process that asked."""
    texts: list[str] = json.loads(body)
    filters = [(FilterKind(kind), expression) for kind, expression in order["filters"]]
    if order["step"] == "source":
        return json.dumps([[_chosen(texts[0], order["content_type"], filters)]]).encode()
    groups = [texts] if order["step"] == "lines" else [[text] for text in texts]
    for kind, expressions in _runs(filters):
        patterns = [_pattern(expression) for expression in expressions]
        groups = [_by_patterns(group, kind, patterns) for group in groups]
    return json.dumps(groups).encode()


_OFFERS = (FilterKind.PRICE, FilterKind.STOCK)
_OF_MARKUP = (FilterKind.CSS, FilterKind.XPATH, *_OFFERS)


def _runs(filters: Iterable[tuple[FilterKind, str]]) -> Iterator[tuple[FilterKind, list[str]]]:
    """Filters of one kind that follow each other."""
    for kind, run in groupby(filters, key=lambda one: one[0]):
        yield kind, [expression for _, expression in run]


def _chosen(source: str, content_type: str, filters: Sequence[tuple[FilterKind, str]]) -> str:
    is_json = "json" in content_type
    of_markup = next((f"{kind}:{expression}" for kind, expression in filters if kind in _OF_MARKUP), "")
    if of_markup and (not _may_hold_markup(content_type) or (is_json and filters[0][0] is not FilterKind.JSONPATH)):
        raise UsageError(
            f"the filter '{of_markup}' needs an HTML or XML document, this one is {content_type}; "
            "remove the filter or watch another URL"
        )
    for is_offer, same in groupby(filters, key=lambda one: one[0] in _OFFERS):
        if is_offer and not is_json:
            source = "\n".join([_MARKUP_FILTERS[kind](source[:_MOST_SOURCE], expression) for kind, expression in same])
            continue
        for kind, expressions in _runs(same):
            if kind is FilterKind.JSONPATH:
                source = _by_jsonpath(source, expressions)
                is_json = False
            elif not is_json:
                source = _by_markup(source[:_MOST_SOURCE], kind, expressions)
    return source


def _may_hold_markup(content_type: str) -> bool:
    """False for documents of bytes that are no text, as pictures and PDF are."""
    return not content_type or content_type.startswith("text/") or content_type.endswith(("xml", "html", "json"))


def _by_markup(source: str, kind: FilterKind, expressions: list[str]) -> str:
    if kind is FilterKind.XPATH:
        return "\n".join([_by_xpath(source, expression) for expression in expressions])
    return _MARKUP_FILTERS[kind](source, ", ".join(expressions))  # in the order of the page


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


def _by_price(source: str, selector: str) -> str:
    return price_markup(_by_css(source, selector))


def _by_stock(source: str, selector: str) -> str:
    return stock_markup(_by_css(source, selector))


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


def _by_jsonpath(source: str, paths: list[str]) -> str:
    try:
        document = json.loads(source)
    except (ValueError, RecursionError):
        raise UsageError(
            f"the JSONPath '{paths[0]}' needs a JSON document; remove the filter or watch another URL"
        ) from None
    values = (value for path in paths for value in jsonpath_values(document, path))
    return "\n".join(json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1) for value in values)


def _by_patterns(lines: list[str], kind: FilterKind, patterns: list[regex.Pattern[str]]) -> list[str]:
    if kind is FilterKind.IGNORE:
        for pattern in patterns:
            lines = pattern.sub("", "\n".join(lines)).split("\n")
        return lines
    wanted = kind is FilterKind.INCLUDE
    return [line for line in lines if any(pattern.search(line) for pattern in patterns) == wanted]


def _pattern(expression: str) -> regex.Pattern[str]:
    try:
        return regex.compile(expression, regex.MULTILINE)
    except (regex.error, OverflowError, RecursionError) as error:
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
    check_pattern(expression)


def _check_jsonpath(expression: str) -> None:
    compile_jsonpath(expression)


_MARKUP_FILTERS = {
    FilterKind.CSS: _by_css,
    FilterKind.REMOVE: _by_remove,
    FilterKind.PRICE: _by_price,
    FilterKind.STOCK: _by_stock,
}
_CHECKS = {
    FilterKind.CSS: _check_css,
    FilterKind.REMOVE: _check_css,
    FilterKind.XPATH: _check_xpath,
    FilterKind.JSONPATH: _check_jsonpath,
    FilterKind.INCLUDE: _check_pattern,
    FilterKind.EXCLUDE: _check_pattern,
    FilterKind.IGNORE: _check_pattern,
    FilterKind.PRICE: _check_css,
    FilterKind.STOCK: _check_css,
}

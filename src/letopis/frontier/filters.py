"""What a crawl selects: filters as small expressions, the focus on words and languages, and no spider traps.

Filters as small expressions: `host == "a.cz" and depth < 5 and path ~ "^/en/"`.

    expression  = or
    or          = and { "or" and }
    and         = not { "and" not }
    not         = "not" not | "(" or ")" | comparison
    comparison  = field operator value | value "in" field | field "in" "(" value {"," value} ")"
    operator    = "==" | "!=" | "<" | "<=" | ">" | ">=" | "~"

Text fields: url, host, path, type, lang, words. Number fields: depth, status, bytes. `~` searches a regular expression;
`"word" in words` searches a part of the text. Expressions can call nothing and reach nothing; only the time of a
regular expression is not bounded, so only owners may write filters. A comparison with a field that is not known yet
(status before the fetch) is neither true nor false, and a filter refuses only what is false, never what is unknown.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote

from xxhash import xxh3_64_intdigest

from letopis.bounded import BoundedPattern
from letopis.errors import UsageError
from letopis.tuples import NamedTuple

_TEXTS = ("url", "host", "path", "type", "lang", "words")
_NUMBERS = ("depth", "status", "bytes")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>\d+(?:\.\d+)?)(?P<unit>[A-Za-z]*)"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<sign>==|!=|<=|>=|<|>|~|\(|\)|,))""",
    re.VERBOSE | re.ASCII,
)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "kb": 10**3, "mb": 10**6, "kib": 2**10, "mib": 2**20}
_MOST_NESTED = 50
_MOST_CHARACTERS = 4096


class FilterFacts(NamedTuple):
    """The fields of a filter. None: not known yet."""

    url: str | None = None
    host: str | None = None
    path: str | None = None
    depth: int | None = None
    type: str | None = None
    status: int | None = None
    bytes: int | None = None
    lang: str | None = None
    words: str | None = None


FilterTest = Callable[[FilterFacts], bool | None]
"""True, False, or None if a fact is missing."""


class _Token(NamedTuple):
    kind: str
    value: str | float
    column: int


class CrawlFilter(NamedTuple):
    """A parsed expression; an empty text accepts everything."""

    text: str
    test: FilterTest

    def passes(self, facts: FilterFacts) -> bool:
        """Whether it is not false, as far as the facts are known."""
        return self.test(facts) is not False


def parse_crawl_filter(text: str) -> CrawlFilter:
    """The filter of an expression; UsageError points at the column that cannot be read."""
    if not text.strip():
        return CrawlFilter(text, lambda facts: True)
    if len(text) > _MOST_CHARACTERS:
        raise UsageError(f"a filter has at most {_MOST_CHARACTERS} characters; split it up")
    parser = _Parser(text, _tokens(text))
    test = parser.either(0)
    parser.end()
    return CrawlFilter(text, test)


def _wrong(text: str, column: int, what: str) -> UsageError:
    return UsageError(f"filter, column {column + 1}: {what}\n  {text}\n  {' ' * column}^")


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    place = 0
    while text[place:].strip():
        found = _TOKEN.match(text, place)
        if found is None:
            column = place + len(text[place:]) - len(text[place:].lstrip())
            raise _wrong(text, column, f"cannot read {text[column]!r}; put texts in quotes")
        tokens.append(_token(text, found))
        place = found.end()
    return tokens


def _token(text: str, found: re.Match[str]) -> _Token:
    kind = "number" if found["number"] else str(found.lastgroup)
    column = found.start(kind)
    if kind == "text":
        return _Token(kind, re.sub(r"\\([\\\"'])", r"\1", found["text"][1:-1]), column)
    if kind == "number":
        if found["unit"].lower() not in _UNITS:
            raise _wrong(text, column, f"'{found['unit']}' is not a unit; write 500, 10k or 2MiB")
        return _Token(kind, float(found["number"]) * _UNITS[found["unit"].lower()], column)
    return _Token(kind, found[kind], column)


class _Parser:
    """Recursive descent; each method returns a test."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text, self._tokens, self._place = text, tokens, 0

    def end(self) -> None:
        """Nothing may follow."""
        if self._place < len(self._tokens):
            raise self._expected("'and', 'or' or the end")

    def either(self, depth: int) -> FilterTest:
        """Tests joined by `or`."""
        tests = [self._both(depth)]
        while self._is("word", "or"):
            tests.append(self._both(depth))
        return tests[0] if len(tests) == 1 else _joined(tests, deciding=True)

    def _both(self, depth: int) -> FilterTest:
        tests = [self._negated(depth)]
        while self._is("word", "and"):
            tests.append(self._negated(depth))
        return tests[0] if len(tests) == 1 else _joined(tests, deciding=False)

    def _negated(self, depth: int) -> FilterTest:
        if depth > _MOST_NESTED:
            raise self._expected(f"no more than {_MOST_NESTED} levels")
        if self._is("word", "not"):
            inner = self._negated(depth + 1)
            return _opposite(inner)
        if self._is("sign", "("):
            inner = self.either(depth + 1)
            self._need("sign", ")")
            return inner
        return self._comparison()

    def _comparison(self) -> FilterTest:
        token = self._next("a field or a text")
        if token.kind == "text":
            self._need("word", "in")
            return _contains(str(token.value), self._field())
        self._place -= 1
        name = self._field()
        if self._is("word", "in"):
            return _one_of(name, self._values(name))
        sign = self._next("==, !=, <, <=, >, >=, ~ or in")
        if sign[:2] == ("sign", "~"):
            return _matches(name, self._pattern(name))
        if sign.kind != "sign" or str(sign.value) not in _COMPARE:
            self._place -= 1
            raise self._expected("==, !=, <, <=, >, >=, ~ or in")
        return _compares(name, _COMPARE[str(sign.value)], self._value(name))

    def _field(self) -> str:
        token = self._next("a field")
        if token.kind != "word" or token.value not in (*_TEXTS, *_NUMBERS):
            self._place -= 1
            raise self._expected(f"one of the fields {', '.join((*_TEXTS, *_NUMBERS))}")
        return str(token.value)

    def _values(self, name: str) -> tuple[str | float, ...]:
        self._need("sign", "(")
        values = [self._value(name)]
        while self._is("sign", ","):
            values.append(self._value(name))
        self._need("sign", ")")
        return tuple(values)

    def _value(self, name: str) -> str | float:
        wanted = "number" if name in _NUMBERS else "text"
        token = self._next(f"a {wanted}")
        if token.kind != wanted:
            self._place -= 1
            raise self._expected(f"a {wanted}{' in quotes' if wanted == 'text' else ''}, as {name} is one")
        return token.value

    def _pattern(self, name: str) -> BoundedPattern:
        column = self._tokens[self._place].column if self._place < len(self._tokens) else len(self._text)
        value = str(self._value(name))
        try:
            return BoundedPattern(value)
        except UsageError as error:
            raise _wrong(self._text, column, str(error)) from None

    def _is(self, kind: str, value: str) -> bool:
        """Step over a token if it is this one."""
        if self._place < len(self._tokens) and self._tokens[self._place][:2] == (kind, value):
            self._place += 1
            return True
        return False

    def _need(self, kind: str, value: str) -> None:
        if not self._is(kind, value):
            raise self._expected(f"'{value}'")

    def _next(self, what: str) -> _Token:
        if self._place >= len(self._tokens):
            raise self._expected(what)
        self._place += 1
        return self._tokens[self._place - 1]

    def _expected(self, what: str) -> UsageError:
        at_end = self._place >= len(self._tokens)
        column = len(self._text.rstrip()) if at_end else self._tokens[self._place].column
        return _wrong(self._text, column, f"expected {what}")


def _joined(tests: list[FilterTest], deciding: bool) -> FilterTest:
    """`or` (one true decides) and `and` (one false decides), with unknown in between."""

    def test(facts: FilterFacts) -> bool | None:
        unknown = False
        for one in tests:
            result = one(facts)
            if result is deciding:
                return deciding
            unknown = unknown or result is None
        return None if unknown else not deciding

    return test


def _opposite(inner: FilterTest) -> FilterTest:
    def test(facts: FilterFacts) -> bool | None:
        result = inner(facts)
        return None if result is None else not result

    return test


def _about(name: str, holds: Callable[[Any], bool]) -> FilterTest:
    """A test of one field, unknown while the field is."""

    def test(facts: FilterFacts) -> bool | None:
        known = getattr(facts, name)
        return None if known is None else holds(known)

    return test


def _compares(name: str, compare: Callable[[Any, Any], bool], value: str | float) -> FilterTest:
    return _about(name, lambda known: compare(known, value))


def _one_of(name: str, values: tuple[str | float, ...]) -> FilterTest:
    return _about(name, lambda known: known in values)


def _contains(part: str, name: str) -> FilterTest:
    return _about(name, lambda known: part in str(known))


def _matches(name: str, pattern: BoundedPattern) -> FilterTest:
    return _about(name, lambda known: pattern.found_in(str(known), in_doubt=False))


_WORD = re.compile(r"[^\W_]+")
_TITLE_WEIGHT = 3.0
_ENOUGH_HITS = 5.0
_MOST_WORTH = 0.99
"""Below 1, so that the integer part of a priority is the number of poor pages before it."""


class CrawlFocus(NamedTuple):
    """What a crawl is about. Empty parts do not count.

    `keywords` are lower-case words, or phrases of words with blanks between. A page's links are followed when its score
    reaches `threshold`, and also `patience` links further, since good pages may follow poor ones.
    """

    keywords: tuple[str, ...] = ()
    languages: frozenset[str] = frozenset()
    threshold: float = 0.1
    patience: int = 1


class LinkInterest(NamedTuple):
    """What a page means for its links: whether to follow, with which priority, how far from a good page."""

    score: float
    follow: bool
    priority: float
    poor: int


def focus_score(focus: CrawlFocus, title: str, text: str, language: str) -> float:
    """0 to 1: how much a page is about the key words, in a language that counts.

    Each key word counts at most once, and long pages need more hits.
    """
    if focus.languages and language and language not in focus.languages:
        return 0.0
    if not focus.keywords:
        return 1.0
    in_title, in_text = _fold_words(title), _fold_words(text)
    scale = _ENOUGH_HITS * max(1.0, math.sqrt(len(in_text) / 4000.0))
    found = 0.0
    for word in focus.keywords:
        hits = _TITLE_WEIGHT * in_title.count(f" {word} ") + in_text.count(f" {word} ")
        found += min(1.0, hits / scale)
    return min(1.0, found / len(focus.keywords))


def link_interest(focus: CrawlFocus, page_score: float, poor: int, anchor: str = "") -> LinkInterest:
    """The plan for a link of a page with this score, found `poor` pages after the last good one."""
    behind = 0 if page_score >= focus.threshold else poor + 1
    named = any(f" {word} " in _fold_words(anchor) for word in focus.keywords) if anchor else False
    follow = behind <= focus.patience or named
    worth = min(_MOST_WORTH, page_score / 2 + (0.5 if named else 0.0))
    return LinkInterest(page_score, follow, worth - behind, behind)


def poor_before(priority: float) -> int:
    """How many poor pages precede a page that was planned with this priority: what a queue stores of a focus."""
    return max(0, -math.floor(priority))


def _fold_words(text: str) -> str:
    return " " + " ".join(_WORD.findall(text.lower())) + " "


# Spider traps: endless addresses, recognised by their shape and by their number. A verdict needs only the address;
# counting needs a few bytes per pattern of a host and is bounded, so that a trap cannot fill the memory.

_DIGITS = re.compile(r"\d+", re.ASCII)
_LONG_TOKEN = re.compile(r"(?=[^/=&]*\d)(?=[^/=&]*[a-f])[0-9a-f-]{16,}", re.ASCII | re.IGNORECASE)
_HEX_RUN = re.compile(r"[0-9a-fA-F-]{16}", re.ASCII)
_SESSION_NAMES: Final = frozenset(
    ("sid", "sessid", "sessionid", "session_id", "session", "phpsessid", "jsessionid", "cfid", "cftoken", "zenid")
)
_SESSION_VALUE = re.compile(r"[0-9A-Za-z,_-]{12,}", re.ASCII)
_DATE_NAMES: Final = frozenset(
    ("date", "day", "month", "year", "week", "from", "to", "start", "end", "y", "ym", "cal", "calendar", "time")
)
_DATE_PATH = re.compile(r"/(\d{4})(?:[/-](\d{1,2}))?(?:[/-](\d{1,2}))?(?=/|$)", re.ASCII)
_YEAR = re.compile(r"(?<!\d)(\d{4})(?!\d)", re.ASCII)
_EARLIEST = 1970
_AHEAD = 2
_MOST_SAME = 3


class TrapDetector:
    """Says why a URL looks like a trap. Counts URLs that pass, host by host."""

    def __init__(self, most_depth: int = 16, most_pages: int = 2000, most_patterns: int = 200_000) -> None:
        """0 turns a limit off."""
        self._most_depth, self._most_pages, self._most_patterns = most_depth, most_pages, most_patterns
        self._counts: dict[int, int] = {}

    def why(self, url: str, year: int) -> str:
        """The reason not to follow a new URL, or an empty text; passing URLs are counted.

        `year` is the present one: calendars that lead far from it are traps.
        """
        host, path, query = _split(url)
        reason = self._shape(path, query, year)
        if reason or not self._most_pages:
            return reason
        key = xxh3_64_intdigest((host + url_pattern(path, query)).encode())
        seen = self._counts.get(key, 0) + 1
        if seen > self._most_pages:
            return f"more than {self._most_pages} pages of one pattern"
        self._counts[key] = seen
        if len(self._counts) > self._most_patterns:
            self._thin_out()
        return ""

    def _shape(self, path: str, query: str, year: int) -> str:
        slashes = path.count("/")
        # Most addresses are short and have no query: each question is asked only where the answer may be yes.
        if slashes > 2 or 0 < self._most_depth < slashes:
            segments = [part for part in path.split("/") if part]
            if self._most_depth and len(segments) > self._most_depth:
                return f"more than {self._most_depth} path segments"
            if has_repeating_segments(segments):
                return "a path that repeats itself"
        if (query or ";" in path) and _has_session(path, query):
            return "a session in the address"
        has_date = query or _DATE_PATH.search(path) is not None
        return "an endless calendar" if has_date and _far_date(path, query, year) else ""

    def _thin_out(self) -> None:
        """All counts decrease by the same until half of the patterns are gone; frequent ones stay."""
        floor = sorted(self._counts.values())[len(self._counts) // 2]
        self._counts = {key: count - floor for key, count in self._counts.items() if count > floor}


def url_pattern(path: str, query: str) -> str:
    """The URL without variable parts: numbers, long tokens, values of parameters."""
    # Hardly any path has a token, and searching one at each letter takes longer than all else here.
    plain = _DIGITS.sub("0", _LONG_TOKEN.sub("x", path) if _HEX_RUN.search(path) else path)
    return plain + "?" + "&".join(sorted({part.partition("=")[0] for part in query.split("&")})) if query else plain


def has_repeating_segments(segments: list[str]) -> bool:
    """The same segments repeat: a/b/a/b/a/b, or one of them more than three times."""
    if len(segments) > _MOST_SAME and max(segments.count(part) for part in set(segments)) > _MOST_SAME:
        return True
    return any(segments[-3 * size :] == segments[-size:] * 3 for size in range(1, min(3, len(segments) // 3) + 1))


def _split(url: str) -> tuple[str, str, str]:
    rest = url.partition("#")[0].partition("://")[2]
    before, _, query = rest.partition("?")
    host, slash, path = before.partition("/")
    return host, slash + path, query


def _has_session(path: str, query: str) -> bool:
    pieces = [*query.split("&"), *path.partition(";")[2].split(";")]
    for piece in pieces:
        name, _, value = piece.partition("=")
        if name.lower() in _SESSION_NAMES and _SESSION_VALUE.fullmatch(unquote(value)):
            return True
    return False


def _far_date(path: str, query: str, year: int) -> bool:
    """A date in a calendar's place that is long past or far ahead."""
    years = [int(found[1]) for found in _DATE_PATH.finditer(path) if found[2] and 1 <= int(found[2]) <= 12]
    for piece in query.split("&") if query else ():
        name, _, value = piece.partition("=")
        if name.lower() in _DATE_NAMES:
            years.extend(int(found) for found in _YEAR.findall(value))
    return any(not _EARLIEST <= one <= year + _AHEAD for one in years)

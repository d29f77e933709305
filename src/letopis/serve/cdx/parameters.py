"""Parameters of an address as both CDX dialects share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from letopis.catalog.captures import Span
from letopis.errors import UsageError
from letopis.serve.cdx.filters import place_of
from letopis.serve.cdx.keys import key_range
from letopis.serve.cdx.query import Collapse, Query, parse_resume_key
from letopis.serve.stamps import earliest, latest

MAX_ADDRESS = 8192
_TRUE = ("true", "1", "yes", "on")


class Parameters:
    """What stood behind the question mark; a name may come several times."""

    def __init__(self, query_string: bytes) -> None:
        self._pairs = parse_qsl(query_string.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=100)

    def all(self, name: str) -> list[str]:
        """Every value of a name."""
        return [value for key, value in self._pairs if key == name]

    def get(self, *names: str) -> str:
        """The first value of the first name that is there, or an empty text."""
        for name in names:
            for key, value in self._pairs:
                if key == name and value:
                    return value
        return ""

    def flag(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.get(name).lower() in _TRUE

    def number(self, name: str, least: int = 0, most: int = 2**31) -> int | None:
        """A whole number, or None where it is not given."""
        text = self.get(name)
        if not text:
            return None
        if not (text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 12):
            raise UsageError(f"{name} must be a whole number")
        if not least <= int(text) <= most:
            raise UsageError(f"{name} must lie between {least} and {most}")
        return int(text)


def parameters(query_string: bytes) -> Parameters:
    """Reads the part behind the question mark; nonsense raises UsageError."""
    try:
        return Parameters(query_string)
    except ValueError:
        raise UsageError("too many parameters; at most 100 are read") from None


def common(given: Parameters, filters: Callable[[list[str]], list[Any]]) -> dict[str, Any]:
    """The parts of a question that both dialects write alike."""
    url = given.get("url")
    if not url:
        raise UsageError("give url=, for example url=example.org/*")
    if len(url) > MAX_ADDRESS:
        raise UsageError(f"url may have at most {MAX_ADDRESS} characters")
    return {
        "keys": key_range(url, given.get("matchType")),
        "span": Span(_since(given), _until(given)),
        "filters": tuple(filters(given.all("filter"))),
        "page": given.number("page"),
        "page_size": given.number("pageSize", 1, 1000) or 1,
        "offset": given.number("offset") or 0,
        **_order(given),
    }


def _since(given: Parameters) -> int:
    text = given.get("from", "from_ts")
    return max(0, earliest(text)) if text else 0


def _until(given: Parameters) -> int:
    text = given.get("to")
    return latest(text) if text else 2**62


def _order(given: Parameters) -> dict[str, Any]:
    closest, sort = given.get("closest"), given.get("sort")
    if closest:
        return {"order": "closest", "closest": latest(closest) - 999}
    if sort == "closest":
        raise UsageError("sort=closest needs closest=TIMESTAMP")
    return {"order": "backward"} if sort == "reverse" or given.flag("reverse") else {}


def wayback_query(given: Parameters, filters: Callable[[list[str]], list[Any]]) -> Query:
    """A question in the Internet Archive's dialect."""
    resume = given.get("resumeKey")
    return Query(
        **common(given, filters),
        collapse=tuple(_collapse(text) for text in given.all("collapse") if text),
        limit=given.number("limit", least=-(2**31)),
        resume=parse_resume_key(resume) if resume else None,
    )


def _collapse(text: str) -> Collapse:
    name, _, length = text.partition(":")
    if length and not (length.isascii() and length.isdigit() and len(length) < 6):
        raise UsageError("collapse is written field or field:count")
    return Collapse(place_of(name), int(length) if length else None)


def pywb_query(given: Parameters, filters: Callable[[list[str]], list[Any]]) -> Query:
    """A question in pywb's dialect."""
    return Query(**common(given, filters), limit=given.number("limit"), revisit_status="")

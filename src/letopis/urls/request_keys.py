"""Addresses of answers to other requests than GET, and of what was made of a page.

What a server answers to a POST is no version of the page at the same address. As other archives do, such an answer
is kept under an address with `__wb_method` and the fields of the body in its query. The text or the picture of a page
that a crawler wrote down is no version of it either: its address has `__wb_record`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import quote, urlencode

from letopis.tuples import NamedTuple

_MOST_QUERY = 4096
_MOST_FIELDS = 500
_GET = "GET"
_IN_QUERY = "%&=+;,/:@!$'()*?~[]|"


class HttpRequest(NamedTuple):
    """What was asked: the method in capitals, the type of the body, and the body."""

    method: str
    content_type: str
    body: bytes


def request_url(url: str, request: HttpRequest | None) -> str:
    """The address under which the answer to a request is kept; that of a GET is the page's own."""
    if request is None or request.method == _GET:
        return url
    fields = _body_query(request) if request.body else ""
    if len(fields) > _MOST_QUERY:
        digest = hashlib.sha1(request.body, usedforsecurity=False).hexdigest()
        fields = f"{fields[:_MOST_QUERY]}&{urlencode({'__wb_digest': digest})}"
    return _with_query(url, urlencode({"__wb_method": request.method}), fields)


def indexed_url(url: str, method: str, fields: str) -> str:
    """The same for an index that names the method, and the fields of the body as a query."""
    if method.upper() in ("", _GET):
        return url
    return _with_query(url, urlencode({"__wb_method": method.upper()}), quote(fields[:_MOST_QUERY], safe=_IN_QUERY))


def record_url(url: str, kind: str) -> str:
    """The address under which what was made of a page is kept: its text, its picture."""
    return _with_query(url, urlencode({"__wb_record": kind}, safe=":"), "")


def _with_query(url: str, query: str, fields: str) -> str:
    page, _, fragment = url.partition("#")
    joined = f"{page}{'&' if '?' in page else '?'}{query}{'&' if fields else ''}{fields}"
    return f"{joined}#{fragment}" if fragment else joined


def _body_query(request: HttpRequest) -> str:
    kind = request.content_type.partition(";")[0].strip().lower()
    text = request.body.decode("utf-8", "surrogateescape")
    if kind == "application/x-www-form-urlencoded" and text.isascii() and text.isprintable():
        return quote(text, safe=_IN_QUERY)
    if kind in ("application/json", "text/plain", "application/x-amf", "") or kind.endswith("+json"):
        fields = _json_query(request.body)
        if fields is not None:
            return fields
    return urlencode({"__wb_post_data": base64.b64encode(request.body[: 3 * _MOST_QUERY]).decode()})


def _json_query(body: bytes) -> str | None:
    """The plain values of a JSON document by their names, a name that comes again with a number."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict | list):
        return None
    pairs: dict[str, str] = {}
    _collect(found, "", pairs, 0)
    return urlencode(pairs, errors="replace")


def _collect(value: Any, name: str, pairs: dict[str, str], depth: int) -> None:
    if depth > 32 or len(pairs) >= _MOST_FIELDS:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            _collect(inner, str(key), pairs, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _collect(inner, name, pairs, depth + 1)
    elif name:
        free, number = name, 1
        while free in pairs:
            number += 1
            free = f"{name}.{number}_"
        pairs[free] = value if isinstance(value, str) else json.dumps(value)

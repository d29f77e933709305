"""The OpenAPI document: what FastAPI knows of the routes, and the CDX, Memento and feed addresses it cannot know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute


def _parameter(name: str, text: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    shape = schema or {"type": "string"}
    return {"name": name, "in": "query", "required": required, "description": text, "schema": shape}


_SHARED = [
    _parameter("url", "Address; `prefix*` and `*.domain` are understood", required=True),
    _parameter("matchType", "Which URLs match", type="string", enum=["exact", "prefix", "host", "domain"]),
    _parameter("from", "From this time on, 1 to 14 digits", type="string", pattern="^[0-9]{1,14}$"),
    _parameter("to", "Up to this time, 1 to 14 digits", type="string", pattern="^[0-9]{1,14}$"),
    _parameter("offset", "Rows to skip", type="integer", minimum=0),
    _parameter("page", "Page of a long answer, from 0", type="integer", minimum=0),
    _parameter("pageSize", "Blocks of 1000 URLs per page", type="integer", minimum=1, maximum=1000),
    _parameter("showNumPages", "Return only the number of pages", type="boolean"),
    _parameter("closest", "Order by distance from this time", type="string", pattern="^[0-9]{1,14}$"),
    _parameter("sort", "`closest` needs `closest=`", type="string", enum=["closest", "reverse"]),
]

WAYBACK_PARAMETERS = [
    *_SHARED,
    _parameter("fl", "Fields, with commas"),
    _parameter("filter", "`[!]field:regex`, matches the whole field", type="array", items={"type": "string"}),
    _parameter("collapse", "`field` or `field:N`", type="array", items={"type": "string"}),
    _parameter("limit", "Maximum number of rows; a negative number returns the last ones", type="integer"),
    _parameter("output", "`json` for an array of arrays", type="string", enum=["json", "text"]),
    _parameter("showResumeKey", "Return a key to continue with", type="boolean"),
    _parameter("resumeKey", "Continue after this key"),
]

PYWB_PARAMETERS = [
    *_SHARED,
    _parameter("fields", "Fields, with commas"),
    _parameter("filter", "`[!][=|~]field:text`", type="array", items={"type": "string"}),
    _parameter("limit", "Most rows", type="integer", minimum=0),
    _parameter("output", "`json` for one object per line", type="string", enum=["json", "text"]),
]

_URL = {"name": "url", "in": "path", "required": True, "schema": {"type": "string"},
        "description": "Address of the page as it is, with its slashes and query"}  # fmt: skip
_DIGITS = {"type": "string", "pattern": "^[0-9]{1,14}$"}


def _digits(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _DIGITS, "description": "1 to 14 digits"}


def _get(summary: str, kind: str, statuses: dict[str, str], *parameters: dict[str, Any]) -> dict[str, Any]:
    answers = {code: {"description": text} for code, text in statuses.items()}
    if "200" in answers:
        answers["200"] |= {"content": {kind: {"schema": {}}}}  # type: ignore[dict-item]
    return {"get": {"summary": summary, "tags": ["memento"], "parameters": [*parameters, _URL], "responses": answers}}


def _list(summary: str, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    answers = {"200": {"description": "Rows", "content": {"*/*": {"schema": {}}}},
               "400": {"description": "A parameter is invalid"}}  # fmt: skip
    return {"get": {"summary": summary, "tags": ["cdx"], "parameters": parameters, "responses": answers}}


_GONE = {"404": "Never captured", "400": "Not an address or a time"}
_ACCEPT = {"name": "Accept-Datetime", "in": "header", "required": False, "schema": {"type": "string"},
           "description": "Date of RFC 1123"}  # fmt: skip
_FORM = {"name": "form", "in": "path", "required": True, "schema": {"type": "string", "enum": ["link", "json", "cdxj"]}}
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}

FURTHER_PATHS: dict[str, Any] = {
    "/cdx/search/cdx": _list("Captures, as the Internet Archive's CDX server lists them", WAYBACK_PARAMETERS),
    "/web/cdx": _list("Captures, as pywb's CDX server lists them", PYWB_PARAMETERS),
    "/web/{url}": _get("TimeGate", "text/html", {"302": "Redirect to the closest capture", **_GONE}, _ACCEPT),
    "/web/{timestamp}/{url}": _get(
        "A capture for browsing, with links rewritten to the same date", "*/*",
        {"200": "The page", "302": "Redirect to the exact timestamp, or an archived redirect", **_GONE},
        _digits("timestamp"),
    ),
    "/web/{timestamp}id_/{url}": _get(
        "A capture, byte for byte as it was stored", "*/*",
        {"200": "The bytes", "302": "Redirect to the exact timestamp, or an archived redirect", **_GONE},
        _digits("timestamp"),
    ),
    "/web/timemap/{form}/{url}": _get("TimeMap: all captures", "*/*", {"200": "The list", **_GONE}, _FORM),
    "/web/*/{url}": _get("Calendar of captures", "text/html", {"200": "A page", **_GONE}),
    "/web/diff/{from}/{to}/{url}": _get(
        "What changed between two captures", "text/html", {"200": "A page", **_GONE}, _digits("from"), _digits("to")
    ),
    "/feed/{url}": _get(
        "Atom feed of a page; RSS under /feed/rss/, JSON Feed under /feed/json/", "application/atom+xml",
        {"200": "Feed", **_GONE}
    ),
}  # fmt: skip


def describe(app: FastAPI, routes: Callable[[], Sequence[BaseRoute]]) -> dict[str, Any]:
    """The whole document, made once, of routes that are made for it: most servers are never asked."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, openapi_version="3.1.0", routes=routes(),
            description="Crawls, watches, stores, maps, searches, replays and replicates the web over time.",
        )  # fmt: skip
        document["paths"] |= FURTHER_PATHS
        schemes = {"token": {"type": "http", "scheme": "bearer", "description": "A token of 'letopis tokens create'"}}
        document.setdefault("components", {})["securitySchemes"] = schemes
        document["security"] = [{}, {"token": []}]
        app.openapi_schema = document
    return app.openapi_schema

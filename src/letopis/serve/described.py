"""The OpenAPI document: what FastAPI knows of the routes, and the addresses that hold other addresses."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse

from letopis.serve.cdx.described import PYWB_PARAMETERS, WAYBACK_PARAMETERS

router = APIRouter(include_in_schema=False)

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
               "400": {"description": "A parameter makes no sense"}}  # fmt: skip
    return {"get": {"summary": summary, "tags": ["cdx"], "parameters": parameters, "responses": answers}}


_GONE = {"404": "Never captured", "400": "Not an address or a time"}
_ACCEPT = {"name": "Accept-Datetime", "in": "header", "required": False, "schema": {"type": "string"},
           "description": "Date of RFC 1123"}  # fmt: skip
_FORM = {"name": "form", "in": "path", "required": True, "schema": {"type": "string", "enum": ["link", "json", "cdxj"]}}
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}

FURTHER: dict[str, Any] = {
    "/cdx/search/cdx": _list("Captures, as the Internet Archive's CDX server lists them", WAYBACK_PARAMETERS),
    "/web/cdx": _list("Captures, as pywb's CDX server lists them", PYWB_PARAMETERS),
    "/web/{url}": _get("TimeGate", "text/html", {"302": "The way to the closest capture", **_GONE}, _ACCEPT),
    "/web/{timestamp}/{url}": _get(
        "A capture for browsing, links led to the same date", "*/*",
        {"200": "The page", "302": "The way to the exact timestamp, or an archived redirect", **_GONE},
        _digits("timestamp"),
    ),
    "/web/{timestamp}id_/{url}": _get(
        "A capture, byte for byte as it was stored", "*/*",
        {"200": "The bytes", "302": "The way to the exact timestamp, or an archived redirect", **_GONE},
        _digits("timestamp"),
    ),
    "/web/timemap/{form}/{url}": _get("TimeMap: all captures", "*/*", {"200": "The list", **_GONE}, _FORM),
    "/web/*/{url}": _get("Calendar of captures", "text/html", {"200": "A page", **_GONE}),
    "/web/diff/{from}/{to}/{url}": _get(
        "What changed between two captures", "text/html", {"200": "A page", **_GONE}, _digits("from"), _digits("to")
    ),
    "/feed/{url}": _get("Atom feed of a page; RSS under /feed/rss/", "application/atom+xml", {"200": "Feed", **_GONE}),
}  # fmt: skip


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, openapi_version="3.1.0", routes=app.routes,
            description="Crawls, watches, stores, maps, searches, replays and replicates the web over time.",
        )  # fmt: skip
        document["paths"] |= FURTHER
        schemes = {"token": {"type": "http", "scheme": "bearer", "description": "A token of 'letopis tokens create'"}}
        document.setdefault("components", {})["securitySchemes"] = schemes
        document["security"] = [{}, {"token": []}]
        app.openapi_schema = document
    return app.openapi_schema


@router.get("/docs")
def docs(request: Request) -> HTMLResponse:
    """The document as a plain page: no script, nothing from elsewhere."""
    document = describe(request.app)
    rows = [
        f"<tr><td>{method.upper()}</td><td><code>{escape(path)}</code></td><td>{escape(_said(operation))}</td></tr>"
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>HTTP interface · Letopis</title>'
        '<link rel="stylesheet" href="/static/letopis.css"></head><body><main><h1>HTTP interface</h1>'
        '<p>The full description is <a href="/openapi.json">openapi.json</a>.</p><table><thead><tr>'
        '<th scope="col">Method</th><th scope="col">Path</th><th scope="col">What it does</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></main></body></html>"
    )


def _said(operation: dict[str, Any]) -> str:
    text: str = operation.get("description") or operation.get("summary") or ""
    return text.split("\n")[0]

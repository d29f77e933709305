"""REST as a door to operations: a route with its OpenAPI parameters and models for every operation that names one.

The OpenAPI document says what FastAPI knows of the routes, and the CDX, Memento and feed addresses it cannot know.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ForwardRef, get_args, get_origin, get_type_hints

from anyio.to_thread import run_sync
from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, create_model
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from letopis.api.access import principal_of, upload_of
from letopis.api.requests import archive_of, problem_response, problem_responses
from letopis.errors import Refused, UsageError, shell_words
from letopis.fetch import private_ok
from letopis.operations import Answer, BoundedWork, Context, Document, Operation, Parameter, Value, bind, json_value
from letopis.operations.context import SILENT
from letopis.operations.old_names import DEPRECATION, current_parameters, uses_old_names, with_old_fields
from letopis.replay.csp import RAW_POLICY, SAFE_HEADERS, safe_content_type

_IN_BODY = ("POST", "PUT", "PATCH")
_WHOLE = ("bytes", "file")
"""Kinds of parameters that are a body."""
_TYPE_OF_BODY = "content_type"
"""The parameter that is the type of a body which is a parameter itself; its header says it as well."""
STRANGER_SECONDS = 300.0
"""For what somebody without an account asks of a public archive."""
_DOCUMENT_HEADERS = {"content-security-policy": RAW_POLICY, **SAFE_HEADERS}
_models: dict[type, type[BaseModel]] = {}


def operation_routes(prefix: str, operations: Iterable[Operation[Any, Any]]) -> Iterator[Route]:
    """A route for every operation that names one. What they answer with is described elsewhere: few ask for that."""
    for operation in operations:
        if operation.route is not None:
            method = operation.route.method
            route = Route(prefix + operation.route.path, _endpoint(operation), methods=[method], name=operation.name)
            route.methods = {method}  # no HEAD where nobody named it
            yield route


def described_operations(prefix: str, operations: Iterable[Operation[Any, Any]]) -> APIRouter:
    """The same routes with the models of their answers, for OpenAPI."""
    router = APIRouter(prefix=prefix)
    for operation in operations:
        if operation.route is not None:
            _describe(router, operation)
    return router


def _describe(router: APIRouter, operation: Operation[Any, Any]) -> None:
    assert operation.route is not None
    model = model_of(operation)
    content: dict[str, Any] = {"model": model} if model else {"content": {"*/*": {"schema": {}}}}
    if operation.status == 204:
        content = {"description": "Done"}
    router.add_api_route(
        operation.route.path,
        _endpoint(operation),
        methods=[operation.route.method],
        name=operation.name,
        tags=[operation.run.__module__.rpartition(".")[2]],
        summary=operation.summary,
        description=operation.help,
        status_code=operation.status,
        response_class=Response if model is None else JSONResponse,
        responses={**problem_responses(*operation.errors), operation.status: content},
        openapi_extra=_described(operation),
    )


def _endpoint(operation: Operation[Any, Any]) -> Callable[[Request], Any]:
    """The function behind a route: reads what was given, asks, and sends the answer."""

    async def answered(request: Request) -> Response:
        try:
            upload = upload_of(operation)
            if upload is None:
                return await run_sync(_asked, operation, request, await _given(operation, request))
            with tempfile.TemporaryDirectory(prefix="letopis-upload-") as folder:
                file = await _received(request, Path(folder) / "upload")
                given = {**_asked_for(operation, request), upload.alias: file}
                return await run_sync(_asked, operation, request, given)
        except _BadBody as error:
            return problem_response(422, error.kind, str(error))

    return answered


async def _received(request: Request, file: Path) -> Path:
    """The body of a request as a file, piece by piece; the gate has bounded its size."""
    with file.open("wb") as out:
        async for piece in request.stream():
            await run_sync(out.write, piece)
    return file


class _BadBody(UsageError):
    """The body of a request does not fit; `kind` is the class of what is wrong with it."""

    def __init__(self, message: str, kind: str = "UsageError") -> None:
        super().__init__(message)
        self.kind = kind


def _asked(operation: Operation[Any, Any], request: Request, given: dict[str, Any]) -> Response:
    context = context_of(request)
    in_body = request.method in _IN_BODY
    try:
        asked = bind(operation.parameters, given, context.moment(), strict=in_body, door="http")
        sent = _sent(operation, operation(context, asked), request, single=_is_single(operation, given))
        if uses_old_names(operation.name, request.query_params):
            sent.headers.update(DEPRECATION)
        return sent
    except UsageError as error:
        raise _BadBody(shell_words(error), type(error).__name__) if in_body else error from None


def context_of(request: Request) -> Context:
    """What operations may use on behalf of a request; pages use it too. Strangers wait for bounded work alone."""
    archive, principal = archive_of(request), principal_of(request)
    progress = SILENT if principal.name else BoundedWork(STRANGER_SECONDS)
    private = private_ok(archive.settings.fetch.private, "http")
    return Context(
        archive, user=principal.name, rights=principal.mask, private_ok=private, origin="http", form="json",
        address=request.client.host if request.client else "", offline=request.method not in _IN_BODY,
        progress=progress,
    )  # fmt: skip


def _is_single(operation: Operation[Any, Any], given: dict[str, Any]) -> bool:
    """Whether one thing was asked for by itself, not a list with one thing in it."""
    return bool(operation.single) and isinstance(given.get(operation.single), str)


async def _given(operation: Operation[Any, Any], request: Request) -> dict[str, Any]:
    """Raw values by alias: of the path, of the query string, and of the body."""
    given = _asked_for(operation, request)
    body = await request.body() if request.method in _IN_BODY else b""
    whole = next((one for one in operation.parameters_in("http") if one.kind == "bytes"), None)
    if whole is not None:
        _require_type(request, whole.declared.media_type)
        named = request.headers.get("content-type")
        if named and any(one.alias == _TYPE_OF_BODY for one in operation.parameters_in("http")):
            given.setdefault(_TYPE_OF_BODY, named)
        return {**given, whole.alias: body}
    return {**_json_body(body), **given}


def _asked_for(operation: Operation[Any, Any], request: Request) -> dict[str, Any]:
    """What stands in the path, and in the query string where no JSON says it."""
    given: dict[str, Any] = {**current_parameters(operation.name, request.query_params), **request.path_params}
    known = operation.parameters_in("http")
    in_query = request.method not in _IN_BODY or any(one.kind in _WHOLE for one in known)
    for one in known:
        values = request.query_params.getlist(one.alias)
        if values and in_query:
            given[one.alias] = values if one.repeated and len(values) > 1 else values[-1]
    return given


def _require_type(request: Request, media_type: str) -> None:
    """Refuses a body that says it is something else; `text/xml` is another name of `application/xml`."""
    kind = request.headers.get("content-type", media_type).partition(";")[0].strip().lower()
    if media_type and kind.replace("text/xml", "application/xml") != media_type:
        raise _BadBody(f"the body must be {media_type}, not {kind[:60]}")


def _json_body(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data) if data else {}
        json.dumps(body, ensure_ascii=False).encode()  # half a character could be neither stored nor shown
    except (ValueError, RecursionError):
        raise _BadBody("the body is not JSON") from None
    if not isinstance(body, dict):
        raise _BadBody("the body must be a JSON object")
    return body


def _sent(operation: Operation[Any, Any], answer: Answer, request: Request, *, single: bool) -> Response:
    """An answer as a response: one JSON object around the rows, the row that was asked for, or the document."""
    if operation.status == 204:
        return Response(status_code=204)
    if isinstance(answer, Document):
        return document_response(answer, request)
    if isinstance(answer, Value):
        value = with_old_fields("http", operation.name, json_value(answer.value), archive_of(request))
        return JSONResponse(value, operation.status)
    if single:
        rows = list(answer)
        for fault in answer.faults:
            if isinstance(fault, Refused) or not rows:  # it was not done at all
                raise fault
        return JSONResponse(json_value(rows[0]), operation.status)
    body = {**json_value(answer.about), operation.listed: [json_value(row) for row in answer]}
    return JSONResponse(with_old_fields("http", operation.name, body, archive_of(request)), operation.status)


def document_response(answer: Document, request: Request) -> Response:
    """A document as a response in a sandbox; whoever has the same bytes already is told so.

    What goes wrong before the second piece still becomes a proper error; short answers are sent whole.
    """
    headers = {**_DOCUMENT_HEADERS, **answer.headers}
    if "content-type" in headers:
        headers["content-type"] = safe_content_type(headers["content-type"])
    if "etag" in headers and headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": headers["etag"]})
    if answer.path is not None:
        return FileResponse(answer.path, media_type=answer.media_type, headers=headers)
    pieces = answer.bytes()
    begun = [piece for _, piece in zip(range(3), pieces, strict=False)]
    if len(begun) < 3:
        return Response(b"".join(begun), media_type=answer.media_type, headers=headers)

    def whole() -> Iterator[bytes]:
        yield from begun
        yield from pieces

    return StreamingResponse(whole(), media_type=answer.media_type, headers=headers)


def _described(operation: Operation[Any, Any]) -> dict[str, Any]:
    """The parameters of a route and its body, as OpenAPI describes them."""
    assert operation.route is not None
    known = operation.parameters_in("http")
    in_path = [one for one in known if f"{{{one.alias}}}" in operation.route.path]
    others = [one for one in known if one not in in_path]
    path = [_parameter(one, "path") for one in in_path]
    if operation.route.method not in _IN_BODY:
        return {"parameters": path + [_parameter(one, "query") for one in others]}
    whole = next((one for one in others if one.kind in _WHOLE), None)
    if whole is not None:
        kind = whole.declared.media_type or "application/octet-stream"
        body = {"required": True, "content": {kind: {"schema": whole.schema()}}}
        return {
            "parameters": path + [_parameter(one, "query") for one in others if one is not whole],
            "requestBody": body,
        }
    required = [one.alias for one in others if one.required]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one.alias: property_schema(one, single=one.alias == operation.single) for one in others},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }
    content = {"application/json": {"schema": schema}}
    return {"parameters": path, "requestBody": {"required": bool(required), "content": content}}


def property_schema(one: Parameter, *, single: bool = False) -> dict[str, Any]:
    """A parameter as a property of a JSON object: of a body, or of what a tool is called with."""
    schema = one.schema() | {"description": one.declared.help}
    if single:
        return {"anyOf": [{"type": "string", "minLength": 1}, schema], "description": one.declared.help}
    return schema if one.required or "default" in schema else {**schema, "type": [schema["type"], "null"]}


def _parameter(one: Parameter, where: str) -> dict[str, Any]:
    return {
        "name": one.alias,
        "in": where,
        "required": one.required or where == "path",
        "description": one.declared.help,
        "schema": one.schema(),
    }


def model_of(operation: Operation[Any, Any]) -> Any:
    """The model of an answer, for OpenAPI; None for documents and for answers without a body."""
    if operation.row is None or operation.status == 204:
        return None
    row = _row_model(operation.row)
    if operation.answer is Value:
        return row
    name = "".join(part.capitalize() for part in operation.name.split("_")) + "Answer"
    fields: dict[str, Any] = {key: (kind, ...) for key, kind in operation.about.items()}
    fields[operation.listed] = (list[row], ...)  # type: ignore[valid-type]
    rows = create_model(name, **fields)
    return rows | row if operation.single else rows


def _row_model(row: type) -> type[BaseModel]:
    """A row class as a model of the same name and fields."""
    if row not in _models:
        hints = {name: kind for name, kind in get_type_hints(row).items() if name[0] != "_"}
        fields: dict[str, Any] = {name: (_field_type(kind, row), ...) for name, kind in hints.items()}
        _models[row] = create_model(row.__name__, **fields)
    return _models[row]


def _field_type(kind: Any, row: type) -> Any:
    """The type of a field; rows in a list inside a row are objects too, those of its own class as well."""
    inner = get_args(kind)[:1]
    if inner == (row,):
        return list[ForwardRef(row.__name__)]  # type: ignore[misc]
    if get_origin(kind) in (tuple, list) and isinstance(inner[0], type) and hasattr(inner[0], "_fields"):
        return list[_row_model(inner[0])]  # type: ignore[misc]
    return kind


def _listed_parameter(name: str, text: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    shape = schema or {"type": "string"}
    return {"name": name, "in": "query", "required": required, "description": text, "schema": shape}


_SHARED = [
    _listed_parameter("url", "Address; `prefix*` and `*.domain` are understood", required=True),
    _listed_parameter("matchType", "Which URLs match", type="string", enum=["exact", "prefix", "host", "domain"]),
    _listed_parameter("from", "From this time on, 1 to 14 digits", type="string", pattern="^[0-9]{1,14}$"),
    _listed_parameter("to", "Up to this time, 1 to 14 digits", type="string", pattern="^[0-9]{1,14}$"),
    _listed_parameter("offset", "Rows to skip", type="integer", minimum=0),
    _listed_parameter("page", "Page of a long answer, from 0", type="integer", minimum=0),
    _listed_parameter("pageSize", "Blocks of 1000 URLs per page", type="integer", minimum=1, maximum=1000),
    _listed_parameter("showNumPages", "Return only the number of pages", type="boolean"),
    _listed_parameter("closest", "Order by distance from this time", type="string", pattern="^[0-9]{1,14}$"),
    _listed_parameter("sort", "`closest` needs `closest=`", type="string", enum=["closest", "reverse"]),
]

WAYBACK_PARAMETERS = [
    *_SHARED,
    _listed_parameter("fl", "Fields, with commas"),
    _listed_parameter("filter", "`[!]field:regex`, matches the whole field", type="array", items={"type": "string"}),
    _listed_parameter("collapse", "`field` or `field:N`", type="array", items={"type": "string"}),
    _listed_parameter("limit", "Maximum number of rows; a negative number returns the last ones", type="integer"),
    _listed_parameter("output", "`json` for an array of arrays", type="string", enum=["json", "text"]),
    _listed_parameter("showResumeKey", "Return a key to continue with", type="boolean"),
    _listed_parameter("resumeKey", "Continue after this key"),
]

PYWB_PARAMETERS = [
    *_SHARED,
    _listed_parameter("fields", "Fields, with commas"),
    _listed_parameter("filter", "`[!][=|~]field:text`", type="array", items={"type": "string"}),
    _listed_parameter("limit", "Most rows", type="integer", minimum=0),
    _listed_parameter("output", "`json` for one object per line", type="string", enum=["json", "text"]),
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


def openapi_document(app: FastAPI, routes: Callable[[], Sequence[BaseRoute]]) -> dict[str, Any]:
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

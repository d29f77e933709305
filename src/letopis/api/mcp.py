"""Model Context Protocol as a door to operations: assistants ask the archive, over standard streams or at `/mcp`.

A tool is an operation that names itself one: its name, help and parameters are what the other doors show. Whoever asks
has the rights of their token, or those that the command line gave, and an answer has bounds of time and length: an
assistant that asks for too much is told to ask for less.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from letopis import __version__, extract
from letopis.api.access import principal_of
from letopis.api.door import context_of, property_schema
from letopis.archive import Archive
from letopis.errors import LetopisError, MissingExtra, Refused, UsageError, shell_words
from letopis.extract.pages import charset_of
from letopis.fetch import private_ok
from letopis.lazy import lazy
from letopis.model.rights import READ, WRITE
from letopis.operations import Answer, BoundedWork, Context, Document, Operation, Value, bind, json_value
from letopis.operations.operation import all_operations

if TYPE_CHECKING:
    from mcp import types
    from mcp.server import lowlevel, stdio, streamable_http_manager
else:
    types = lazy("mcp.types")
    lowlevel = lazy("mcp.server.lowlevel")
    stdio = lazy("mcp.server.stdio")
    streamable_http_manager = lazy("mcp.server.streamable_http_manager")

LONGEST_ANSWER = 100_000
"""Characters of one answer: what an assistant can still read."""
MOST_SECONDS = 60.0
"""For one question."""
_INSTRUCTIONS = (
    "A web archive: pages as they were at any time. Times are dates, timestamps, or words such as 'yesterday'. "
    "Begin with 'search' or 'map', read a page with 'get', and see what changed with 'versions' and 'diff'."
)

ContextOf = Callable[[Any], Context]
"""What operations may use on behalf of a request of the protocol."""


def tool_operations() -> dict[str, Operation[Any, Any]]:
    """The operations that assistants may call, by name."""
    return {name: one for name, one in all_operations().items() if one.tool}


def require_mcp() -> None:
    """Raises MissingExtra where the package of the protocol is not installed."""
    if find_spec("mcp") is None:
        raise MissingExtra("the Model Context Protocol needs 'pip install letopis[mcp]'")


def mcp_server(context_for: ContextOf) -> lowlevel.Server[Any]:
    """A server of the protocol; `context_for` makes the context of a request. Tools nobody may call are not listed."""

    async def listed(call: Any, asked: Any) -> types.ListToolsResult:
        context = context_for(call.request)
        return types.ListToolsResult(
            tools=[tool_of(one) for one in tool_operations().values() if context.may(one.right)]
        )

    async def called(call: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        return await run_sync(partial(call_tool, context_for(call.request), asked.name, asked.arguments or {}))

    return lowlevel.Server(
        "letopis", version=__version__, instructions=_INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )


def tool_of(operation: Operation[Any, Any]) -> types.Tool:
    """An operation as the protocol describes it."""
    known = operation.parameters_in("http")
    schema = {
        "type": "object",
        "properties": {one.alias: property_schema(one) for one in known},
        "required": [one.alias for one in known if one.required],
        "additionalProperties": False,
    }
    destroys = operation.route is not None and operation.route.method == "DELETE"
    hints = types.ToolAnnotations(
        title=operation.summary, read_only_hint=not operation.changes, destructive_hint=destroys
    )
    return types.Tool(name=operation.name, description=operation.help, input_schema=schema, annotations=hints)


def call_tool(context: Context, name: str, given: Mapping[str, Any]) -> types.CallToolResult:
    """Carries out one call; what goes wrong is a result too, so that the assistant can mend its question.

    What people read beside an answer, such as that no version is that old, follows it.
    """
    try:
        operation, work = _permitted(context, name), BoundedWork(MOST_SECONDS)
        bounded = context._replace(progress=work, offline=not operation.changes)
        asked = bind(operation.parameters, given, context.moment(), strict=True, door="http")
        result = _result(operation, operation(bounded, asked))
        return result.model_copy(update={"content": [*result.content, *map(_text, work.remarks)]})
    except LetopisError as error:
        return _error(error)


def _permitted(context: Context, name: str) -> Operation[Any, Any]:
    operation = tool_operations().get(name)
    if operation is None:
        raise UsageError(f"unknown tool '{name[:70]}'; choose one of {', '.join(tool_operations())}")
    if not context.may(operation.right):
        raise Refused(
            f"'{name}' needs a right that this session lacks; use a token that has it, or 'letopis mcp --write'"
        )
    return operation


def _error(error: LetopisError) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(f"{type(error).__name__}: {shell_words(error)}")], is_error=True)


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _result(operation: Operation[Any, Any], answer: Answer) -> types.CallToolResult:
    """An answer as a text and, where it has rows or fields, as an object as well."""
    if isinstance(answer, Document):
        return types.CallToolResult(content=[_text(_document_text(answer))])
    if isinstance(answer, Value):
        body = json_value(answer.value)
    else:
        body = {**json_value(answer.about), **_rows_that_fit(operation.listed, map(json_value, answer))}
        body |= {"faults": [str(fault) for fault in answer.faults]} if answer.faults else {}
    body |= {"remark": answer.remark} if answer.remark else {}
    shown = json.dumps(body, ensure_ascii=False)
    return types.CallToolResult(content=[_text(shown)], structured_content=body, is_error=bool(answer.faults))


def _rows_that_fit(listed: str, rows: Iterable[Any]) -> dict[str, Any]:
    """The first rows, and a word to say that there are more where they are too long together."""
    kept: list[Any] = []
    room = LONGEST_ANSWER
    for row in rows:
        room -= len(json.dumps(row, ensure_ascii=False))
        if room < 0:
            return {listed: kept, "truncated": f"only the first {len(kept)} rows fit; ask for fewer, or from an offset"}
        kept.append(row)
    return {listed: kept}


def _document_text(answer: Document) -> str:
    """The beginning of a document of text, with a word to say that there is more."""
    body = b""
    for piece in answer.bytes():
        body += piece
        if len(body) > 4 * LONGEST_ANSWER:
            break
    kind = extract.sniff(body, answer.media_type)
    if not kind.startswith("text/") and not kind.endswith(("json", "xml")):
        raise UsageError(f"this is {kind}, not text; use 'extract'")
    text = extract.decode(body, charset_of(answer.media_type)).text
    if len(text) <= LONGEST_ANSWER:
        return text
    return f"{text[:LONGEST_ANSWER]}\n[only the first {LONGEST_ANSWER} characters are shown]"


def local_context(archive: Archive, *, write: bool) -> Context:
    """The context of an assistant on this machine: it reads, and checks and watches only when told that it may.

    What it asks for is treated like what comes by HTTP: an assistant may have been talked into it by a page.
    """
    rights = READ | WRITE if write else READ
    private = private_ok(archive.settings.fetch.private, "http")
    return Context(archive, rights=rights, private_ok=private, origin="http", form="json")


async def serve_standard_streams(archive: Archive, *, write: bool) -> None:
    """Answers on standard output what comes by standard input, until that ends."""
    server = mcp_server(lambda request: local_context(archive, write=write))
    async with stdio.stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class McpEndpoint:
    """The route `/mcp`: each request stands for itself, so any worker can answer it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request of the protocol."""
        require_mcp()
        sessions = streamable_http_manager.StreamableHTTPSessionManager(
            mcp_server(_context_of_token), json_response=True, stateless=True
        )
        async with sessions.run():
            await sessions.handle_request(scope, receive, send)


def _context_of_token(request: Request) -> Context:
    """The rights of whoever sent the request; a public archive can be read by all."""
    context = context_of(request)
    public = READ if context.settings.serve.public else 0
    return context._replace(rights=principal_of(request).mask | public)

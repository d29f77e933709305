"""Forms that people send."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import Request

from letopis.errors import UsageError

MOST_BYTES = 64 * 1024


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, the first value of each."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise UsageError("the form is too large; send less at once")
    fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=100)
    return {name: values[0].strip() for name, values in fields.items()}

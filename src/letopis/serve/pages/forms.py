"""Forms that people send."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import Request

from letopis.errors import UsageError

MOST_BYTES = 64 * 1024
_MOST_FIELDS = 200


async def fields_of(request: Request) -> dict[str, list[str]]:
    """The fields of a form, each with all its values."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BYTES:
            raise UsageError("the form is too large; send less at once")
    try:
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise UsageError("the form has too many fields; send less at once") from None
    return {name: [value.strip() for value in values] for name, values in fields.items()}


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form, the first value of each."""
    return {name: values[0] for name, values in (await fields_of(request)).items()}

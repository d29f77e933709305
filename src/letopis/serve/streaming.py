"""Long answers, sent while they are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice

from starlette.responses import Response, StreamingResponse


def streamed(pieces: Iterator[str], media_type: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer of texts. What goes wrong before the second piece still becomes a proper error.

    Short answers are sent whole: with a length, and without the cost of a stream.
    """
    begun = list(islice(pieces, 2))
    following = next(pieces, None)
    if following is None:
        return Response("".join(begun).encode(), media_type=media_type, headers=headers)
    whole = chain(begun, [following], pieces)
    return StreamingResponse((piece.encode() for piece in whole), media_type=media_type, headers=headers)

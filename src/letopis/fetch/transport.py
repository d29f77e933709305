"""The seam between deciding what to ask and asking: exactly one hop."""

from __future__ import annotations

from typing import Protocol

from letopis.model.web import Request, Response


class Transport(Protocol):
    """Whatever can send one request and bring one answer back.

    No redirect is followed, nothing is tried again, and what the network
    does wrong stands in `Response.failure`; it is never raised.
    """

    async def send(self, request: Request) -> Response:
        """One exchange with one server."""

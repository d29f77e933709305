"""Facts about a check in the two compact forms in which they are kept.

A *note* stands beside the bytes in a pack and suffices to rebuild the
catalogue; *details* stand in a catalogue row and hold what is usually empty.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from letopis.catalog.heads import fields_json
from letopis.model import Headers, Hop

_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Note(NamedTuple):
    """Status and headers of the answer that brought a content."""

    status: int
    headers: Headers
    version: bool = True
    """False for bodies of errors and redirects, which never become versions."""

    def pack(self) -> bytes:
        """Compact JSON; readers ignore further elements."""
        return b"[%d,%b%b]" % (self.status, fields_json(self.headers), b"" if self.version else b",0")

    @classmethod
    def unpack(cls, data: bytes) -> Note:
        """The inverse of `pack`."""
        status, headers, *kind = json.loads(data.decode("utf-8", "surrogatepass"))
        return cls(int(status), tuple((name, value) for name, value in headers), version=not kind)


class Details(NamedTuple):
    """What a row says beyond its columns."""

    final_url: str = ""
    hops: tuple[Hop, ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()
    score: float | None = None
    blocks: tuple[str, ...] = ()
    length: int | None = None

    def pack(self) -> str | None:
        """JSON without what is empty, or None when everything is."""
        if self is NO_DETAILS:
            return None
        fields: dict[str, Any] = {
            "final": self.final_url,
            "hops": [[hop.url, hop.status, hop.location, hop.ip, hop.headers] for hop in self.hops],
            "error": self.error,
            "warnings": self.warnings,
            "score": self.score,
            "blocks": self.blocks,
            "length": self.length,
        }
        kept = {name: value for name, value in fields.items() if value not in ("", [], (), None)}
        return _JSON(kept) if kept else None

    @classmethod
    def unpack(cls, text: str | None) -> Details:
        """The inverse of `pack`."""
        if not text:
            return cls()
        fields = json.loads(text)
        return cls(
            final_url=fields.get("final", ""),
            hops=tuple(_hop(*row) for row in fields.get("hops", ())),
            error=fields.get("error", ""),
            warnings=tuple(fields.get("warnings", ())),
            score=fields.get("score"),
            blocks=tuple(fields.get("blocks", ())),
            length=fields.get("length"),
        )


NO_DETAILS = Details()
"""Of most looks."""


def _hop(url: str, status: int, location: str, ip: str, headers: list[list[str]]) -> Hop:
    return Hop(url, status, location, ip, tuple((name, value) for name, value in headers))

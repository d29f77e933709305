"""The least HTTP/2 that serves a page: enough to see that clients speak it."""

from __future__ import annotations

import asyncio

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, PING, GOAWAY = 0, 1, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
STATUS_200 = b"\x88"
"""The field `:status: 200` as entry 8 of HPACK's static table."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
    """Answers every request of the connection with the same page."""
    await reader.readexactly(len(PREFACE))
    writer.write(frame(SETTINGS, 0, 0))
    while True:
        head = await reader.readexactly(9)
        payload = await reader.readexactly(int.from_bytes(head[:3], "big"))
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9], "big")
        if kind == SETTINGS and not flags & ACK:
            writer.write(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            writer.write(frame(PING, ACK, 0, payload))
        elif kind == HEADERS:
            writer.write(frame(HEADERS, END_HEADERS, stream, STATUS_200) + frame(DATA, END_STREAM, stream, body))
        elif kind == GOAWAY:
            return
        await writer.drain()

"""Carries TCP connections from one address to another, so that a service of one network can be met in another.

A script that runs until it is killed: `relay.py LISTEN:PORT=TARGET ...`, where a
target is `address:port` or the path of a Unix socket. It prints its ports.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial


async def _open(target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if target.startswith("/"):
        return await asyncio.open_unix_connection(target)
    host, _, port = target.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _carry(target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        inner_reader, inner_writer = await _open(target)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))


async def serve(routes: Sequence[tuple[str, str]]) -> None:
    """Listens for all routes, address and port with their target, for ever."""
    ports = []
    for where, target in routes:
        host, _, port = where.rpartition(":")
        server = await asyncio.start_server(partial(_carry, target), host, int(port))
        ports.append(server.sockets[0].getsockname()[1])
    sys.stdout.write(" ".join(map(str, ports)) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve([(where, target) for where, _, target in (word.partition("=") for word in sys.argv[1:])]))

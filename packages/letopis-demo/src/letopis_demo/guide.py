"""The first page of the demo: what to click, and what there is to see. A small server of its own shows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from html import escape
from importlib.resources import files
from urllib.parse import urlencode

from letopis.tuples import NamedTuple
from letopis_demo.story_sites import DAYS, DEADLINE_DAY, GONE_DAY, MINISTRY, MOVED_DAY, NEWS, SHOP, UNIVERSITY, WIKI

_STYLE = (files("letopis.web") / "static" / "letopis.css").read_text("utf-8")
"""The sheet of the pages themselves, inside of this one: a service of another address does not lend it."""
_MOST_HEADER = 16 * 1024


class Stop(NamedTuple):
    """One stop of the tour: where, what is seen there, and the command that answers the same."""

    path: str
    title: str
    text: str
    command: str


def tour(now: datetime) -> list[Stop]:
    """The stops, with the days of the year that ends now."""
    start = now - timedelta(days=DAYS)

    def on(day: int) -> str:
        return f"{start + timedelta(days=day):%Y-%m-%d}"

    before, after, then = on(GONE_DAY - 7), on(GONE_DAY + 14), on(DEADLINE_DAY - 10)
    moving, moved = on(MOVED_DAY - 14), on(MOVED_DAY + 14)
    return [
        Stop(f"/url/http://{SHOP}/goods/fountain-pen", "A price over the year",
             "The calendar of a product: every look, and every price change.",
             f"letopis versions http://{SHOP}/goods/fountain-pen"),
        Stop(f"/url/http://{MINISTRY}/zadosti", "A deadline that shrank",
             "The ministry gave thirty days, and one day fifteen. Three red weeks are an outage.",
             f"letopis diff http://{MINISTRY}/zadosti --from {then} --format words --offline"),
        Stop("/search?" + urlencode({"q": '"třiceti dnů"', "at": then}), "A search as of that day",
             "Found then; take the date away and it is not found any more.",
             f"letopis search 'třiceti dnů' --at {then}"),
        Stop(f"/site/{SHOP}?" + urlencode({"view": "changes", "since": before, "at": after}), "What changed on a site",
             "A product went, and the list of goods named it for five weeks more: a broken link.",
             f"letopis broken {SHOP} --at {after}"),
        Stop(f"/site/{UNIVERSITY}?" + urlencode({"since": moving, "at": moved}), "Two maps of a site",
             "A course moved between two dates: the map marks it, and says where it was before.",
             f"letopis map diff {UNIVERSITY} {moving} {moved}"),
        Stop(f"/url/http://{WIKI}/wiki/Lantern_Bridge", "Two people, one article",
             "For a month the bridge had nine arches and seven in turns: versions that came back are stored once.",
             f"letopis history http://{WIKI}/wiki/Lantern_Bridge"),
        Stop("/watches", "Watches and their alerts", "What four watched pages told over the year.",
             "letopis watch alerts"),
        Stop("/search?" + urlencode({"q": "мост"}), "Words in any form",
             f"{NEWS} writes in Russian: 'мост' finds 'моста' and 'мосту'.", "letopis search мост"),
        Stop("/crawl", "A crawl under way", "Beside the year, a simulated web is crawled now.",
             "letopis crawls"),
    ]  # fmt: skip


def guide_page(interface: str, now: datetime) -> str:
    """The page as HTML; its links lead to the web interface."""
    home, found = interface.rstrip("/"), tour(now)
    stops = "".join(
        f'<li><span class="what"><a class="page" href="{escape(home + stop.path)}">{escape(stop.title)}</a>'
        f'<span class="where">{escape(stop.text)}</span></span></li>'
        for stop in found
    )
    commands = "".join(f"<li>{escape(stop.title)}<br><code>{escape(stop.command)}</code></li>" for stop in found)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Letopis: what to click</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f'<header class="bar"><a class="brand" href="{escape(home)}/">Letopis</a></header><main>'
        '<h1>What to click</h1><p class="lead">This archive remembers a year of five small sites that never were: a '
        "shop, a ministry, a newspaper, a university and a wiki. Two minutes show what an archive can be asked.</p>"
        f'<ol class="tour card">{stops}</ol>'
        '<details class="more card"><summary>The same on the command line</summary>'
        f"<ol>{commands}</ol></details></main></body></html>"
    )


@asynccontextmanager
async def serving_guide(interface: str, now: datetime) -> AsyncIterator[str]:
    """The address of the page, answered on a free port of this machine until the block ends."""
    body = guide_page(interface, now).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
                await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked does not want it any more
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=_MOST_HEADER)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

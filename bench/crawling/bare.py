"""The least that a crawl in Python has to do, with the same libraries as ours and nothing around them.

    python bare.py SEED FOLDER EXCLUDE

One connection, one page after the other: libcurl fetches, lexbor parses, ada
joins the links, SHA-1 and BLAKE3 tell the content, zstd packs it, and a file
and a table of SQLite are made durable every 512 pages. No robots.txt, no
pauses, no retries, no limits, no schedule, no comparison, no headers kept: a
bound for what any crawler of this kind can reach, not a crawler. Prints how
many pages it fetched.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import sys
import time
from collections import deque
from pathlib import Path

import pycurl
from ada_url import join_url
from blake3 import blake3
from selectolax.lexbor import LexborHTMLParser

from letopis.zstandard import zstd

_BATCH = 512
_Row = tuple[str, int, int, bytes, bytes, int]


def crawl(seed: str, folder: Path, exclude: re.Pattern[str]) -> int:
    database = sqlite3.connect(folder / "bare.sqlite")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE page (url TEXT PRIMARY KEY, time, status, sha1 BLOB, blake3 BLOB, place)")
    easy, pieces = pycurl.Curl(), list[bytes]()
    easy.setopt(pycurl.WRITEFUNCTION, pieces.append)
    squeeze = zstd.ZstdCompressor(3)
    waiting, seen, rows, pages = deque([seed]), {seed}, list[_Row](), 0
    with (folder / "bare.pack").open("wb") as pack:
        while waiting:
            url = waiting.popleft()
            easy.setopt(pycurl.URL, url)
            easy.perform()
            body = b"".join(pieces)
            pieces.clear()
            pages += 1
            for node in LexborHTMLParser(body).css("a[href]"):
                found = join_url(url, node.attributes["href"] or "").partition("#")[0]
                if found not in seen and found.startswith(seed) and not exclude.search(found):
                    seen.add(found)
                    waiting.append(found)
            sha1 = hashlib.sha1(body, usedforsecurity=False).digest()
            status = easy.getinfo(pycurl.RESPONSE_CODE)
            rows.append((url, time.time_ns(), status, sha1, blake3(body).digest(6), pack.tell()))
            pack.write(squeeze.compress(body, squeeze.FLUSH_FRAME))
            if len(rows) == _BATCH or not waiting:
                pack.flush()
                os.fsync(pack.fileno())
                with database:
                    database.executemany("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?)", rows)
                rows.clear()
    return pages


if __name__ == "__main__":
    print(crawl(sys.argv[1], Path(sys.argv[2]), re.compile(sys.argv[3])))

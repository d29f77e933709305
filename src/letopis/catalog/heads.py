"""Response headers, kept once however often they repeat."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

import xxhash
from backports import zstd

from letopis.catalog.database import Cursor, Database
from letopis.catalog.rows import Reader
from letopis.model import Headers

VOLATILE = frozenset({"date", "age", "expires", "set-cookie", "x-request-id", "x-runtime", "x-timer", "cf-ray", "via"})
"""Fields that change at each answer and alone do not make a new record."""

_WORDS = (
    '[["Server","nginx"],["Server","Apache"],["Date","Mon, 01 Jan 2024 00:00:00 GMT"],["Content-Type",'
    '"text/html; charset=utf-8"],["Content-Length","0"],["Connection","keep-alive"],["Cache-Control","no-cache"],'
    '["Content-Encoding","gzip"],["Vary","Accept-Encoding"],["ETag","\\"W/"],["Accept-Ranges","bytes"],'
    '["Last-Modified","Sun, 01 Feb 2026 12:00:00 GMT"],["Set-Cookie",""],["Expires",""],["Location","https://www."],'
    '["Transfer-Encoding","chunked"],["Strict-Transport-Security","max-age=31536000"],["Content-Type","text/html"]]'
)
_TYPE = re.compile(rb'\["content-type","\s*([^"\\;,\s]+)', re.IGNORECASE)
_DICTIONARY = _WORDS.encode()
_ZSTD = b"\x28\xb5\x2f\xfd"
"""How records of the first archives begin; a deflate stream cannot begin so."""
_WINDOW_BITS = -12
_PACKER = zlib.compressobj(9, zlib.DEFLATED, _WINDOW_BITS, 5, zdict=_DICTIONARY)
"""Has read the dictionary and nothing else: copied for each record."""
_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_REMEMBERED = 10_000
_AT_ONCE = 250


class Heads:
    """Stores header lists; equal ones (volatile fields aside) share one record."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recent: dict[int, int] = {}

    def add(self, cursor: Cursor, headers: Headers) -> int:
        """The id of the record that stands for these headers."""
        fingerprint = _fingerprint(headers)
        known = self._recent.get(fingerprint)
        if known is None:
            row = cursor.one("SELECT id FROM head WHERE fingerprint = ?", (fingerprint,))
            row = row or cursor.one(
                "INSERT INTO head (fingerprint, data) VALUES (?, ?) RETURNING id", (fingerprint, _pack(headers))
            )
            assert row is not None
            known = int(row[0])
            self._remember(fingerprint, known)
        return known

    def learn(self, cursor: Cursor, many: Iterable[Headers]) -> None:
        """Makes the records of many headers in a few statements, so that `add` has them at hand."""
        if len(self._recent) > _REMEMBERED // 2:
            self._recent.clear()
        fresh = {_fingerprint(headers): headers for headers in many}
        fresh = {fingerprint: headers for fingerprint, headers in fresh.items() if fingerprint not in self._recent}
        for fingerprint, number in self._stored(cursor, list(fresh)):
            self._recent[fingerprint] = number
            fresh.pop(fingerprint, None)
        numbers = cursor.numbers("head", len(fresh))
        rows = [(number, mark, _pack(fresh[mark])) for number, mark in zip(numbers, fresh, strict=True)]
        if rows:
            cursor.bulk("head", ("id", "fingerprint", "data"), rows)
        self._recent.update((mark, number) for number, mark, _ in rows)

    @staticmethod
    def _stored(cursor: Cursor, marks: Sequence[int]) -> Iterator[tuple[int, int]]:
        for start in range(0, len(marks), _AT_ONCE):
            part = marks[start : start + _AT_ONCE]
            places = ", ".join("?" * len(part))
            yield from cursor.all(f"SELECT fingerprint, id FROM head WHERE fingerprint IN ({places})", part)

    def _remember(self, fingerprint: int, number: int) -> None:
        if len(self._recent) >= _REMEMBERED:
            self._recent.clear()
        self._recent[fingerprint] = number

    def forget(self) -> None:
        """After a rolled back transaction, ids handed out inside it mean nothing."""
        self._recent.clear()

    def get(self, number: int, reader: Reader | None = None) -> Headers:
        """The headers of a record."""
        row = (reader or self._database).one("SELECT data FROM head WHERE id = ?", (number,))
        return _unpack(bytes(row[0])) if row else ()

    @staticmethod
    def read(data: bytes) -> Headers:
        """The headers of a record that came with another question."""
        return _unpack(data)

    def types(self, numbers: Collection[int]) -> dict[int, str]:
        """The media types of many records at once, lower-case, without parameters; empty where none is told."""
        wanted = sorted(numbers)
        found: dict[int, str] = {}
        for start in range(0, len(wanted), 500):
            part = wanted[start : start + 500]
            marks = ", ".join("?" * len(part))
            rows = self._database.all(f"SELECT id, data FROM head WHERE id IN ({marks})", part)
            found.update((int(row[0]), _type(bytes(row[1]))) for row in rows)
        return found


@lru_cache(maxsize=1024)
def _fingerprint(headers: Headers) -> int:
    """Remembered: a batch asks for each twice."""
    lasting = "\n".join([f"{low}:{value}" for name, value in headers if (low := name.lower()) not in VOLATILE])
    return xxhash.xxh3_64_intdigest(lasting.encode("utf-8", "surrogatepass")) - 2**63


def _pack(headers: Headers) -> bytes:
    """Deflate, not zstd: as small on such short texts, and its states are made 15 times as fast."""
    packer = _PACKER.copy()
    return packer.compress(fields_json(headers)) + packer.flush()


@lru_cache(maxsize=1024)
def fields_json(headers: Headers) -> bytes:
    """Header fields as compact JSON. Remembered: a pack keeps them beside the content, the catalogue as a record."""
    return _JSON(headers).encode("utf-8", "surrogatepass")


def _json(data: bytes) -> bytes:
    if data.startswith(_ZSTD):
        return zstd.decompress(data, zstd_dict=_zstd_dictionary())
    return zlib.decompressobj(_WINDOW_BITS, zdict=_DICTIONARY).decompress(data)


@lru_cache(maxsize=1)
def _zstd_dictionary() -> zstd.ZstdDict:
    return zstd.ZstdDict(_DICTIONARY, is_raw=True)


def _type(data: bytes) -> str:
    """Found by searching, not by reading the whole record: lists of captures need thousands."""
    match = _TYPE.search(_json(data))
    return match[1].decode("ascii", "replace").strip().lower() if match else ""


@lru_cache(maxsize=1024)
def _unpack(data: bytes) -> Headers:
    text = _json(data).decode("utf-8", "surrogatepass")
    return tuple([(name, value) for name, value in json.loads(text)])

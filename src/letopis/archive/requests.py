"""Requests of captures, and the pages whose capture sets these belong to.

Most requests of an archive are alike: what they share is a header record of the catalogue, as for the headers of
responses. A check stores the number of that record, the address of the server, and the conditions of its request that
its response does not repeat: less than twenty bytes. What a condition quotes from the headers of the previous version
is not stored again. These rows are only in the catalogue, so a catalogue rebuilt from the packs has none.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from letopis.archive.outside_values import list_from_outside, text_from_outside, whole_from_outside
from letopis.binary import decode_varint, encode_varints
from letopis.catalog import Cursor, HeaderRecords
from letopis.lazy import socket
from letopis.model import Headers, SentRequest, header
from letopis.tuples import NamedTuple

_METHOD, _VERSION, _PAGE = ":method", ":version", ":page"
_FIELD = ">"
"""Before the names of request fields: some of them mean another thing in answers."""
_ANSWERED_BY = {"if-none-match": "etag", "if-modified-since": "last-modified"}
_MOST_CONDITIONS = 16
_MOST_ADDRESS = 64
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]*")
_encode_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class RequestReference(NamedTuple):
    """What a check stores about its request: the shared record, the address, an IPv4 one as a number, and the values
    of its conditions in order, each empty if the response repeats it; none if it repeats all. In its own catalogue, a
    value can be the number of the header record that it is quoted from.
    """

    record: int
    address: int | str
    conditions: tuple[str | int, ...] = ()

    def values(self) -> list[int | str]:
        """As a list for JSON."""
        return [self.record, self.address, *self.conditions]

    @classmethod
    def of_values(cls, values: Sequence[Any], *, own: bool = False) -> RequestReference:
        """The inverse of `values`; ValueError for invalid values, and for quotes in those that are not its own."""
        record, address, *conditions = list_from_outside(values)
        if isinstance(address, str) and not (len(address) <= _MOST_ADDRESS and _ADDRESS.fullmatch(address)):
            raise ValueError("not an address")
        where = address if isinstance(address, str) else whole_from_outside(address, 2**32 - 1)
        quoted = tuple(
            whole_from_outside(one) if own and isinstance(one, int) else text_from_outside(one)
            for one in conditions[:_MOST_CONDITIONS]
        )
        return cls(whole_from_outside(record), where, quoted)

    def stored(self) -> list[int | str] | str:
        """As in details: the address and varints of the numbers in base64, or a list if more than numbers is said."""
        numbers = [one or 0 for one in self.conditions]
        if isinstance(self.address, str) or any(isinstance(one, str) for one in numbers):
            return self.values()
        data = self.address.to_bytes(4, "big") + encode_varints([self.record, *map(int, numbers)])
        return binascii.b2a_base64(data, newline=False).rstrip(b"=").decode()

    @classmethod
    def of_stored(cls, kept: Sequence[Any] | str) -> RequestReference:
        """The inverse; earlier releases stored only lists."""
        if not isinstance(kept, str):
            return cls.of_values(kept, own=True)
        data = binascii.a2b_base64(kept + "==")
        record, at = decode_varint(data, 4)
        conditions = list[str | int]()
        while at < len(data):
            quoted, at = decode_varint(data, at)
            conditions.append(quoted or "")
        return cls(record, int.from_bytes(data[:4], "big"), tuple(conditions))

    def spelled_out(self, record: Callable[[int], Headers]) -> RequestReference | None:
        """The same without quotes; None if the catalogue has lost a record that is quoted."""
        if all(isinstance(one, str) for one in self.conditions):
            return self
        names = [
            _ANSWERED_BY[name.lower()] for name, _ in _fields_in(record(self.record)) if name.lower() in _ANSWERED_BY
        ]
        texts = [
            one if isinstance(one, str) else header(record(one), name)
            for one, name in zip(self.conditions, names, strict=False)
        ]
        lost = any(one and not text for one, text in zip(self.conditions, texts, strict=False))
        return None if lost else self._replace(conditions=tuple(texts))


class PageReference(NamedTuple):
    """The page of a set that a check belongs to: the record of its URL, and how many milliseconds later it was
    checked.
    """

    record: int
    offset: int

    @classmethod
    def of_values(cls, values: Sequence[Any]) -> PageReference:
        """Made from a list; ValueError for invalid values."""
        record, offset = list_from_outside(values)
        sign = -1 if type(offset) is int and offset < 0 else 1
        return cls(whole_from_outside(record), sign * whole_from_outside(sign * offset))


class StoredExchange(NamedTuple):
    """How a capture was made, as far as it is known: its request, and URL and time of the page that requested it."""

    shared: Headers = ()
    reference: RequestReference | None = None
    page: str = ""
    page_time: int = 0

    def request(self, answer: Headers) -> SentRequest | None:
        """The request, given the headers of its answer; None where it was not kept."""
        if self.reference is None or not self.shared:
            return None
        fields = _fields_in(self.shared)
        own = map(str, self.reference.conditions)
        for place, (name, _) in enumerate(fields):
            if name.lower() in _ANSWERED_BY:
                fields[place] = (name, next(own, "") or header(answer, _ANSWERED_BY[name.lower()]))
        address = address_text(self.reference.address)
        return SentRequest(header(self.shared, _METHOD), tuple(fields), header(self.shared, _VERSION), address)


class RequestPlaces:
    """Provides the checks of a batch with references to their requests, and writes new shared records."""

    def __init__(self, heads: HeaderRecords) -> None:
        self._heads = heads
        self._references: dict[SentRequest, RequestReference] = {}
        """Numbers by requests without the values of their conditions."""
        self._by_tag: dict[tuple[object, ...], RequestReference] = {}
        """Numbers of requests whose only condition is a tag at their end, by all that precedes it."""
        self._texts: dict[RequestReference, str] = {}

    def request(
        self, cursor: Cursor, sent: SentRequest, answer: Headers, before: int | None = None
    ) -> RequestReference:
        """For the check of an answer; `before` is the record of the headers that its conditions may be quoted from."""
        if sent.headers and sent.headers[-1][0] == "If-None-Match":
            found = self._by_tag.get((sent.headers[:-1], sent.method, sent.http_version, sent.address))
            if found is not None and sent.headers[-1][1] == header(answer, "etag"):
                return found
            return self._place(cursor, sent, answer, before)
        return self._references.get(sent) or self._place(cursor, sent, answer, before)

    def text(self, reference: RequestReference) -> str:
        """The details of a check that has only its request."""
        found = self._texts.get(reference)
        if found is None:
            found = self._texts[reference] = _encode_json({"r": reference.stored()})
        return found

    def _place(self, cursor: Cursor, sent: SentRequest, answer: Headers, before: int | None) -> RequestReference:
        fields, own = list(sent.headers), list[str | int]()
        for place, (name, value) in enumerate(fields):
            if name[:1] in "Ii" and (answered := _ANSWERED_BY.get(name.lower())) is not None:
                fields[place] = (name, "")
                own.append("" if value == header(answer, answered) else self._quoted(cursor, value, answered, before))
        shared = SentRequest(sent.method, tuple(fields), sent.http_version, sent.address)
        reference = self._references.get(shared)
        if reference is None:
            number = self._heads.add(cursor, _record_of(shared))
            reference = self._references[shared] = RequestReference(number, address_code(sent.address))
        if len(own) == 1 and fields[-1][0] == "If-None-Match":
            self._by_tag[shared.headers[:-1], sent.method, sent.http_version, sent.address] = reference
        return reference._replace(conditions=tuple(own)) if any(own) else reference

    def _quoted(self, cursor: Cursor, value: str, name: str, before: int | None) -> str | int:
        return before if before and value == header(self._heads.get(before, cursor), name) else value

    def page(self, cursor: Cursor, url: str, offset: int) -> PageReference:
        """For a member of a set, whose page was checked so many milliseconds later."""
        return PageReference(self._heads.place(cursor, ((_PAGE, url),)).id, offset)


def _fields_in(shared: Headers) -> list[tuple[str, str]]:
    """The fields of the requests that share a record."""
    return [(name.removeprefix(_FIELD), value) for name, value in shared if name.startswith(_FIELD)]


def page_of_record(shared: Headers) -> str:
    """The URL of a page that a record names; empty if it names none."""
    return header(shared, _PAGE)


def _record_of(shared: SentRequest) -> Headers:
    """The record of the shared part of requests."""
    fields = [(_FIELD + name, value) for name, value in shared.headers]
    return ((_METHOD, shared.method), (_VERSION, shared.http_version), *fields)


@lru_cache(maxsize=4096)
def address_code(text: str) -> int | str:
    """An address as it is stored: an IPv4 one as a number."""
    try:
        return int.from_bytes(socket.inet_pton(socket.AF_INET, text), "big")
    except OSError:
        return text.partition("%")[0]


def address_text(code: int | str) -> str:
    """The inverse of `address_code`."""
    return socket.inet_ntoa(code.to_bytes(4, "big")) if isinstance(code, int) else code


class PartedExtra(NamedTuple):
    """Details of a row, and what they refer to by numbers that are valid only in their own catalogue."""

    extra: str | None
    request: RequestReference | None = None
    page: PageReference | None = None

    def joined(self) -> str | None:
        """The details as stored in a row."""
        if self.request is None and self.page is None:
            return self.extra
        fields = json.loads(self.extra) if self.extra else {}
        fields |= {"r": self.request.stored()} if self.request else {}
        fields |= {"p": self.page} if self.page else {}
        return _encode_json(fields)


def parted_extra(extra: str | None) -> PartedExtra:
    """Splits the details of a row; the text is unchanged if it refers to nothing."""
    if extra is None or ('"r":' not in extra and '"p":' not in extra):
        return PartedExtra(extra)
    fields = json.loads(extra)
    request, page = fields.pop("r", None), fields.pop("p", None)
    return PartedExtra(
        _encode_json(fields) if fields else None,
        RequestReference.of_stored(request) if request else None,
        PageReference.of_values(page) if page else None,
    )

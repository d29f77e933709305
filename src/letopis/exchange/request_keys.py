"""Requests as they stand in records; the addresses of their answers are made in `letopis.urls.request_keys`."""

from __future__ import annotations

from letopis.exchange.warc_records import head_end
from letopis.urls.request_keys import HttpRequest, indexed_url, record_url, request_url

__all__ = ["HttpRequest", "indexed_url", "parse_request", "record_url", "request_url"]


def parse_request(block: bytes) -> HttpRequest | None:
    """The request in the block of a record; None when it does not begin like one."""
    end, body_start = head_end(block)
    first, *lines = block[:end].decode("latin-1").split("\n")
    words = first.split()
    if len(words) < 2 or not words[0].isalpha():
        return None
    fields = (line.partition(":") for line in lines)
    content_type = next((value.strip() for name, _, value in fields if name.strip().lower() == "content-type"), "")
    return HttpRequest(words[0].upper(), content_type, block[body_start:])

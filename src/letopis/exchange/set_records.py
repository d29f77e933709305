"""Capture sets in WARC files: the picture, the text and what a page loaded, as records beside those of the page.

They are `resource` records under the addresses that other tools use: `urn:view:` for the picture, `urn:text:` for the
text as shown, `urn:pageinfo:` for the resources of the page. The records of the page and of what it loaded carry its
`WARC-Page-ID`; what several looks used belongs to the first.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from letopis.archive import Archive, identify
from letopis.archive.sets import CaptureSet
from letopis.exchange.warc_records import WarcRecord, record_id, stable_id
from letopis.model import SetMember, rfc3339

VIEW, TEXT, PAGE_INFO = "urn:view:", "urn:text:", "urn:pageinfo:"
PAGE_ID = "WARC-Page-ID"


def page_id(url: str, moment: str) -> str:
    """The id of a page in a collection: of its line in the list of pages, and of its records."""
    return stable_id("page", url, moment)


def with_page_id(record: WarcRecord, url: str, time: datetime) -> WarcRecord:
    """A record of a page, or of a resource that it loaded, with the id of that look at the page."""
    field = (PAGE_ID, page_id(url, rfc3339(time)))
    return WarcRecord((*record.headers, field), record.block, record.version)


def set_records(archive: Archive, found: CaptureSet, written: Collection[str] = ()) -> Iterator[WarcRecord]:
    """The records of a set but for those of its page and its members, which are captures of their own.

    What is `written` in other records is left out.
    """
    if found.has_screenshot and VIEW not in written:
        picture = archive.sets.screenshot(found)
        yield _resource(found, VIEW, picture_type(picture), picture)
    if found.has_text and TEXT not in written:
        yield _resource(found, TEXT, "text/plain", archive.sets.text(found).encode())
    if PAGE_INFO not in written:
        facts = page_info(found, archive.sets.members(found))
        yield _resource(found, PAGE_INFO, "application/json", json.dumps(facts, ensure_ascii=False).encode())


def picture_type(body: bytes) -> str:
    """The media type of a picture that was kept of a page, by its first bytes."""
    if body.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    return "image/png" if body.startswith(b"\x89PNG") else "image/webp"


def page_info(found: CaptureSet, members: Iterable[SetMember]) -> dict[str, Any]:
    """What a look used, by URL with its time; with all its times where it was used several times or is the page."""
    moment = rfc3339(found.time)
    times: dict[str, list[str]] = {}
    for one in members:
        times.setdefault(one.url, []).append(rfc3339(one.time))
    urls: dict[str, dict[str, Any]] = {found.url: {"ts": moment}}
    for url, used in times.items():
        urls[url] = {"ts": moment if url == found.url else used[0]}
        urls[url] |= {"times": used} if url == found.url or len(used) > 1 else {}
    return {"pageid": page_id(found.url, moment), "url": found.url, "ts": moment, "urls": urls}


def _resource(found: CaptureSet, scheme: str, media_type: str, body: bytes) -> WarcRecord:
    moment, address = rfc3339(found.time), scheme + found.url
    digest = f"sha1:{identify(body).text}"
    headers = (
        ("WARC-Type", "resource"),
        ("WARC-Record-ID", record_id("resource", address, moment)),
        ("WARC-Date", moment),
        ("WARC-Target-URI", address),
        (PAGE_ID, page_id(found.url, moment)),
        ("WARC-Block-Digest", digest),
        ("WARC-Payload-Digest", digest),
        ("Content-Type", media_type),
    )
    return WarcRecord(headers, body)

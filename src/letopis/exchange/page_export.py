"""Single pages for other tools: MHTML and HAR with all that one look used, and the main content as Markdown."""

from __future__ import annotations

import base64
import json
import textwrap
from collections.abc import Callable, Iterator
from datetime import datetime
from email.header import Header
from email.utils import format_datetime
from pathlib import Path

from letopis.archive import Archive, identify
from letopis.errors import NotFound
from letopis.exchange.har import har_entry, har_head, har_page
from letopis.exchange.selection import ExportSelection
from letopis.exchange.static_copy import CopyFolder, CopyReport
from letopis.exchange.static_names import file_name
from letopis.exchange.warc_export import ExportedRecord, records_of
from letopis.extract import format_for, read_page
from letopis.extract.extraction import HTML_TYPES, bare_type
from letopis.extract.main_content import content_text
from letopis.extract.rewriter import with_absolute_base
from letopis.model import Check, SetMember, Version, header, rfc3339
from letopis.tuples import NamedTuple

_LINE = 76
_PAGE_ID = "page_1"


class PagePart(NamedTuple):
    """A resource as it was when the page was checked: the check, and the version that was valid then."""

    check: Check
    version: Version


def page_parts(archive: Archive, url: str, moment: datetime) -> list[PagePart]:
    """The page as it was at a time, and what the look nearest to that used; resources without content are left out.

    A page that was never captured whole is exported alone; one that was never captured is NotFound.
    """
    found = archive.sets.nearest(url, moment)
    if found is None:
        version = archive.get(url, at=moment)
        return [_part(archive, SetMember(version.url, version.time))]
    page = SetMember(found.url, found.time)
    parts = [_part(archive, page)]
    for member in archive.sets.members(found):
        try:
            parts.append(_part(archive, member))
        except NotFound:
            continue
    return parts


def _part(archive: Archive, member: SetMember) -> PagePart:
    version = archive.get(member.url, at=member.time)
    checks = (check for check in archive.answers.history(member.url) if check.checked_at == member.time)
    check = next(checks, None)
    if check is None:
        raise NotFound(f"{member.url} has no check at {member.time}; capture the page again")
    return PagePart(check, version)


def mhtml_pieces(parts: list[PagePart]) -> Iterator[bytes]:
    """The page as it was shown with its resources, part by part; the same look always gives the same bytes.

    Browsers read a relative `<base>` against the place of the file, and then find no part: it becomes absolute.
    """
    page, title = parts[0].check, parts[0].version.url
    boundary = f"----letopis-{identify(title.encode() + b''.join(one.check.digest.encode() for one in parts)).text}"
    lines = (
        "From: <Saved by Letopis>",
        f"Snapshot-Content-Location: {page.url}",
        f"Subject: {Header(title, 'utf-8').encode()}",
        f"Date: {format_datetime(page.checked_at)}",
        "MIME-Version: 1.0",
        f'Content-Type: multipart/related;\r\n\ttype="text/html";\r\n\tboundary="{boundary}"',
    )
    yield ("\r\n".join(lines) + "\r\n\r\n").encode()
    for check, version in parts:
        kind = " ".join(header(version.headers, "content-type").split()) or "application/octet-stream"
        head = (
            f"\r\n--{boundary}",
            f"Content-Type: {kind}",
            "Content-Transfer-Encoding: base64",
            f"Content-Location: {check.url}",
        )
        is_page = bare_type(version.content_type) in HTML_TYPES
        body = with_absolute_base(check.final_url, version.body, kind) if is_page else version.body
        coded = "\r\n".join(textwrap.wrap(base64.b64encode(body).decode(), _LINE))
        yield ("\r\n".join(head) + "\r\n\r\n" + coded + "\r\n").encode("utf-8", "replace")
    yield f"\r\n--{boundary}--\r\n".encode()


def page_har(archive: Archive, parts: list[PagePart]) -> Iterator[bytes]:
    """The same as what servers sent, with the requests; an answer without a body has that of its version."""
    page = parts[0].check
    started = rfc3339(page.checked_at)
    whole = archive.sets.of(page.url, page.checked_at, page.checked_at)
    alone = {"startedDateTime": started, "id": _PAGE_ID, "title": page.url, "pageTimings": {}}
    yield from har_head([har_page(archive, whole[0], _PAGE_ID) if whole else alone])
    comma = b""
    for check, version in parts:
        sent = archive.as_sent(version)
        answer = check._replace(status=200 if check.status == 304 else check.status, headers=sent.headers)
        records = [one.record for one in records_of(archive, [check])]
        own = next((one for one in records if one.kind in ("response", "revisit")), None)
        asked = next((one for one in records if one.kind == "request"), None)
        if own is not None:
            entry = har_entry(ExportedRecord(own, answer, sent.body), asked)
            yield comma + b"\n" + json.dumps({"pageref": _PAGE_ID, **entry}).encode()
            comma = b","
    yield b"\n]}}\n"


class MarkdownDocument(NamedTuple):
    """The main content of a page, with the name of its file."""

    name: str
    text: str


def markdown_documents(
    archive: Archive, selected: ExportSelection, progress: Callable[[int], None]
) -> Iterator[MarkdownDocument]:
    """The newest version of each page of the selection that says something, in the order of their first check."""
    newest = selected._replace(latest=True)
    for count, row in enumerate(selected.resources(archive), 1):
        progress(count)
        for check in newest.checks(archive, row.url):
            if check.version is None or not _is_document(check.content_type):
                continue
            found = archive.get(row.url, version=check.version)
            page = read_page(found.body, found.url, found.headers)
            if page.blocks:
                text = content_text(page, found.body, found.headers, "markdown", found.time)
                yield MarkdownDocument(_markdown_name(row.url), text)


_NO_DOCUMENTS = ("text/css", "text/javascript", "application/javascript", "application/json")


def _is_document(content_type: str) -> bool:
    """Whether a type has a reader, and is meant for people."""
    kind = bare_type(content_type)
    return not kind or (format_for(kind) is not None and kind not in _NO_DOCUMENTS)


def _markdown_name(url: str) -> str:
    """The path of the page in a folder: as in a static copy, with another ending."""
    return file_name(url, "text/html").removesuffix(".html") + ".md"


def export_markdown(
    archive: Archive, target: Path, selected: ExportSelection, progress: Callable[[int], None]
) -> CopyReport:
    """Writes a folder of Markdown files; a second run writes only what changed."""
    selected.resources(archive)
    folder = CopyFolder(target)
    for document in markdown_documents(archive, selected, progress):
        folder.write(document.name, document.text.encode("utf-8", "replace"))
    return CopyReport(folder.count, folder.written, folder.finish())

"""E-mail: single messages (also web pages saved as one), and mailboxes of many."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from email import message_from_bytes
from email.header import decode_header
from email.message import Message

from letopis.extract.charsets import decode
from letopis.extract.html import read_embedded_html
from letopis.extract.metadata import read_date
from letopis.extract.pages import PageDraft, Source
from letopis.extract.simple_formats import link_urls
from letopis.model import BlockKind

_MOST_MESSAGES = 10_000
_MOST_PARTS = 1000
_DEEPEST = 20
_MOST_HEADER = 4096
_INSIDE = "http://mail.invalid/"
"""Where a message stands while it is read: what it links to there is nowhere."""
_MESSAGE_START = re.compile(rb"^From [^\r\n]*\r?\n(?=[!-9;-~]+:)", re.MULTILINE)
_QUOTED_START = re.compile(rb"^>(?=>*From )", re.MULTILINE)
_FOLD = re.compile(r"\r?\n(?=[ \t])")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


def read_message(source: Source, draft: PageDraft) -> None:
    """Reads one message: its subject as the title, who wrote it to whom as its description."""
    message = message_from_bytes(source.body)
    draft.charset = "utf-8"
    draft.head(title=_header(message, "subject"), description=_people(message))
    draft.published = _date(message)
    _read_parts(message, draft)
    draft.settle_document(source.mode)


def read_mailbox(source: Source, draft: PageDraft) -> None:
    """Reads a mailbox: each message under its subject; the dates are those of its first and its last message."""
    draft.charset = "utf-8"
    dates: list[datetime] = []
    for body in _messages(source.body):
        message = message_from_bytes(body)
        draft.block(BlockKind.H2, _header(message, "subject"))
        draft.block(BlockKind.PARAGRAPH, _people(message))
        dates.extend(filter(None, (_date(message),)))
        _read_parts(message, draft)
        if draft.is_full:
            break
    draft.published, draft.modified = min(dates, default=None), max(dates, default=None)
    draft.settle_document(source.mode)


def _messages(mailbox: bytes) -> Iterator[bytes]:
    """The messages of a mailbox; lines of theirs that begin like a message were quoted."""
    starts = [found.span() for _, found in zip(range(_MOST_MESSAGES), _MESSAGE_START.finditer(mailbox), strict=False)]
    ends = [start for start, _ in starts[1:]] + [len(mailbox)]
    for (_, start), end in zip(starts, ends, strict=True):
        yield _QUOTED_START.sub(b"", mailbox[start:end])


def _header(message: Message, name: str) -> str:
    """A header field as text, encoded words undone."""
    value = _FOLD.sub("", str(message.get(name, ""))[:_MOST_HEADER])
    try:
        words = decode_header(value)
    except (ValueError, LookupError):
        return value
    return "".join(text if isinstance(text, str) else decode(text, label or "utf-8").text for text, label in words)


def _people(message: Message) -> str:
    named = ((name, _header(message, name.lower())) for name in ("From", "To", "Cc"))
    return "; ".join(f"{name}: {value}" for name, value in named if value)


def _date(message: Message) -> datetime | None:
    return read_date(str(message.get("date", "")))


def _read_parts(message: Message, draft: PageDraft) -> None:
    for _, part in zip(range(_MOST_PARTS), _readable_parts(message), strict=False):
        if draft.is_full:
            return
        name = _file_name(part)
        if name:
            draft.block(BlockKind.ITEM, name)
        if part.get_content_maintype() == "text":
            _read_text(part, draft)


def _readable_parts(message: Message, depth: int = 0) -> Iterator[Message]:
    """The parts that say something: of several forms of one text the richest, of the files of a page the page."""
    inside = message.get_payload()
    if not isinstance(inside, list):
        yield message
        return
    parts = [part for part in inside if isinstance(part, Message)]
    kind = message.get_content_subtype()
    if kind == "alternative":
        parts = sorted(parts, key=lambda part: part.get_content_type() == "text/plain")[:1]
    elif kind == "related":
        parts = parts[:1]
    for part in parts if depth < _DEEPEST else ():
        yield from _readable_parts(part, depth + 1)


def _file_name(part: Message) -> str:
    """What an attached file is called."""
    try:
        return (part.get_filename() or "")[:_MOST_HEADER]
    except (ValueError, LookupError, TypeError):
        return ""


def _read_text(part: Message, draft: PageDraft) -> None:
    body = part.get_payload(decode=True)
    content_type = str(part.get("content-type", "text/plain"))
    if not isinstance(body, bytes):
        return
    if part.get_content_subtype() == "html":
        place = str(part.get("content-location", "")).strip()
        base = place if place.startswith(("http://", "https://")) else _INSIDE
        read_embedded_html(body, base, draft, content_type, inside=_INSIDE)
        return
    text = decode(body, str(part.get_param("charset", "") or "")).text
    link_urls(text, draft)
    for paragraph in _BLANK_LINE.split(text):
        draft.block(BlockKind.PARAGRAPH, paragraph)

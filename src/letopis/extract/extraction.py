"""The way from bytes to a Page: look at the type, choose the format, read, add what the headers say.

Risky formats, and HTML that could keep the parser busy for minutes, are read
in a process of their own, bounded in time and memory. Its answer comes back
as JSON: nothing that a broken library sends is run.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

from letopis.errors import MissingExtra
from letopis.extract.detection import sniff
from letopis.extract.formats import Format, format_for
from letopis.extract.metadata import language_of, primary_language, read_date, robots_directives
from letopis.extract.pages import Mode, PageDraft, Source, charset_of, page_from_json
from letopis.model import Headers, Page, header

_SMALL_PAGE = 64 * 1024
_LARGE_PAGE = 256 * 1024
_FEW_TAGS = 8192
_MOST_DEPTH = 512
_MOST_ATTRIBUTES = 256
_LONG_TAG = re.compile(rb"<[a-zA-Z][^>]{4096}")
_TAG = re.compile(rb"""<(/?)([a-zA-Z][^\s/>]*)([^>"']*+(?:"[^"]*+"[^>"']*+|'[^']*+'[^>"']*+)*+)""")
_BLANKS = re.compile(rb"[\s/]+")
# Never open for long: without content, or closed by the next of their kind.
_FLAT_ELEMENTS = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd tr td th option".split()
)


def needs_own_process(body: bytes) -> bool:
    """Whether a page could take more than about a second to parse."""
    if len(body) <= _SMALL_PAGE:
        return False
    many = body.count(b"<") > _FEW_TAGS
    return (many or len(body) > _LARGE_PAGE or _LONG_TAG.search(body) is not None) and _is_deep_or_wide(body)


def _is_deep_or_wide(body: bytes) -> bool:
    """Counts open elements and attributes as far as plain looks can tell; doubt counts as danger."""
    opened: dict[bytes, int] = {}
    depth = 0
    for slash, name, rest in _TAG.findall(body):
        if len(rest) > 2 * _MOST_ATTRIBUTES and len(_BLANKS.findall(rest)) > _MOST_ATTRIBUTES and _is_wide(rest):
            return True
        name = name.lower()
        if name in _FLAT_ELEMENTS:
            continue
        if not slash:
            opened[name] = opened.get(name, 0) + 1
            depth += 1
            if depth > _MOST_DEPTH:
                return True
        elif opened.get(name):
            opened[name] -= 1
            depth -= 1
    return False


def _is_wide(attributes: bytes) -> bool:
    """More attributes than any honest tag has; blanks and slashes inside quotes do not count."""
    bare = re.sub(rb"""=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>]++)""", b" ", attributes)
    return len(bare.split()) > _MOST_ATTRIBUTES


MAX_SECONDS = 20.0
"""Longest time that one document may take, start of the process included."""
MAX_MEMORY = 1536 * 1024 * 1024
"""Most address space of the process."""
_MOST_ANSWER = 64 * 1024 * 1024


def read_in_own_process(source: Source, *, detect_language: bool = True, seconds: float = MAX_SECONDS) -> Page:
    """The Page of a document; a crash, a hang or a memory bomb gives a Page with a warning."""
    order = {
        "url": source.url,
        "content_type": source.content_type,
        "headers": source.headers,
        "mode": source.mode,
        "detect_language": detect_language,
        "seconds": seconds,
        "memory": MAX_MEMORY,
    }
    given = json.dumps(order).encode() + b"\n" + source.body
    command = [sys.executable, "-m", "letopis.extract.worker"]
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=seconds, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return _failed(source, f"reading it took longer than {seconds:g} s and was stopped")
    if done.returncode != 0 or len(done.stdout) > _MOST_ANSWER:
        return _failed(source, "reading it failed or needed too much memory and was stopped")
    try:
        return page_from_json(done.stdout)
    except (ValueError, TypeError, KeyError):
        return _failed(source, "reading it gave no usable answer")


def _failed(source: Source, reason: str) -> Page:
    draft = PageDraft(source)
    draft.warn(f"the document was not read: {reason}")
    return draft.page()


_HTML_TYPES = ("text/html", "application/xhtml+xml")


def read_page(
    body: bytes,
    url: str,
    headers: Headers = (),
    *,
    detect_language: bool = True,
    mode: Mode = "full",
    apart: bool = True,
) -> Page:
    """The common form of a document of any format; never raises for what the document holds.

    `url` is its absolute, normalised address. What cannot be read gives a
    Page without blocks and with a warning. Mode `basic` finds title and links
    only, mode `skim` just the links to other documents, without their texts.
    With `apart` false nothing is read in a process of its own.
    """
    source = Source(body, url, sniff(body, header(headers, "content-type")), headers, mode)
    found = format_for(source.content_type)
    if found is None:
        draft = PageDraft(source)
        draft.charset = charset_of(source.header("content-type"))
        return _finished(source, draft, detect_language=False)
    if apart and (found.risky or (source.content_type in _HTML_TYPES and needs_own_process(body))):
        return read_in_own_process(source, detect_language=detect_language)
    return read_in_this_process(source, found, detect_language=detect_language)


def read_in_this_process(source: Source, found: Format, *, detect_language: bool) -> Page:
    """Reads a document in this process. A fault of its format becomes a warning."""
    draft = PageDraft(source)
    try:
        found.read(source, draft)
    except MissingExtra as fault:
        draft.warn(str(fault))
    except Exception as fault:
        # Whatever a library says about a hostile document, the crawl goes on.
        draft.warn(f"the document is damaged or unusual ({type(fault).__name__}: {str(fault)[:200]})")
    return _finished(source, draft, detect_language=detect_language and source.mode == "full")


def _finished(source: Source, draft: PageDraft, *, detect_language: bool) -> Page:
    """Adds what the headers say, and the language."""
    if source.headers:
        _settle_robots(source, draft)
        if source.mode != "skim":
            _settle_headers(source, draft)
    draft.language = language_of(draft.blocks, draft.declared_language) if detect_language else draft.declared_language
    return draft.page()


def _directives_for_all(value: str) -> set[str]:
    """The directives of an X-Robots-Tag value, none when it speaks to one robot by name."""
    name, colon, _ = value.partition(":")
    named = colon and "," not in name and not name.strip().lower().startswith(("max-", "unavailable_after"))
    return set() if named else robots_directives(value)


def _settle_robots(source: Source, draft: PageDraft) -> None:
    for name, value in source.headers:
        if name.lower() == "x-robots-tag":
            draft.robots.update(_directives_for_all(value))


def _settle_headers(source: Source, draft: PageDraft) -> None:
    if not draft.declared_language:
        draft.declared_language = primary_language(source.header("content-language"))
    if draft.modified is None and source.mode == "full":
        draft.modified = read_date(source.header("last-modified"))

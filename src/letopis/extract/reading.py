"""The way from bytes to a Page: look at the type, choose the format, read, settle what headers add."""

from __future__ import annotations

from letopis.errors import MissingExtra
from letopis.extract.dates import read_date
from letopis.extract.draft import Draft
from letopis.extract.formats import Format, format_for
from letopis.extract.html_guard import needs_guard
from letopis.extract.html_meta import directives
from letopis.extract.isolated import read_apart
from letopis.extract.language import detect, primary
from letopis.extract.sniff import sniff
from letopis.extract.source import Mode, Source, charset_of
from letopis.model import Headers, Page, header

_HTML = ("text/html", "application/xhtml+xml")


def page(
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
        draft = Draft(source)
        draft.charset = charset_of(source.header("content-type"))
        return _finished(source, draft, detect_language=False)
    if apart and (found.risky or (source.content_type in _HTML and needs_guard(body))):
        return read_apart(source, detect_language=detect_language)
    return read_here(source, found, detect_language=detect_language)


def read_here(source: Source, found: Format, *, detect_language: bool) -> Page:
    """Reads a document in this process. A fault of its format becomes a warning."""
    draft = Draft(source)
    try:
        found.read(source, draft)
    except MissingExtra as fault:
        draft.warn(str(fault))
    except Exception as fault:
        # Whatever a library says about a hostile document, the crawl goes on.
        draft.warn(f"the document is damaged or unusual ({type(fault).__name__}: {str(fault)[:200]})")
    return _finished(source, draft, detect_language=detect_language and source.mode == "full")


def _finished(source: Source, draft: Draft, *, detect_language: bool) -> Page:
    """Adds what the headers say, and the language."""
    if source.headers:
        _settle_robots(source, draft)
        if source.mode != "skim":
            _settle_headers(source, draft)
    draft.language = detect(draft.blocks, draft.declared_language) if detect_language else draft.declared_language
    return draft.page()


def _for_all(value: str) -> set[str]:
    """The directives of an X-Robots-Tag value, none when it speaks to one robot by name."""
    name, colon, _ = value.partition(":")
    named = colon and "," not in name and not name.strip().lower().startswith(("max-", "unavailable_after"))
    return set() if named else directives(value)


def _settle_robots(source: Source, draft: Draft) -> None:
    for name, value in source.headers:
        if name.lower() == "x-robots-tag":
            draft.robots.update(_for_all(value))


def _settle_headers(source: Source, draft: Draft) -> None:
    if not draft.declared_language:
        draft.declared_language = primary(source.header("content-language"))
    if draft.modified is None and source.mode == "full":
        draft.modified = read_date(source.header("last-modified"))

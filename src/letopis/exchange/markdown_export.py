"""What the pages of an archive say, as Markdown: a file for each page, or all of them one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from letopis.archive import Archive
from letopis.exchange.selection import ExportSelection
from letopis.exchange.static_copy import CopyFolder, CopyReport
from letopis.exchange.static_names import file_name
from letopis.extract import format_for, read_page
from letopis.extract.detection import bare_type
from letopis.extract.main_content import content_text
from letopis.tuples import NamedTuple


class MarkdownDocument(NamedTuple):
    """The main content of a page, with the name of its file."""

    name: str
    text: str


def markdown_documents(
    archive: Archive, selected: ExportSelection, progress: Callable[[int], None]
) -> Iterator[MarkdownDocument]:
    """The newest version of each page of the selection that says something, in the order of their first check."""
    newest = replace(selected, latest=True)
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
    """Whether a type is read at all, and is made for readers."""
    kind = bare_type(content_type)
    return not kind or (format_for(kind) is not None and kind not in _NO_DOCUMENTS)


def _markdown_name(url: str) -> str:
    """Where the page lies in a folder: as in a static copy, with another ending."""
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

"""Imports from other tools: captures, pages to watch, and addresses to crawl, from files or through HTTP."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from letopis.archive import OWN
from letopis.archive.job_control import incoming_file, sent_file
from letopis.archive.jobs import JobQueue
from letopis.errors import Damaged, LetopisError, NotFound, UsageError
from letopis.exchange.imports import import_sources, is_list, source_kind, watches_of_source
from letopis.exchange.sources import CDXJ, ImportedWatch, ImportReport, SourceHints
from letopis.lazy import lazy
from letopis.model.printing import counted
from letopis.monitor.watch import WatchSpec, parse_filters
from letopis.monitor.watch_list import WatchList
from letopis.operations.context import Cancelled, Context
from letopis.operations.crawls import MAX_SEEDS, CrawlScope
from letopis.operations.job_rows import Job, job_of, requester_of
from letopis.operations.operation import Value, operation
from letopis.operations.parameters import Parameters, parameter
from letopis.operations.watch_options import LONGEST_TAG
from letopis.tuples import NamedTuple
from letopis.urls import parse_seed_url
from letopis.urls.scope import ScopeKind

if TYPE_CHECKING:
    import shutil
    import tempfile
    from xml.etree import ElementTree

    from letopis import crawl
    from letopis.operations import jobs
else:  # what a file holds is taken in without them
    ElementTree, crawl = lazy("xml.etree.ElementTree"), lazy("letopis.crawl")
    jobs, shutil, tempfile = lazy("letopis.operations.jobs"), lazy("shutil"), lazy("tempfile")

STANDARD_INPUT = "-"
_KIND = "Its kind, if it is not detected: warc, wacz, cdxj, har, mhtml, urls, or a tool (dated, git, wget...)."
_WATCHES = "Watch from now on what a list names, or another tool watched."
_TAG = "Tag of these watches, where the list gives them none."
_IF_LIST_WATCHES = "If the file is a list: watch the pages that it names from now on."
_IF_LIST_SEEDS = "If the file is a list: queue its addresses for the crawl of the daemon, this far from each."
_SEEDS = "Queue the addresses of a list for the crawl of the daemon, this far from each."
_ODD = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)


class ImportCommand(Parameters):
    """What to import, and what is known about it."""

    sources: tuple[str, ...] = parameter(
        "Files, folders, or addresses of indexes; - for standard input.", argument=True, metavar="FILE..."
    )
    kind: str | None = parameter(_KIND, default=None, longest=64)
    url: str = parameter("Page of dated files; with a slash at its end, their folder.", default="", metavar="URL")
    urls: str | None = parameter("urls.tsv, or urls.yaml of urlwatch.", default=None, metavar="FILE")
    path: tuple[str, ...] = parameter("Only these files or folders of a git history.", default=(), metavar="PATH")
    base: str = parameter("Folder or address of the WARC files that a CDXJ names.", default="", metavar="WHERE")
    watches: bool = parameter(_WATCHES, default=False)
    tag: str = parameter(_TAG, default="", longest=LONGEST_TAG)
    seeds: CrawlScope | None = parameter(_SEEDS, default=None)


class UploadCommand(Parameters):
    """A file, and what is known about it."""

    file: Path = parameter("Its bytes.")
    name: str = parameter("Its name, where that tells what it is.", default="", longest=200)
    kind: str | None = parameter(_KIND, default=None, longest=64)
    url: str = parameter("Address of the page, if the file does not contain it.", default="")
    watches: bool = parameter(_WATCHES, default=False)
    tag: str = parameter(_TAG, default="", longest=LONGEST_TAG)
    seeds: CrawlScope | None = parameter(_SEEDS, default=None)


class ImportAnswer(NamedTuple):
    """The result of an import: `same` were already there, `refused` counts the reasons for what was omitted or
    corrected.

    `future` are imported captures that are more than a day ahead of the clock; `queued` are pages that are newly
    queued for a crawl; `beside` are records without a web address, kept with the capture that they belong to; `sets`
    are imported capture sets; `sites` are the hosts with the most captures, at most five.
    """

    records: int
    taken: int
    checks: int
    versions: int
    same: int
    refused: Mapping[str, int]
    examples: list[str]
    watches: int | None
    future: int
    queued: int | None
    beside: int
    sets: int
    sites: list[str]


def _import_sentence(done: ImportAnswer) -> str:
    planned = [] if done.watches is None else [counted(done.watches, "watch", "watches")]
    planned += [] if done.queued is None else [f"{counted(done.queued, 'page')} queued"]
    if planned and not done.records and not done.refused:  # lists hold no records
        return ", ".join(planned)
    said = f"{counted(done.records, 'record')}: {counted(done.versions, 'version')}, {counted(done.checks, 'check')}"
    beside = [f"{done.beside} without a web address kept with them"] if done.beside else []
    beside += [counted(done.sets, "capture set")] if done.sets else []
    faults = counted(sum(done.refused.values()), "fault")
    return ", ".join([said, f"{done.same} already there", *beside, faults, *planned])


@operation(
    "import", right=OWN, verb="import", audited="imported", subject=lambda asked: ", ".join(asked.sources)[:200],
    sentence=_import_sentence,
    examples=(
        "letopis import crawl.warc.gz collection.wacz",
        "letopis import index.cdxj --base https://example.org/warcs/",
        "letopis import session.har page.mhtml",
        "letopis import saved-pages/ --url https://example.org/news",
        "letopis import site.git --url https://example.org/ --path public",
        "letopis import changedetection-data/ --watches",
        "letopis import bookmarks.html --seeds page",
        "letopis import pages.txt --watches --tag news",
        "zcat crawl.warc.gz | letopis import -",
    ),
)  # fmt: skip
def import_archives(context: Context, asked: ImportCommand) -> Value[ImportAnswer]:
    """Import archives, recorded sessions, saved pages, lists of addresses, and archives of other tools.

    These are WARC, ARC, WACZ, CDXJ and CDX; HAR; MHTML and SingleFile; and what git, urlwatch, changedetection.io,
    wget, HTTrack or you have kept. Lists are OPML, bookmarks, sitemaps, one address a line, and those of urlwatch,
    Distill and Visualping: watch or crawl what they name.

    Times, headers and contents stay as they were. What is already there is not taken twice, so a run that was stopped
    goes on when it is repeated. A source of which nothing can be taken, or that breaks off, is an error; what could be
    taken stays.
    """
    hints = SourceHints(asked.url, Path(asked.urls) if asked.urls else None, asked.path)
    with _with_standard_input(asked.sources) as names, _errors_naming(names):
        done = _Import(context, tuple(names), asked.kind, hints, asked.watches, asked.seeds, asked.tag, names)
        return done.carried_out(base=asked.base)


@contextmanager
def _with_standard_input(sources: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """What errors call each source. A file takes the place of standard input: what a source is shows at its beginning,
    and ZIP at its end.
    """
    if STANDARD_INPUT not in sources:
        yield {source: source for source in sources}
        return
    with tempfile.TemporaryDirectory(prefix="letopis-import-") as folder:
        file = Path(folder) / "standard-input"
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
        copies = [(str(file), "standard input") if source == STANDARD_INPUT else (source, source) for source in sources]
        yield dict(copies)


@operation(
    "import_upload", right=OWN, route=("POST", "/import"), audited="imported",
    subject=lambda asked: asked.name or "a file through HTTP", errors=(413, 500),
)  # fmt: skip
def import_upload(context: Context, asked: UploadCommand) -> Value[ImportAnswer]:
    """Import the file in the request body: an archive, a recorded session, a saved page, or a list.

    An index names other files, so it is taken in where those are. The size of
    a file is bounded by the setting serve.max_upload.
    """
    name = plain_file_name(asked.name)
    file = asked.file.rename(asked.file.with_name(name)) if name else asked.file
    hints, names = SourceHints(asked.url), {str(file): name or "the file"}
    with _errors_naming(names):
        kind = asked.kind or source_kind(str(file))
        if kind == CDXJ:
            raise UsageError("an index names other files; import it with the command line, or send those files")
        work = _Import(context, [str(file)], kind, hints, asked.watches, asked.seeds, asked.tag, names)
        answer = work.carried_out()
        for fault in answer.faults:
            if not answer.value.taken:
                raise fault
        return answer


@contextmanager
def _errors_naming(names: Mapping[str, str]) -> Iterator[None]:
    """Errors call files as whoever sent them does: where those are kept meanwhile tells them nothing."""
    try:
        yield
    except LetopisError as error:
        for file, name in names.items():
            error.args = (error.message.replace(file, name),)
        raise


def plain_file_name(name: str) -> str:
    """The name of a file that somebody sent, without folders and odd signs; empty where nothing is left."""
    return _ODD.sub("-", name.replace("\\", "/").rpartition("/")[2])[-100:].strip(".-")


class _Import(NamedTuple):
    """An import in progress."""

    context: Context
    sources: Sequence[str]
    kind: str | None
    hints: SourceHints
    watches: bool
    seeds: CrawlScope | None
    tag: str
    names: Mapping[str, str]

    def carried_out(self, base: str = "") -> Value[ImportAnswer]:
        """Captures first, then what is watched or crawled from now on."""
        report = ImportReport()
        import_sources(
            self.context.archive, self.sources, lambda done: self.context.steps("records", report.expected)(done),
            base=base, kind=self.kind, hints=self.hints, report=report,
        )  # fmt: skip
        watched = self._watched(report) if self.watches else None
        queued = self._queued(report) if self.seeds else None
        answer = ImportAnswer(
            report.records, report.checks, report.checks, report.versions, report.same, dict(report.refused),
            report.examples, watched, report.future, queued, report.beside,
            report.sets, report.sites,
        )  # fmt: skip
        remark = "\n".join([*(f"fault: {example}" for example in report.examples), *_future_remarks(report)])
        return Value(answer, [] if watched or queued else self._faults(report), remark)

    def _named(self) -> Iterator[ImportedWatch]:
        for source in self.sources:
            yield from watches_of_source(source, self.kind, self.hints)

    def _watched(self, report: ImportReport) -> int:
        watches = WatchList(self.context.archive)
        wishes = (wish._replace(tag=wish.tag or self.tag) for wish in self._named())
        return sum(_watch_imported(watches, self.context, wish, report) for wish in wishes)

    def _queued(self, report: ImportReport) -> int:
        """Seeds in as many crawls as their number needs."""
        seeds: list[str] = []
        for wish in self._named():
            try:
                url = parse_seed_url(wish.url)
                self.context.refuse_private([url])
                seeds.append(url)
            except LetopisError as error:
                report.refuse(f"it cannot be crawled ({error})", wish.url)
        queued = 0
        for start in range(0, len(seeds), MAX_SEEDS):
            some = tuple(seeds[start : start + MAX_SEEDS])
            options = crawl.CrawlOptions(some, ScopeKind(self.seeds or "page"), origin=self.context.origin)
            queued += crawl.enqueue_seeds(self.context.archive, options)
        return queued

    def _faults(self, report: ImportReport) -> list[LetopisError]:
        empty = [
            UsageError(f"nothing was imported from {source}; give a file that contains captures, or name its kind")
            for source in map(self._name, report.empty)
        ]
        wish = "names no page that could be imported; give another list"
        if not self.watches and not self.seeds:
            wish = "is a list of addresses; add --watches to watch them, or --seeds page to crawl them"
        lists = [UsageError(f"{self._name(source)} {wish}") for source in report.lists]
        cut = [
            Damaged(
                f"{source} breaks off or is damaged; what can be read of it was taken in, import the whole file as well"
            )
            for source in map(self._name, report.cut)
        ]
        return [*empty, *lists, *cut]

    def _name(self, source: str) -> str:
        return self.names.get(source, source)


def _future_remarks(report: ImportReport) -> Iterator[str]:
    """Says which captures were taken in that lie ahead of the clock."""
    if report.future:
        captures = "1 capture is" if report.future == 1 else f"{report.future} captures are"
        yield f"{captures} more than a day ahead of the clock, taken in as told, and the newest of its page until then"
        yield from (f"future: {named}" for named in report.from_future)


def _watch_imported(watches: WatchList, context: Context, wish: ImportedWatch, report: ImportReport) -> bool:
    """Watches what another tool watched, as far as it can be; the report names what cannot."""
    for name in wish.left_out:
        report.refuse(f"the watch is kept without its {name}, which is not imported", wish.url)
    filters = []
    for one in wish.filters:
        try:
            parse_filters([one])
            filters.append(one)
        except LetopisError as error:
            report.refuse(f"the watch is kept without a filter ({error})", wish.url)
    spec = WatchSpec(every=wish.every, filters=tuple(filters), origin=context.origin)
    pages, sitemaps = ((), (wish.url,)) if wish.is_sitemap else ((wish.url,), ())
    try:
        known = watches.numbers([wish.url])
        watches.add(pages, spec, wish.tag or None, sitemaps, keep=True)
        if known:
            report.refuse("it is already watched, and that watch is not changed", wish.url)
            return True
        if wish.paused:
            watches.pause([wish.url])
    except LetopisError as error:
        report.refuse(f"its watch cannot be created ({error})", wish.url)
        return False
    return True


# Files that are sent, as runs


class SendFile(Parameters):
    """A file to import, and what is known about it."""

    file: Path = parameter("Its bytes.")
    name: str = parameter("Its name, where that tells what it is.", default="", longest=200)
    kind: str | None = parameter(_KIND, default=None, longest=64)
    watches: bool = parameter(_IF_LIST_WATCHES, default=False)
    seeds: CrawlScope | None = parameter(_IF_LIST_SEEDS, default=None)


@operation(
    "start_import", right=OWN, route=("POST", "/runs/import"), status=201, errors=(413, 429), audited="run started",
    subject=lambda asked: f"import {asked.name}".strip(), numbered=True,
)  # fmt: skip
def start_import(context: Context, asked: SendFile) -> Value[Job]:
    """Queue the import of the file in the request body.

    The file is on disk before the job is queued, and is removed when the job has taken it in or is deleted. The size
    of a file is bounded by the setting serve.max_upload.
    """
    context.archive.require_writable()
    name = plain_file_name(asked.name) or "file"
    query = ElementTree.Element("query", {"name": f"import of {name}"[:100], "package": "sengine"})
    given = {"kind": asked.kind, "watches": "true" if asked.watches else "", "seeds": asked.seeds}
    ElementTree.SubElement(query, "import", {"file": name} | {key: value for key, value in given.items() if value})
    read = jobs.read_query(context, ElementTree.tostring(query, encoding="utf-8"))
    with incoming_file(context.archive, asked.file) as sent:
        row = JobQueue(context.archive).submit(
            read, requester_of(context), before=lambda number: sent.place(number, name)
        )
    return Value(job_of(row))


class ImportSentFile(Parameters):
    """Which of the files that were uploaded with the job."""

    file: str = parameter("Name of the file.", longest=100)
    kind: str | None = parameter(_KIND, default=None, longest=64)
    watches: bool = parameter(_IF_LIST_WATCHES, default=False)
    seeds: CrawlScope | None = parameter(_IF_LIST_SEEDS, default=None)

    def __post_init__(self) -> None:
        if not _FILE_NAME.fullmatch(self.file):
            raise UsageError(f"'{self.file[:70]}' is not an uploaded file; send one to /runs/import")


@operation("import_sent_file", right=OWN, step="import")
def import_sent_file(context: Context, asked: ImportSentFile) -> Value[ImportAnswer]:
    """Import the file that was uploaded with a job; it is removed afterwards, unless the job is paused."""
    file = None if context.output is None else sent_file(context.output, asked.file)
    if file is None or not file.is_file():
        raise NotFound(f"no file '{asked.file}' was sent with this job; send it to /runs/import")
    try:
        with _errors_naming({str(file): asked.file}):
            listed = is_list(str(file), asked.kind)
        watches, seeds = (asked.watches, asked.seeds) if listed else (False, None)
        wish = UploadCommand(file=file, name=asked.file, kind=asked.kind, watches=watches, seeds=seeds)
        answer = import_upload(context, wish)
    except Cancelled:
        raise
    except LetopisError:
        file.unlink(missing_ok=True)
        raise
    file.unlink(missing_ok=True)
    return answer

"""What the steps of a query share, and the steps that answer from links, words, versions and the archive itself."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

from lxml import etree

from letopis.archive import Archive
from letopis.binary import atomic_file
from letopis.crawl import CrawlStats
from letopis.errors import LetopisError, NotReady, UsageError
from letopis.exchange.cdx import export_cdxj
from letopis.exchange.parquet_export import export_parquet
from letopis.exchange.selection import ExportSelection
from letopis.exchange.static_copy import export_static
from letopis.exchange.wacz_export import export_wacz
from letopis.exchange.warc_export import export_warc
from letopis.exchange.warc_records import WarcCompression
from letopis.index.link_graph import Graph
from letopis.index.link_index import LinkIndex
from letopis.index.query_language import WordQuery, parse_word_query
from letopis.index.search_ranking import hit_row
from letopis.index.search_results import project_resources, search
from letopis.index.word_analysis import nearby_words
from letopis.index.word_index import WordIndex, derive_base_forms
from letopis.jobs.language.documents import attributes_of, element, parent_element, row_elements, start_tag
from letopis.jobs.query import JobContext
from letopis.jobs.queue import remove_old_jobs
from letopis.model import Check, parse_time, to_millis
from letopis.monitor import Monitor, check_row, requested_versions
from letopis.urls import UrlRules, UrlRuleVerdict


class JobCancelled(LetopisError):
    """A job was stopped before its end; what it had recorded stays."""


@dataclass
class QueryRun:
    """What the steps of one query share.

    `mode` is how the query wants its pages indexed, `domains` what it took
    from the cache, `figures` and `judged` what its downloads did so far.
    """

    around: JobContext
    rules: UrlRules
    mode: str = "full"
    domains: list[str] = field(default_factory=list)
    figures: CrawlStats = field(default_factory=CrawlStats)
    judged: dict[str, UrlRuleVerdict] = field(default_factory=dict)

    @property
    def archive(self) -> Archive:
        """The archive that is asked."""
        return self.around.archive

    @cached_property
    def links(self) -> LinkIndex:
        """The index of links, which may be behind."""
        return LinkIndex(self.archive)

    @cached_property
    def words(self) -> WordIndex:
        """The index of words, which may be behind."""
        return WordIndex(self.archive)

    def graph(self) -> Graph:
        """All links, up to date."""
        self.links.catch_up(lambda done: None, self.around.progress.cancelled)
        self.raise_if_cancelled()
        return self.links.graph()

    def current_words(self) -> WordIndex:
        """The words, up to date."""
        self.words.catch_up(lambda done: None, self.around.progress.cancelled)
        self.raise_if_cancelled()
        return self.words

    def raise_if_cancelled(self) -> None:
        """Raises Cancelled when nobody wants the answer any more."""
        if self.around.progress.cancelled():
            raise JobCancelled("the job was stopped; what it had recorded stays")

    def moment(self, step: etree._Element, name: str = "at") -> datetime | None:
        """A time that a step names, None where it does not."""
        text = step.get(name)
        return None if text is None else parse_time(text, self.around.clock())

    def millis(self, step: etree._Element, name: str = "at") -> int:
        """The same in milliseconds, now where the step names none."""
        return to_millis(self.moment(step, name) or self.around.clock())


Step = Callable[[etree._Element, QueryRun], bytes]
Steps = Mapping[str, Step]


def bool_attribute(step: etree._Element, name: str) -> bool:
    """Whether an attribute says yes."""
    return step.get(name, "false").strip() in ("true", "1")


def int_attribute(step: etree._Element, name: str) -> int | None:
    """A number that an attribute gives."""
    text = step.get(name)
    return None if text is None else int(text)


def element_text(step: etree._Element) -> str:
    """The text of an element without blanks around it."""
    return (step.text or "").strip()


def child_texts(step: etree._Element, name: str) -> list[str]:
    """The texts of the children of a name."""
    return [element_text(child) for child in step.iterchildren(name)]


def run_steps(steps: list[etree._Element], run: QueryRun, known: Steps) -> bytes:
    """One element a step, in their order. A failing step fails the query, with its name in the sentence."""
    done: list[bytes] = []
    for place, step in enumerate(steps, 1):
        name = str(step.tag)
        run.around.progress.step(place, len(steps), name)
        run.raise_if_cancelled()
        try:
            done.append(known[name](step, run))
        except JobCancelled:
            raise
        except LetopisError as fault:
            raise type(fault)(f"step {place}, <{name}>: {fault}") from fault
        run.around.progress.share(1.0)
    return b"\n".join(done)


_LIMIT, _DISTANCE, _WORDS = 10, 5, 50


def search_step(step: etree._Element, run: QueryRun) -> bytes:
    """The best pages of a question, as `letopis search` finds them."""
    project = step.get("project")
    question = parse_word_query(
        element_text(step),
        sites=_words_of_attribute(step, "site"),
        languages=_words_of_attribute(step, "lang"),
        blocks=_words_of_attribute(step, "block"),
        at=run.moment(step),
        since=run.moment(step, "from"),
        until=run.moment(step, "to"),
        resources=project_resources(run.archive, project) if project else None,
    )
    found = search(
        run.current_words(), question, int_attribute(step, "limit") or _LIMIT, int_attribute(step, "offset") or 0
    )
    return row_elements("search", {"query": element_text(step), **attributes_of(step)}, "hit", map(hit_row, found))


def wordprefix_step(step: etree._Element, run: QueryRun) -> bytes:
    """The words that stand near a word, as `letopis near` lists them."""
    word, distance = element_text(step), int_attribute(step, "between") or _DISTANCE
    asked = parse_word_query(
        word, sites=_words_of_attribute(step, "site"), languages=_words_of_attribute(step, "lang"), at=run.moment(step)
    )
    place = WordQuery(limits=asked.limits, at=asked.at)
    found = nearby_words(run.current_words(), word, distance, place, int_attribute(step, "limit") or _WORDS)
    about = {"between": distance, "of": word}
    return row_elements("wordprefix", about, "near", (row._asdict() for row in found))


def wordfigure_step(step: etree._Element, run: QueryRun) -> bytes:
    """Gives words with an ending their base forms; lists those that were settled now."""
    pairs = derive_base_forms(run.current_words(), step.get("extension", ""), step.get("basicextension", ""))
    return row_elements(
        "wordfigure", attributes_of(step), "word", ({"form": form, "base": base} for form, base in pairs)
    )


def _words_of_attribute(step: etree._Element, name: str) -> tuple[str, ...]:
    return tuple(step.get(name, "").split())


_CHECKS_AT_ONCE = 64
"""Checks between two looks at whether the job is still wanted."""


def check_step(step: etree._Element, run: QueryRun) -> bytes:
    """Looks at pages now; one row an address, whether it was there or not."""
    urls, checks = child_texts(step, "url"), list[Check]()
    with Monitor(run.archive, step.get("as", "default")) as monitor:
        options = replace(
            monitor.options,
            now=bool_attribute(step, "now"),
            force=bool_attribute(step, "force"),
            head=bool_attribute(step, "head"),
            private_ok=run.around.private_allowed,
        )
        for begin in range(0, len(urls), _CHECKS_AT_ONCE):
            run.raise_if_cancelled()
            checks += monitor.look(urls[begin : begin + _CHECKS_AT_ONCE], options)
            run.around.progress.share(len(checks) / len(urls))
    return parent_element(
        "check", {"as": step.get("as"), "count": len(checks)}, map(_check_element, map(check_row, checks))
    )


def _check_element(row: dict[str, Any]) -> str:
    """A check as an element, with one element inside for each redirect."""
    hops, plain = row.pop("redirects"), {name: value for name, value in row.items() if value not in ("", (), [])}
    if not hops:
        return element("page", plain)
    return start_tag("page", plain) + "".join(element("redirect", hop) for hop in hops) + "</page>"


def diff_step(step: etree._Element, run: QueryRun) -> bytes:
    """What changed on a page between two times, or since somebody's last look."""
    url, form, private = step.get("url", ""), step.get("format", "unified"), run.around.private_allowed
    uid = step.get("as")
    if uid is not None:
        with Monitor(run.archive, uid) as monitor:
            monitor.options = replace(monitor.options, private_ok=private)
            shown = monitor.get(url).changes(form)
    else:
        times = run.moment(step, "from"), run.moment(step, "to")
        sides = requested_versions(
            run.archive, url, *times, offline=bool_attribute(step, "offline"), private_ok=private
        )
        shown = run.archive.difference(*sides, form)
    text = shown.decode("utf-8", "replace") if isinstance(shown, bytes) else shown
    return element("diff", attributes_of(step), text).encode()


def compact_step(step: etree._Element, run: QueryRun) -> bytes:
    """Re-compresses, carries out retention, gives space back."""
    stop = run.around.progress.cancelled
    report = run.archive.compact(effort="quick" if bool_attribute(step, "quick") else "full", stop=stop)
    if stop():
        raise JobCancelled("the job was stopped; what was compacted stays so, and the rest comes next time")
    return element("compact", asdict(report)).encode()


def cleaner_step(step: etree._Element, run: QueryRun) -> bytes:
    """Forgets ended jobs, their results and files when they are older than `jobs.keep_for`."""
    return element("cleaner", {"jobs": remove_old_jobs(run.archive)}).encode()


_ENDINGS = {"gzip": ".warc.gz", "zstd": ".warc.zst", "none": ".warc"}
_ZIP_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of everything in a zip file: the same export gives the same bytes."""


class JobExport(NamedTuple):
    """What one export was asked for."""

    run: QueryRun
    target: Path
    selected: ExportSelection
    compression: WarcCompression

    def progress(self, done: int) -> None:
        """Goes on unless the job was stopped."""
        self.run.raise_if_cancelled()


def export_step(step: etree._Element, run: QueryRun) -> bytes:
    """Writes a part of the archive to a file of the job; the result says where it lies."""
    kind, compression = step.get("kind", ""), cast(WarcCompression, step.get("compression", "gzip"))
    target = _output_folder(run) / step.get("file", f"export{_file_ending(kind, compression)}")
    selected = ExportSelection(
        step.get("site", ""), run.moment(step, "from"), run.moment(step, "to"), bool_attribute(step, "latest"),
        step.get("project", ""),
    )  # fmt: skip
    counts = JOB_EXPORTERS[kind](JobExport(run, target, selected, compression))
    about = {"kind": kind, "file": _path_in_archive(target, run), **counts, "bytes": target.stat().st_size}
    return element("export", about).encode()


def _file_ending(kind: str, compression: WarcCompression) -> str:
    if kind == "warc":
        return _ENDINGS[compression]
    return f".{kind}" if kind in ("wacz", "cdxj") else f".{kind}.zip"


def _path_in_archive(target: Path, run: QueryRun) -> str:
    """Where a file lies in the archive; whoever reads the result need not know where the archive is."""
    inside = target.is_relative_to(run.archive.folder)
    return str(target.relative_to(run.archive.folder)) if inside else target.name


def _output_folder(run: QueryRun) -> Path:
    folder = run.around.output
    if folder is None:
        raise UsageError("this job may write no files; leave <export> out or ask the owner of the archive")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"cannot make {folder}: {error.strerror}; check its permissions") from None
    return folder


def _export_warc(wanted: JobExport) -> dict[str, int]:
    with atomic_file(wanted.target) as out:
        count = export_warc(wanted.run.archive, out, wanted.selected, wanted.compression, wanted.progress)
    return {"records": count}


def _export_cdxj(wanted: JobExport) -> dict[str, int]:
    with atomic_file(wanted.target) as out:
        return {"records": export_cdxj(wanted.run.archive, out, wanted.selected, wanted.progress)}


def _export_wacz(wanted: JobExport) -> dict[str, int]:
    return {"records": export_wacz(wanted.run.archive, wanted.target, wanted.selected, wanted.progress)}


def _export_static(wanted: JobExport) -> dict[str, int]:
    with _zipped_folder(wanted) as folder:
        return {"files": export_static(wanted.run.archive, folder, wanted.selected, wanted.progress).files}


def _export_parquet(wanted: JobExport) -> dict[str, int]:
    with _zipped_folder(wanted) as folder:
        return export_parquet(wanted.run.archive, folder, wanted.selected, wanted.progress)


JOB_EXPORTERS: dict[str, Callable[[JobExport], dict[str, int]]] = {
    "warc": _export_warc,
    "wacz": _export_wacz,
    "cdxj": _export_cdxj,
    "static": _export_static,
    "parquet": _export_parquet,
}
"""The kinds of the verb `export`; the schema knows the same."""


@contextmanager
def _zipped_folder(wanted: JobExport) -> Iterator[Path]:
    """A folder that becomes the file when it is complete: a job's files are fetched one by one, without folders."""
    folder = wanted.target.with_name(f".{wanted.target.name}.parts")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        yield folder
        with atomic_file(wanted.target) as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                wanted.run.raise_if_cancelled()
                _add_to_zip(packed, file, str(file.relative_to(folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _add_to_zip(packed: zipfile.ZipFile, file: Path, name: str) -> None:
    entry = zipfile.ZipInfo(name, _ZIP_DATE)
    entry.compress_type = zipfile.ZIP_STORED if file.suffix == ".parquet" else zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    entry.file_size = file.stat().st_size
    with file.open("rb") as given, packed.open(entry, "w") as taken:
        shutil.copyfileobj(given, taken, 1 << 20)

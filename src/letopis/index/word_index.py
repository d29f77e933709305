"""The index of words: follows the log of versions; derived, can be deleted and is built again.

A document stands for a run of versions with the same words and says until when they were valid. When a newer version
comes, the document before it is written again, in the same commit as the new one and the mark that says how far the
index has come. So a crash loses whole batches only, which are taken in again.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

from letopis.archive import Archive
from letopis.archive.cluster import PieceRunner, pieces_of
from letopis.archive.index_facts import VersionLog, VersionSpan, lock_word, release_word, settle_base_forms, word_forms
from letopis.binary import locked_folder, make_private_folder
from letopis.errors import LetopisError, NotReady, SettingError, UsageError
from letopis.index.anchor_index import AnchorIndex, AnchorReader
from letopis.index.base_forms import BaseForms
from letopis.index.learned_forms import LearnedForms
from letopis.index.old_texts import OldTextWriter, TextGroup, text_group
from letopis.index.page_text import nfc, split_words, unmarked
from letopis.index.word_documents import (
    PIECE,
    WORDS_FORMAT,
    WordIndexMark,
    contents_of_runs,
    contents_on_worker,
    forms_document,
    mark_document,
    open_word_index,
    run_document,
    word_schema,
)
from letopis.index.word_runs import (
    OPEN_END,
    Content,
    IndexedRun,
    VersionRun,
    changed_runs,
    differing_pages,
    merged_runs,
    single_runs,
)
from letopis.index.word_snapshot import WordSnapshot
from letopis.lazy import Query, tantivy

BATCH = 10_000
"""Versions of one commit: what a crash costs, and few enough pieces for quick questions."""
_WRITER_BYTES = 256_000_000
_MAX_MARKS = 500
"""Marks that are left lying: to delete one makes every question look for deleted documents in its piece."""
_PROGRESS_STEP = 100
_LEARNED_PAGES = 20_000
"""Pages whose words are learned from."""
NO_STAMP = (0, 0)
"""The stamp of an index that is not there."""


def tells_of_damage(error: BaseException) -> bool:
    """Whether an error means that files of the index are not what was written; the library panics at some of that."""
    said = str(error)
    if type(error).__name__ == "PanicException":
        return True
    is_unreadable = "ata corrupt" in said or ("IO error" in said and "os error" not in said)
    return isinstance(error, ValueError) and is_unreadable


class WordIndex:
    """Words of all versions of an archive, kept in `index/words` of its folder.

    Safe to use from several threads and processes: one of them indexes what is new, the others read what it wrote.
    """

    def __init__(self, archive: Archive, spread: PieceRunner | None = None) -> None:
        """`spread` reads the pages; without one they are read here."""
        self.archive = archive
        self._log = VersionLog(archive)
        self._spread = spread
        self._folder = archive.folder / "index" / "words"
        self._data = self._folder / f"v{WORDS_FORMAT}"
        self._meta = str(self._data / "meta.json")
        self._schema = word_schema()
        self._turn = threading.RLock()
        self._held = threading.local()
        self._index: Any = None
        self._snapshot: WordSnapshot | None = None
        self._bases: BaseForms | None = None
        self._mark = WordIndexMark()
        self._stamp = NO_STAMP
        self._names = AnchorIndex(archive, self._folder / "names")
        self._learned = LearnedForms(self._folder / "forms")

    # Questions

    def snapshot(self, *, fresh: bool = True) -> WordSnapshot:
        """The index as it is now; `fresh` indexes what was recorded since."""
        with self._turn:
            if getattr(self._held, "back", False):
                self._open_as_it_is()
            elif fresh or self._snapshot is None:
                try:
                    self.catch_up()
                except NotReady:  # a full disk: what was taken in before can be read
                    if self._snapshot is None:
                        raise
            assert self._snapshot is not None
            return self._snapshot

    def is_made(self) -> bool:
        """Whether there is something to ask, behind or not."""
        with self._turn:
            self._follow_disk()
            return self._snapshot is not None

    def _refresh_forms(self) -> None:
        """Learns word forms if enough was indexed since they were last learned."""
        snapshot, bases, versions = self._snapshot, self.bases(), self._mark.versions
        assert snapshot is not None
        # Where nothing can be written, dictionaries have to do: learned forms only help.
        with suppress(LetopisError):
            if self._learned.is_stale(versions, bases.signature):
                with locked_folder(self._folder):
                    if self._learned.is_stale(versions, bases.signature):
                        pages = partial(snapshot.vocabulary, bases.languages, _LEARNED_PAGES)
                        self._learned.learn(pages, versions, bases)

    @contextmanager
    def as_it_is(self) -> Iterator[None]:
        """Within the block, queries of this thread index nothing: they do not wait for what was recorded since."""
        self._held.back = True
        try:
            yield
        finally:
            self._held.back = False

    def _open_as_it_is(self) -> None:
        self._follow_disk()
        if self._snapshot is None:
            with locked_folder(self._folder):
                self._open()

    def names(self, snapshot: WordSnapshot) -> AnchorReader | None:
        """What links call pages, updated after something was indexed; None if there is nothing."""
        with self._turn:
            if not getattr(self._held, "back", False) and not self._names.is_settled(snapshot):
                self._refresh_anchors(snapshot)
            return self._names.reader

    def names_lag(self) -> int:
        """Versions recorded whose links do not name pages yet."""
        with self._turn:
            return self._names.lag()

    def _refresh_anchors(self, snapshot: WordSnapshot) -> None:
        bases = self.bases().signature
        # Where links cannot be read or nothing can be written, what is there has to do: names only help.
        with suppress(LetopisError):
            if self._names.is_stale(bases):
                with locked_folder(self._folder):
                    if self._names.is_stale(bases):
                        self._names.make(snapshot, bases)
        self._names.settle(snapshot)

    def lag(self) -> int:
        """Versions recorded and not yet in the index; takes nothing in.

        An index that was made with other base forms answers until it is made anew, and lacks all versions.
        """
        with self._turn:
            self._follow_disk()
            is_older = self._mark.bases != self.bases().signature
            return self._log.count_since(0 if is_older else self._mark.last)

    def bases(self) -> BaseForms:
        """Base forms as settings and people have settled them now."""
        if self._bases is None:
            self._bases = BaseForms(self.archive.settings.search, word_forms(self.archive))
        return self._bases

    # Following

    def catch_up(
        self, progress: Callable[[int], None] = lambda done: None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        """Indexes all versions recorded since; returns how many. Can be stopped between two batches."""
        if not self.archive.settings.search.enabled:
            raise SettingError("the index of words is turned off; set search.enabled = true")
        with self._turn:
            if not self._behind():
                return 0
            with locked_folder(self._folder):
                try:
                    done = self._taken_in(progress, stop)
                except BaseException as error:
                    if not tells_of_damage(error):
                        raise
                    self._start_over()
                    done = self._taken_in(progress, stop)
            self._refresh_forms()
            return done

    def _taken_in(self, progress: Callable[[int], None], stop: Callable[[], bool]) -> int:
        self._open()
        self._check_log()
        return self._take_all(progress, stop)

    def rebuild(
        self, progress: Callable[[int], None] = lambda done: None, stop: Callable[[], bool] = lambda: False
    ) -> int:
        """Rebuilds the index; returns how many versions it indexed. If stopped, it continues at the next query."""
        with self._turn:
            with locked_folder(self._folder):
                self._start_over()
                self._names.remove()
            return self.catch_up(progress, stop)

    def reindex(self, resources: Iterable[int]) -> None:
        """Writes the documents of some pages again, after it was settled otherwise what is to be found of them."""
        with self._turn:
            self.catch_up()
            with locked_folder(self._folder):
                self._open()
                self._write_pages(resources)

    def base_forms_changed(self) -> None:
        """After base forms were changed: the next query rebuilds the index."""
        with self._turn:
            self._bases = None

    def _behind(self) -> bool:
        """Whether there is something to do; mostly costs reading one file and the end of the log."""
        first = self._index is None
        self._follow_disk()
        if self._index is None or self._mark.bases != self.bases().signature:
            return True
        if first and self._log_differs():
            return True
        return self._log.has_since(self._mark.last)

    def _follow_disk(self) -> None:
        """Follows what other processes did: indexed versions, rebuilt the index, removed it."""
        stamp = self._disk_stamp()
        if stamp == NO_STAMP:
            self._forget()
        elif stamp != self._stamp:
            self._open()
            self._stamp = stamp

    def _disk_stamp(self) -> tuple[int, int]:
        """Changes with every commit; nothing when there is no index."""
        try:
            facts = os.stat(self._meta)  # Asked at every question: a Path costs four times as much.
        except OSError:
            return NO_STAMP
        return facts.st_ino, facts.st_mtime_ns

    def _open(self) -> None:
        """Opens the index or makes an empty one; what cannot be opened, or is of another release, is started over."""
        if not self._data.exists():
            self._start_over()
        try:
            self._open_files()
        except BaseException as error:
            if not tells_of_damage(error) and not (isinstance(error, ValueError) and self._index is None):
                raise
            self._start_over()
            self._open_files()

    def _open_files(self) -> None:
        self._index = None
        make_private_folder(self._data)
        self._index = open_word_index(self._schema, self._data)
        self._index.config_reader("manual")
        self._see()

    def _see(self) -> None:
        self._index.reload()
        self._learned.open(self.bases().signature)
        self._snapshot = WordSnapshot(self._index.searcher(), self._schema, self.bases, self._learned, self._log)
        self._mark = self._snapshot.mark

    def _forget(self) -> None:
        self._index, self._snapshot, self._mark, self._stamp = None, None, WordIndexMark(), NO_STAMP

    def _start_over(self) -> None:
        for folder in self._folder.glob("v*"):
            shutil.rmtree(folder, ignore_errors=True)
        self._forget()

    def _check_log(self) -> None:
        """The log may have changed before the last known version: versions dropped, or begun earlier."""
        self._bases_again()
        if self._mark.last and self._mark.bases != self.bases().signature:
            self._start_over()
            self._open()
        if self._log_differs():
            self._reconcile()

    def _log_differs(self) -> bool:
        return self._log.mark(self._mark.last) != (self._mark.versions, self._mark.times)

    def _bases_again(self) -> None:
        """Another process may have settled words since; the tables are kept where nothing differs."""
        now = BaseForms(self.archive.settings.search, word_forms(self.archive))
        if self._bases is None or now.signature != self._bases.signature:
            self._bases = now

    def _take_all(self, progress: Callable[[int], None], stop: Callable[[], bool]) -> int:
        done = 0
        while not stop() and (spans := self._log.spans_since(self._mark.last, BATCH)):
            gone, runs, stays = self._changes(spans)
            report = partial(_forward_progress, progress, done, len(spans))
            self._write(runs, spans[-1].id, [("id", number) for number in gone], stays, report)
            done += len(spans)
            progress(done)
        return done

    def _changes(self, spans: list[VersionSpan]) -> tuple[list[int], list[VersionRun], dict[int, list[IndexedRun]]]:
        """Documents that new versions replace, by id, the runs to be written, and those that stay as they are.

        Pages are in the order of recording.
        """
        pages: dict[int, list[VersionSpan]] = {}
        for span in spans:
            pages.setdefault(span.resource, []).append(span)
        known = self._indexed(Query.term_set_query(self._schema, "resource", list(pages))) if self._mark.last else {}
        gone: list[int] = []
        runs: list[VersionRun] = []
        for page, new in pages.items():
            new.sort(key=lambda span: span.number)
            if page in known:
                around = self._around(page, new[0].number, spans[-1].id, known[page])
                old, again = changed_runs(around, known[page], self._mark.last)
                gone += old
                runs += again
                known[page] = [run for run in known[page] if run.id not in old]
            else:
                runs += single_runs(new)
        return gone, runs, known

    def _around(self, page: int, number: int, last: int, known: list[IndexedRun]) -> list[VersionSpan]:
        """Versions of a page up to a known one, from the run before a number on."""
        first = next((run.first for run in known if run.first < number <= run.number + 1), max(0, number - 1))
        return [span for span in self._log.spans_of_page(page, first) if span.id <= last]

    def _indexed(self, query: Any) -> dict[int, list[IndexedRun]]:
        """What the index says about runs of versions, by page and in order."""
        assert self._snapshot is not None
        addresses = self._snapshot.every(query)
        columns = [self._snapshot.numbers(field, addresses) for field in ("resource", *IndexedRun._fields)]
        found: dict[int, list[IndexedRun]] = {}
        for page, *numbers in zip(*columns, strict=True):
            found.setdefault(page, []).append(IndexedRun(*numbers))
        for runs in found.values():
            runs.sort(key=lambda run: run.time)
        return found

    def _reconcile(self) -> None:
        """Compares every document with the log and writes those pages again that differ."""
        known = self._indexed(Query.range_query(self._schema, "id", tantivy.FieldType.Integer, 1, None))
        self._write_pages(differing_pages(self._log.spans_up_to(self._mark.last), known))

    def _write_pages(self, pages: Iterable[int]) -> None:
        """Writes all that was indexed of some pages again."""
        chosen = sorted(pages)
        spans = [span for page in chosen for span in self._log.spans_of_page(page) if span.id <= self._mark.last]
        self._write(single_runs(spans), self._mark.last, [("resource", page) for page in chosen])

    # Writing

    def _write(
        self,
        runs: list[VersionRun],
        last: int,
        gone: Iterable[tuple[str, int]],
        stays: Mapping[int, Sequence[IndexedRun]] = MappingProxyType({}),
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """One commit: documents that are gone, by a number in a field, those of runs, and the mark.

        Texts can refer to those of runs that stay.
        """
        mark = WordIndexMark(last, *self._log.mark(last), self.bases().signature, self._mark.serial + 1)
        try:
            writer = self._index.writer(_WRITER_BYTES, 1)
            for field, number in (*self._old_marks(), *gone):
                writer.delete_documents_by_term(field, number)
            entries: set[str] = set()
            texts = OldTextWriter(partial(self._texts_before, stays))
            for run, content in merged_runs(self._contents(runs, progress)):
                entries.update(content["forms"])
                writer.add_document(run_document(self._schema, run, content, texts))
            if fresh := self._new_entries(entries):
                writer.add_document(forms_document(self._schema, fresh))
            writer.add_document(mark_document(self._schema, mark))
            writer.commit()
            writer.wait_merging_threads()
        except ValueError as error:
            if tells_of_damage(error):
                raise
            raise NotReady(f"cannot write the index of words ({error}); check the free disk space") from None
        self._see()
        self._stamp = self._disk_stamp()

    def _texts_before(self, stays: Mapping[int, Sequence[IndexedRun]], page: int, number: int) -> TextGroup | None:
        """The texts that a page has before a version."""
        assert self._snapshot is not None
        older = [run for run in stays.get(page, ()) if run.number < number and run.until != OPEN_END]
        return text_group(page, older[-1].id, self._snapshot.kept) if older else None

    def _new_entries(self, entries: Iterable[str]) -> list[str]:
        """Those of some entries of the dictionary that the index does not have."""
        assert self._snapshot is not None
        searcher = self._snapshot.searcher
        return sorted(entry for entry in entries if not searcher.doc_freq("forms", entry))

    def _old_marks(self) -> tuple[tuple[str, int], ...]:
        """What all marks have when there are too many of them."""
        assert self._snapshot is not None
        return (("id", 0),) if self._snapshot.marks() >= _MAX_MARKS else ()

    def _contents(
        self, runs: list[VersionRun], progress: Callable[[int], None]
    ) -> Iterator[tuple[VersionRun, Content]]:
        """The texts of runs, in order, computed by the workers that read pages; a few of them here."""
        if self._spread is None or len(runs) < PIECE:
            found: Iterable[tuple[VersionRun, Content]] = contents_of_runs(self.archive, runs, self.bases())
        else:
            found = chain.from_iterable(self._spread.each(contents_on_worker, pieces_of(runs, PIECE)))
        for done, one in enumerate(found, 1):
            yield one
            if done % _PROGRESS_STEP == 0:
                progress(done)


def _forward_progress(progress: Callable[[int], None], before: int, most: int, count: int) -> None:
    progress(before + min(count, most))


def derive_base_forms(index: WordIndex, extension: str, basic_extension: str = "") -> list[tuple[str, str]]:
    """Words with an ending get the word without it (or with the basic ending) as base, where that word exists.

    Only words of the archive that have no other base form and are not locked
    take part. Answers the pairs that were settled; the next question sees them.
    """
    ending, basic = nfc(extension).lower(), nfc(basic_extension).lower()
    if not ending:
        raise UsageError("the extension is empty; give the ending of the words that are meant")
    snapshot = index.snapshot()
    searcher = snapshot.searcher
    newest = {term.partition("=")[2] for term, _ in searcher.terms_with_prefix("placed", "")}
    older = {term for field in ("base", "stood") for term, _ in searcher.terms_with_prefix(field, "")}
    inflected = {term[1:].partition("=")[0] for term, _ in searcher.terms_with_prefix("forms", ">")}
    known = {row.form for row in word_forms(index.archive)}
    free = sorted(
        word for word in (newest | older) - inflected - known if word.endswith(ending) and unmarked(word).isalpha()
    )
    stems = [(word, word.removesuffix(ending) + basic) for word in free]
    pairs = [pair for pair in stems if len(set(pair)) == 2 and all(w in newest or snapshot.has_stood(w) for w in pair)]
    settle_base_forms(index.archive, pairs)
    index.base_forms_changed()
    return pairs


def lock_base_form(index: WordIndex, word: str) -> str:
    """The word, as the index knows it, is its own base from now on, whatever rules and dictionaries say."""
    form = _single_word(word)
    lock_word(index.archive, form)
    index.base_forms_changed()
    return form


def release_base_form(index: WordIndex, word: str) -> str:
    """Removes a lock or a base form that was set for a word; returns the word as the index knows it."""
    form = _single_word(word)
    release_word(index.archive, form)
    index.base_forms_changed()
    return form


def _single_word(word: str) -> str:
    words = split_words(nfc(word))
    if len(words) != 1:
        raise UsageError(f"'{word[:80]}' is not one word")
    return words[0]

"""The store: contents in, contents out, and the promises in between."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from letopis.binary import encode_varint
from letopis.config.settings import StoreSettings
from letopis.errors import NotReady
from letopis.lazy import lazy
from letopis.store.backend import Backend, WriteLease
from letopis.store.content_reader import GENERIC_TEXT, CompactionSource, PackReader, SiteTexts
from letopis.store.pack_format import (
    HEADER_BYTES,
    RecordKind,
    RecordMethod,
    VersionHead,
    encode_fact_head,
    encode_version_head,
)
from letopis.store.pack_scans import FactReader, PackReleaser, PackVerifier
from letopis.store.packs import LogWriter, Packs, recover_log
from letopis.store.record_bodies import LARGE_CONTENT, PIECE_BYTES, ContentCompressor
from letopis.store.values import (
    AppendResult,
    CompactionBatch,
    ContentPlace,
    DecodedContent,
    HighWaterMark,
    PackDamage,
    PackGone,
    PackTotals,
    VersionChain,
    VersionFact,
    VersionItem,
)

if TYPE_CHECKING:
    from letopis.store import pack_compaction
else:
    pack_compaction = lazy("letopis.store.pack_compaction")

CompactionEffort = Literal["quick", "full"]


class Store:
    """Packs of contents. One writer at a time, in one thread; any number of readers, never waiting."""

    def __init__(self, backend: Backend, settings: StoreSettings) -> None:
        self._backend = backend
        self._settings = settings
        self._packs = Packs(backend)
        self._reader = PackReader(self._packs)
        self._facts = FactReader(self._packs, self._reader)
        self._compressor = ContentCompressor(settings.methods)
        self._lease: WriteLease | None = None
        self._log: LogWriter | None = None

    @classmethod
    def open(
        cls,
        backend: Backend,
        settings: StoreSettings,
        *,
        write: bool,
        written: Callable[[], HighWaterMark] = HighWaterMark,
    ) -> Store:
        """Opens what is there. For writing it takes the lease (Busy when taken) and mends what a crash left.

        Nothing is ever put where `written`, asked under the lease, says that something else was.
        """
        if not write:
            return cls(backend, settings)
        lease = backend.lease()
        try:
            store = cls(backend, settings)
            mark = written()
            store._packs.floor = lambda: mark.highest
            store._log = LogWriter(store._packs, recover_log(store._packs, mark), settings.pack_bytes)
        except BaseException:
            lease.release()
            raise
        store._lease = lease
        return store

    def close(self) -> None:
        """Syncs what waits and gives the lease back."""
        try:
            if self._log is not None:
                self._log.sync()
                self._log.checkpoint()
        finally:
            self._log = None
            self._backend.close()
            if self._lease is not None:
                self._lease.release()
                self._lease = None

    def __enter__(self) -> Store:
        """For use in a with statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the store."""
        self.close()

    def append(self, items: Sequence[VersionItem]) -> list[AppendResult]:
        """Takes versions in. They can be read at once, and are durable after `sync`."""
        self._check_quota()
        return [self._append(item) for item in items]

    def sync(self) -> None:
        """Returns when everything appended is durable. NotReady: nothing since the last sync was kept."""
        self._writer().sync()

    def read(self, place: ContentPlace, stored_bytes: int = 0) -> DecodedContent:
        """One content. Damaged names pack and offset; Moved asks to look the place up again.

        `stored_bytes`, where known, makes sure that one read is enough.
        """
        self._show(place)
        return self._reader.read(place, stored_bytes)

    def end_of(self, place: ContentPlace) -> int:
        """Offset behind the record that a content lies in."""
        self._show(place)
        return self._packs.record(place.pack, place.offset).end

    def name_of(self, pack: int) -> str:
        """The name of a pack where it lies; Moved when it is gone."""
        return self._packs.name(pack)

    def text_packs(self, pack: int) -> set[int]:
        """The other packs that hold texts which frames of this one need; it can be read only beside them."""
        found = self._facts.shared_text_packs(pack, self._packs.size(pack))
        return found - {GENERIC_TEXT.pack, pack}

    def raw(self, pack: int, offset: int, length: int) -> bytes:
        """Bytes of a pack as they are; fewer only at its end. Moved when it is gone."""
        return self._packs.span(pack, offset, length)

    def stream(self, place: ContentPlace) -> Iterator[bytes]:
        """One content part by part, in bounded memory for contents above 4 MiB."""
        self._show(place)
        return self._reader.stream(place)

    def compact(
        self,
        chains: Iterable[VersionChain],
        *,
        effort: CompactionEffort = "full",
        rewrite: Collection[int] = (),
        progress: Callable[[int], None] = lambda done: None,
        stop: Callable[[], bool] = lambda: False,
        batch_seconds: float = 60.0,
        sites: SiteTexts | None = None,
    ) -> Iterator[CompactionBatch]:
        """Writes chains anew in new packs and yields the moves, batch by batch, each batch durable.

        Commit a batch before asking for the next, and make chains only when they are asked for: their places must be
        fresh. Old packs stay readable until `release`. `quick` costs about as much as putting the versions once more
        and takes only what is new; `full` takes long. Contents in the packs of `rewrite` move in any case, so that
        these can be released. `stop` is asked before each chain. `sites` knows the documents of a site; hand the same
        to all compactions of a run, with the chains of a site in a row.
        """
        # A closed log can be released when compaction has emptied it.
        self._writer().roll()
        plan = pack_compaction.compaction_plan(
            self._settings, effort=effort, rewrite=rewrite, batch_seconds=batch_seconds
        )
        sources = CompactionSource(self._packs, self._reader)
        # A text could be removed by one writer while another begins to lean on it, so writers that share use none.
        known = SiteTexts() if self._backend.shared else sites or SiteTexts()
        done = 0
        for batch in pack_compaction.Compactor(self._packs, sources, plan, known).run(chains, stop):
            done += batch.chains
            progress(done)
            yield batch

    @property
    def log(self) -> int:
        """Number of the log that this store extends, 0 when there is none."""
        return self._log.pack if self._log is not None else 0

    def mark(self) -> HighWaterMark:
        """Up to where the packs are written; everything before it is durable after `sync`."""
        log = self._writer()
        return HighWaterMark(self._packs.highest, log.pack, log.end if log.pack else 0)

    def beyond(self, mark: HighWaterMark, logs: Mapping[int, int] | None = None) -> dict[int, int]:
        """The packs that hold more than a mark, or the ends of some logs, know; the offset from which on each does."""
        sizes = self._packs.refresh()
        found = {pack: HEADER_BYTES for pack in sizes if pack > mark.highest}
        found |= {log: end for log, end in (logs or {}).items() if sizes.get(log, 0) > end}
        if self._size(mark.log) > mark.end:
            found[mark.log] = max(mark.end, HEADER_BYTES)
        return found

    def has_beyond(self, newest: int, logs: Mapping[int, int]) -> bool:
        """Whether there are packs above a number, or more in some logs than their ends tell; looks at no others."""
        return bool(self._backend.list(newest)) or any(self._size(log) > end for log, end in logs.items())

    def _size(self, pack: int) -> int:
        try:
            return self._packs.size(pack)
        except PackGone:
            return 0

    def release(
        self,
        live: Collection[int],
        keep: Callable[[bytes, int], bool] = lambda key, time: True,
        newest: int | None = None,
    ) -> int:
        """Removes the packs that are not in `live` (the packs that places of the catalogue name); bytes given back.

        `keep` says whether a version (key, time) still exists: its fact is saved when no other pack tells of it. Packs
        above `newest` stay: where writers share a place, `live` cannot know of them yet.
        """
        log = self._writer()
        log.flush()
        releaser = PackReleaser(self._packs, self._facts)
        dying = releaser.dying(live, log.pack, newest)
        for head in releaser.orphans(dying, keep):
            log.begin()
            log.add(RecordKind.FACT, RecordMethod.STORED, encode_fact_head(head), b"")
        log.sync()
        # A pack goes before the older one that holds the text it leans on: none is ever left alone.
        for pack in sorted(dying, reverse=True):
            self._packs.drop(pack)
        return sum(dying.values())

    def refuse_misnamed(self) -> None:
        """Misnamed if a pack has the name of another: its contents would be given up though nothing is lost."""
        for fault in filter(None, map(self._packs.misnamed, self._packs.refresh())):
            raise fault

    def scan(self, since: Mapping[int, int] | None = None) -> Iterator[VersionFact]:
        """Every version fact in all packs, or in some from an offset on, to fill a catalogue.

        A version may come more than once; its later facts are those of later compactions. Where a fact has no place,
        its content is the one of another fact with the same digest. Versions that were dropped come too while their
        pack exists; the next compaction drops them again.
        """
        return self._facts.scan(since)

    def verify(self, expected: Collection[int] = ()) -> Iterator[PackDamage]:
        """Checks every byte. `expected` names packs that must be there."""
        if self._log is not None:
            self._log.flush()
        return PackVerifier(self._packs, self._reader, self._facts).run(expected, self._log is not None)

    def sizes(self) -> dict[int, int]:
        """Size of each pack by its number; what the catalogue does not name in it is waste."""
        return self._packs.refresh()

    def logs(self) -> set[int]:
        """Numbers of the packs that wait for compaction."""
        return {pack for pack in self._packs.refresh() if self._packs.is_log(pack)}

    def begin_behind(self, packs: Collection[int]) -> None:
        """Begins another log where the newest pack is one of these: the highest number stays, so it could not go."""
        log = self._writer()
        log.flush()
        if max(self._packs.refresh(), default=0) in packs:
            log.roll()
            log.begin()
            log.sync()

    def sparse(self, used: Mapping[int, int], share: float = 0.5) -> set[int]:
        """Compacted packs of whose contents less than a share is in use; `used` gives stored bytes by pack number."""
        sizes = self._packs.refresh()
        likely = [
            pack for pack, size in sizes.items() if not self._packs.is_log(pack) and used.get(pack, 0) < share * size
        ]
        # Facts and known texts are no waste: only contents count.
        held = {pack: self._facts.content_bytes(pack, sizes[pack]) for pack in likely}
        return {pack for pack, size in held.items() if used.get(pack, 0) < share * size}

    def stats(self) -> PackTotals:
        """What the packs occupy."""
        if self._log is not None:
            self._log.flush()
        sizes = self._packs.refresh()
        logs = sum(size for pack, size in sizes.items() if self._packs.is_log(pack))
        return PackTotals(len(sizes), sum(sizes.values()), logs)

    def _append_stream(self, fact: VersionHead, chunks: Iterable[bytes], digest: Callable[[], bytes]) -> AppendResult:
        log = self._writer()
        pack = log.begin()
        pieces: list[tuple[int, int]] = []
        stored = 0
        for chunk in _rechunked(chunks):
            offset, length = log.add(RecordKind.PIECE, *self._piece(chunk))
            pieces.append((offset, len(chunk)))
            stored += length
        head = fact._replace(digest=digest(), raw_bytes=sum(length for _, length in pieces))
        listing = b"".join(encode_varint(log.end - offset) + encode_varint(length) for offset, length in pieces)
        offset, length = log.add(
            RecordKind.VERSION, RecordMethod.PIECES, encode_version_head(head), encode_varint(len(pieces)) + listing
        )
        return AppendResult(ContentPlace(pack, offset, 0), stored + length, RecordMethod.PIECES.label)

    def _append(self, item: VersionItem) -> AppendResult:
        head = VersionHead(item.key, item.time, item.digest, item.note, len(item.body or b""))
        if item.body is not None and len(item.body) > LARGE_CONTENT:
            return self._append_stream(head, (item.body,), lambda: item.digest)
        log = self._writer()
        pack = log.begin()
        if item.body is None:
            return AppendResult(
                None, log.add(RecordKind.FACT, RecordMethod.STORED, encode_fact_head(head), b"")[1], "shared"
            )
        made = self._compressor.compress_content(item.body)
        offset, length = log.add(RecordKind.VERSION, made.method, encode_version_head(head), made.body)
        return AppendResult(ContentPlace(pack, offset, 0), length, made.label)

    def _check_quota(self) -> None:
        most = self._settings.max_bytes
        if most and self.stats().pack_bytes >= most:
            raise NotReady(f"the packs fill their {most} bytes; raise store.max_bytes or keep fewer versions")

    def _piece(self, chunk: bytes) -> tuple[RecordMethod, bytes, bytes]:
        made = self._compressor.compress_content(chunk)
        return made.method, b"", made.body

    def _writer(self) -> LogWriter:
        if self._log is None:
            raise NotReady("this store is open for reading only; open it for writing")
        return self._log

    def _show(self, place: ContentPlace) -> None:
        """Makes buffered records readable."""
        if self._log is not None and place.pack == self._log.pack:
            self._log.flush()


def _rechunked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of equal size, the last one aside."""
    rest = bytearray()
    for chunk in chunks:
        view = memoryview(chunk)
        for start in range(0, len(view), PIECE_BYTES):
            rest += view[start : start + PIECE_BYTES]
            while len(rest) >= PIECE_BYTES:
                yield bytes(rest[:PIECE_BYTES])
                del rest[:PIECE_BYTES]
    if rest:
        yield bytes(rest)

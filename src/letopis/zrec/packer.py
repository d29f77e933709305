"""Records to file: cutting, coding, generations, history."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from letopis.binary import sha256_digest, write_errors, write_parts_durably
from letopis.errors import Damaged, UsageError
from letopis.lazy import np
from letopis.tuples import NamedTuple
from letopis.zrec import chunk_index as indexes
from letopis.zrec import chunks as dictionaries
from letopis.zrec import header as heads
from letopis.zrec.chunk_index import ChunkPairs, common_subsequence, cut_groups
from letopis.zrec.chunks import BLANK_LINE, ChunkCoder, checked_separator, join, namer, set_digests_aside, split
from letopis.zrec.header import MAX_CHUNKS, chunk_hash, group_hash, name_hash
from letopis.zrec.published_file import ZrecRelease, write_release
from letopis.zrec.reader import ZrecReader

GROUP_SIZES = {"1": 1, "2-4": 4}
_SAMPLE = 100
_MARGIN = 2
"""Part of the sample is in the dictionary itself, so that what it saves there looks too good."""


class PackedFile(NamedTuple):
    """What `pack` made."""

    path: Path
    size: int
    records: int
    chunks: int
    chunks_kept: int
    dictionary_kept: bool
    release: ZrecRelease
    remarks: tuple[str, ...] = ()
    """What makes the file less useful than it could be: names out of order, or several records of one name."""


class _PackPlan(NamedTuple):
    """The text of every chunk, and what the header says about them."""

    texts: list[bytes]
    records: int
    text_size: int
    ended: bool
    ordered: bool
    separator: bytes
    group: int
    rule: str | None
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _CodedFile:
    """Everything that follows the header."""

    dictionary: bytes
    chunks: list[bytes]
    index: indexes.ChunkIndex
    kept: ChunkPairs = field(default_factory=list)
    journals: Sequence[indexes.IndexJournal] = ()

    def parts(self) -> list[bytes]:
        """The file without its header, in order."""
        order = np.argsort(self.index.ages, kind="stable").tolist()
        journals = [one.stored for one in self.journals]
        return [*journals, self.index.stored, self.dictionary, *(self.chunks[number] for number in order)]


def pack(
    records: bytes | Iterable[bytes],
    out: str | Path,
    *,
    group: str = "1",
    separator: bytes = BLANK_LINE,
    name_regex: str | None = None,
    dictionary: bytes | None = None,
    dictionary_size: int | None = None,
    dict_from: str | Path | None = None,
    new_dict: bool = False,
    time: datetime | None = None,
    key: bytes | None = None,
) -> PackedFile:
    """Writes the records (a text, or one by one) to `out` and its release beside it; replaces both whole.

    `group` is "1" or "2-4". `dict_from`, or else an existing `out`, gives the dictionary and is continued:
    unchanged chunks keep their bytes. `new_dict` starts afresh, `dictionary` starts afresh with that one.
    Same records and same older file or dictionary give the same bytes. `UsageError` for what cannot be packed.
    """
    target = Path(out)
    plan = _planned(records, checked_separator(separator), group, name_regex)
    with ExitStack() as stack:
        older = None if new_dict or dictionary is not None else _older(stack, target, dict_from)
        coded = _next_generation(plan, older) if older else _first_generation(plan, dictionary, dictionary_size)
    header = _header(plan, coded)
    with write_errors(target):
        write_parts_durably(target, [heads.encode_header(header), *coded.parts()])
    made = write_release(target, time=time or datetime.now(UTC), key=key)
    return PackedFile(
        target, header.file_size, plan.records, len(plan.texts), len(coded.kept), older is not None, made, plan.remarks
    )


def _planned(records: bytes | Iterable[bytes], separator: bytes, group: str, rule: str | None) -> _PackPlan:
    if group not in GROUP_SIZES:
        raise UsageError(f"Records are grouped by 1 or by 2-4, not by {group}; choose one of the two.")
    text = records if isinstance(records, bytes) else _joined(list(records), separator)
    taken, ended = split(text, separator)
    names = list(map(namer(rule), taken))
    texts = taken if group == "1" else _grouped(taken, names, separator)
    if len(texts) > MAX_CHUNKS:
        raise UsageError(f"More than {MAX_CHUNKS} chunks; split the input into several files.")
    ordered = all(one <= two for one, two in pairwise(names))
    remarks = tuple(_name_remarks(names))
    return _PackPlan(texts, len(taken), len(text), ended, ordered, separator, GROUP_SIZES[group], rule, remarks)


def _name_remarks(names: Sequence[bytes]) -> Iterator[str]:
    falling = next((pair for pair in pairwise(names) if pair[0] > pair[1]), None)
    if falling is not None:
        before, after = (name.decode(errors="replace") for name in falling)
        yield (
            f"the records are not sorted: {after!r} stands behind {before!r}; 'get' has to search the whole file, "
            "and updates transfer more; sort them by name"
        )
    counts = Counter(names)
    twice = next((name for name in names if counts[name] > 1), None)
    if twice is not None:
        several = sum(count > 1 for count in counts.values())
        shown = twice.decode(errors="replace")
        yield f"names shared by several records: {several}, {shown!r} for {counts[twice]}; 'get' prints the first"


def _joined(records: list[bytes], separator: bytes) -> bytes:
    text = join(records, separator, bool(records))
    if split(text, separator)[0] != records:
        raise UsageError("A record is empty or holds the separator; choose a separator that occurs in none.")
    return text


def _grouped(records: list[bytes], names: list[bytes], separator: bytes) -> list[bytes]:
    texts = []
    at = 0
    for size in cut_groups([name_hash(name) for name in names]):
        texts.append(separator.join(records[at : at + size]))
        at += size
    return texts


def _older(stack: ExitStack, target: Path, dict_from: str | Path | None) -> ZrecReader | None:
    """The file to continue. One that cannot be read is never overwritten silently."""
    path = Path(dict_from) if dict_from is not None else target
    if dict_from is None and not path.exists():
        return None
    try:
        reader = stack.enter_context(ZrecReader(path))
        _ = reader.coder
    except Damaged as wrong:
        raise Damaged(
            f"The older file {path} cannot be continued: {wrong}; or start afresh with a new dictionary"
        ) from None
    return reader


def _first_generation(plan: _PackPlan, dictionary: bytes | None, size: int | None) -> _CodedFile:
    """A first generation with a dictionary of its own."""
    if dictionary is None:
        dictionary = _trained([set_digests_aside(text)[0] for text in plan.texts], size)
    chunks = list(map(ChunkCoder(dictionary).encode, plan.texts))
    ages = np.zeros(len(chunks), np.int64)
    return _CodedFile(dictionaries.compress_dictionary(dictionary), chunks, _indexed(chunks, ages))


def _trained(texts: list[bytes], size: int | None) -> bytes:
    """A dictionary, unless a sample shows that it costs more than it saves."""
    dictionary = dictionaries.train_dictionary(texts, size)
    sample = texts[:: max(1, len(texts) // _SAMPLE)]
    used, alone = ChunkCoder(dictionary), ChunkCoder(b"")
    saved = sum(len(alone.encode(text)) - len(used.encode(text)) for text in sample)
    pays = saved * len(texts) > len(dictionaries.compress_dictionary(dictionary)) * len(sample) * _MARGIN
    return dictionary if pays else b""


def _next_generation(plan: _PackPlan, older: ZrecReader) -> _CodedFile:
    """The next generation of a file: what is not new keeps its bytes."""
    numbers: dict[bytes, int] = {}
    old = [numbers.setdefault(key, number) for number, key in enumerate(_text_keys(older))]
    new = [numbers.setdefault(sha256_digest(text), len(old) + number) for number, text in enumerate(plan.texts)]
    kept = common_subsequence(old, new)
    chunks = [
        older.stored_chunk(number) if number < len(old) else older.coder.encode(text)
        for number, text in zip(new, plan.texts, strict=True)
    ]
    if len(kept) == len(old) == len(new):
        return _CodedFile(older.stored_dictionary, chunks, older.index, kept, older.journals)
    ages = np.zeros(len(new), np.int64)
    ages[[to for _, to in kept]] = indexes.next_ages(older.index.ages[[come for come, _ in kept]])
    index = _indexed(chunks, ages)
    step = indexes.write_journal(index, kept, older.index)
    journals = indexes.recent_journals([step, *older.journals], len(index.stored))
    return _CodedFile(older.stored_dictionary, chunks, index, kept, journals)


def _text_keys(older: ZrecReader) -> Iterable[bytes]:
    """Digests of the texts of an older file's chunks; a damaged chunk equals no other."""
    for number in range(len(older.index)):
        try:
            yield sha256_digest(older.text(number))
        except Damaged:
            yield b"damaged %d" % number


def _indexed(chunks: list[bytes], ages: indexes.Ints) -> indexes.ChunkIndex:
    sizes = np.fromiter(map(len, chunks), np.int64, len(chunks))
    hashes = np.fromiter(map(chunk_hash, chunks), np.uint32, len(chunks))
    groups = [group_hash(chunks[start:end]) for start, end in pairwise(indexes.group_borders(hashes).tolist())]
    return indexes.ChunkIndex(sizes, ages, hashes, np.array(groups, np.uint32))


def _header(plan: _PackPlan, coded: _CodedFile) -> heads.ZrecHeader:
    body = hashlib.sha256()
    for part in coded.parts():
        body.update(part)
    header = heads.ZrecHeader(
        ended=plan.ended,
        ordered=plan.ordered,
        records=plan.records,
        chunks=len(plan.texts),
        text_size=plan.text_size,
        journals_size=sum(len(one.stored) for one in coded.journals),
        index_size=len(coded.index.stored),
        dictionary_size=len(coded.dictionary),
        data_size=coded.index.data_size,
        index_digest=coded.index.digest,
        dictionary_digest=sha256_digest(coded.dictionary),
        body_digest=body.digest(),
        separator=plan.separator,
        group=plan.group,
        name_rule=plan.rule,
        history=tuple((one.old, len(one.stored)) for one in coded.journals),
    )
    return heads.sealed_header(header)

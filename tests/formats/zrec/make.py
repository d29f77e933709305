"""Makes the golden and broken zrec files of this folder: python tests/formats/zrec/make.py

Every broken file is sound but for the one fault that it is named after: digests
that a fault would upset are computed again, so that the rule itself is met.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from letopis import binary
from letopis.binary import sha256_digest
from letopis.zrec import header as heads
from letopis.zrec import pack
from letopis.zrec.chunk_index import group_borders
from letopis.zrec.chunks import ChunkCoder
from letopis.zrec.header import chunk_hash, group_hash
from letopis.zstandard import zstd

FOLDER = Path(__file__).parent
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def text(count: int, seed: int = 1) -> bytes:
    """Records such as package lists have, each with a digest."""
    rng = random.Random(seed)
    words = ["lib", "tool", "data", "common", "python", "server", "client", "doc"]
    out = []
    for number in range(count):
        depends = ", ".join(f"{rng.choice(words)}-{rng.randrange(40)} (>= {rng.randrange(9)})" for _ in range(6))
        lines = [f"Package: {rng.choice(words)}{number:05d}", f"Version: {rng.randrange(99)}.{rng.randrange(9)}"]
        lines += [
            f"Depends: {depends}",
            "Maintainer: Somebody <somebody@example.org>",
            f"MD5: {rng.randbytes(16).hex()}",
        ]
        out.append("\n".join(lines))
    return "\n\n".join(sorted(out)).encode() + b"\n\n"


def golden() -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the sound files, each of the text in golden.txt."""
    whole = text(60)
    place = FOLDER / "made.zrec"
    yield "golden.txt", whole
    pack(whole, place, dictionary=b"", time=MOMENT)
    yield "golden-single.zrec", place.read_bytes()
    pack(whole, place, group="2-4", dictionary=b"", time=MOMENT)
    yield "golden-grouped.zrec", place.read_bytes()
    pack(text(400, seed=2), place, dictionary_size=20_000, new_dict=True, time=MOMENT)
    pack(whole.split(b"\n\n")[2:-1], place, time=MOMENT)
    pack(whole, place, time=MOMENT)
    yield "golden-history.zrec", place.read_bytes()
    place.unlink()
    place.with_name("made.zrec.release").unlink()
    yield "golden-later-field.zrec", replace(SMALL, extra={18: b"a fact of a later release"}).file()


@dataclass(frozen=True)
class Parts:
    """A file by its parts; whatever is None is computed from the others."""

    chunks: tuple[bytes, ...]
    dictionary: bytes = b""
    journals: bytes = b""
    sizes: tuple[int, ...] | None = None
    ages: bytes | None = None
    hashes: tuple[int, ...] | None = None
    groups: tuple[int, ...] | None = None
    index: bytes | None = None
    extra: dict[int, bytes | None] = field(default_factory=dict)
    """Fields of the header that replace the right ones; None leaves one out."""

    def stored_index(self) -> bytes:
        if self.index is not None:
            return self.index
        hashes = self.hashes or tuple(map(chunk_hash, self.chunks))
        edges = group_borders(np.array(hashes, np.uint32)).tolist()
        groups = self.groups or [group_hash(self.chunks[a:b]) for a, b in itertools.pairwise(edges)]
        ages = binary.encode_varints((0, len(self.chunks))) if self.ages is None else self.ages
        sizes = binary.encode_varints(self.sizes or [len(chunk) for chunk in self.chunks])
        return sizes + ages + b"".join(h.to_bytes(4, "little") for h in (*hashes, *groups))

    def fields(self) -> dict[int, bytes]:
        index, data = self.stored_index(), b"".join(self.chunks)
        lengths = (len(self.journals), len(index), len(self.dictionary), len(data))
        found: dict[int, bytes | None] = {
            1: binary.encode_varint(3),
            3: binary.encode_varints((len(self.chunks), len(self.chunks), 2 * len(self.chunks) + 8)),
            5: binary.encode_varints(lengths),
            7: sha256_digest(index),
            9: sha256_digest(self.dictionary),
            11: hashlib.sha256(self.journals + index + self.dictionary + data).digest(),
            13: b"\n\n",
            15: binary.encode_varint(1),
        }
        return {tag: value for tag, value in sorted((found | self.extra).items()) if value is not None}

    def file(self) -> bytes:
        return self.with_fields(b"".join(one_field(tag, value) for tag, value in self.fields().items()))

    def with_fields(self, fields: bytes) -> bytes:
        return (
            heads.framed_header(fields) + self.journals + self.stored_index() + self.dictionary + b"".join(self.chunks)
        )


def one_field(tag: int, value: bytes) -> bytes:
    return binary.encode_varint(tag) + binary.encode_varint(len(value)) + value


SMALL = Parts((b"\x00a: 1", b"\x00a: 2"))


def changed(**parts: object) -> Callable[[], bytes]:
    return lambda: replace(SMALL, **parts).file()  # type: ignore[arg-type]


def with_field(tag: int, value: bytes | None) -> Callable[[], bytes]:
    return changed(extra={tag: value})


def lengths(journals: int = 0, index: int | None = None, dictionary: int = 0, data: int = 10) -> bytes:
    return binary.encode_varints((journals, len(SMALL.stored_index()) if index is None else index, dictionary, data))


def flipped(at: int) -> Callable[[], bytes]:
    def flip() -> bytes:
        data = bytearray(SMALL.file())
        data[at] ^= 1
        return bytes(data)

    return flip


def reordered(order: list[int]) -> Callable[[], bytes]:
    return lambda: SMALL.with_fields(b"".join(one_field(tag, SMALL.fields()[tag]) for tag in order))


def lone_chunk(stored: bytes) -> Callable[[], bytes]:
    return changed(chunks=(stored, b"\x00a: 2"))


def raw_fields(more: bytes) -> Callable[[], bytes]:
    return lambda: SMALL.with_fields(b"".join(one_field(*pair) for pair in SMALL.fields().items()) + more)


def with_dictionary(stored: bytes) -> Callable[[], bytes]:
    return changed(dictionary=stored)


ZEROS = zstd.compress(bytes(65 << 20), 19)
FRAME = zstd.compress(b"a: 1", 19)
TAILED = b"\x03" + ChunkCoder(b"").encode(b"a: 1 " * 9)[1:] + b"tail"
INDEX = SMALL.stored_index()

BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "file-empty": (lambda: b"", "not a zrec file"),
    "file-not-zrec": (lambda: b"PK\x03\x04" + SMALL.file()[4:], "not a zrec file"),
    "file-newer-version": (lambda: b"ZREC\x02" + SMALL.file()[5:], "update Letopis"),
    "file-cut": (lambda: SMALL.file()[:-1], "instead of"),
    "file-too-long": (lambda: SMALL.file() + b"x", "instead of"),
    "header-cut": (lambda: SMALL.file()[:40], "header of the zrec file is damaged"),
    "header-flipped": (flipped(20), "header of the zrec file is damaged"),
    "header-check-flipped": (flipped(-len(INDEX) - 11), "header of the zrec file is damaged"),
    "fields-descending": (reordered([3, 1, 5, 7, 9, 11, 13, 15]), "do not fit"),
    "fields-twice": (reordered([1, 1, 3, 5, 7, 9, 11, 13, 15]), "do not fit"),
    "field-beyond-header": (raw_fields(b"\x12\x7f"), "do not fit"),
    "field-missing": (with_field(9, None), "lacks a field"),
    "field-unknown-odd": (with_field(19, b"x"), "update Letopis"),
    "field-with-rest": (with_field(15, b"\x01\x00"), "too long"),
    "flag-unknown": (with_field(1, b"\x07"), "update Letopis"),
    "number-not-shortest": (with_field(15, b"\x81\x00"), "cannot be read"),
    "number-endless": (with_field(15, b"\xff" * 12), "cannot be read"),
    "number-cut": (with_field(15, b""), "cannot be read"),
    "digest-short": (with_field(7, sha256_digest(INDEX)[:31]), "impossible sizes"),
    "separator-empty": (with_field(13, b""), "impossible sizes"),
    "separator-too-long": (with_field(13, b"-" * 65), "impossible sizes"),
    "group-of-three": (with_field(15, b"\x03"), "impossible sizes"),
    "name-rule-not-utf8": (with_field(16, b"\xff"), "not UTF-8"),
    "name-rule-too-long": (with_field(16, b"a" * 4097), "impossible sizes"),
    "name-rule-no-expression": (with_field(16, b"(("), "rule for names"),
    "name-rule-fits-no-record": (with_field(16, b"nowhere"), "rule for names"),
    "counts-too-many-records": (with_field(3, binary.encode_varints((9, 2, 12))), "impossible sizes"),
    "counts-too-many-chunks": (with_field(3, binary.encode_varints((1 << 40, 1 << 40, 12))), "impossible sizes"),
    "counts-wrong-text": (with_field(3, binary.encode_varints((2, 2, 13))), "counts other records"),
    "lengths-index-too-long": (with_field(5, lengths(index=1 << 40)), "impossible sizes"),
    "lengths-dictionary-too-long": (with_field(5, lengths(dictionary=1 << 40)), "impossible sizes"),
    "lengths-journals-too-long": (with_field(5, lengths(journals=1 << 40)), "impossible sizes"),
    "lengths-data-too-long": (with_field(5, lengths(data=1 << 60)), "instead of"),
    "history-other-length": (with_field(17, bytes(16) + b"\x05"), "impossible sizes"),
    "history-cut": (with_field(17, bytes(9)), "cannot be read"),
    "history-too-many": (with_field(17, (bytes(16) + b"\x00") * 65), "impossible sizes"),
    "index-flipped": (flipped(-11), "index of"),
    "index-cut": (changed(index=INDEX[:10]), "cut short"),
    "index-empty-chunk": (changed(sizes=(10, 0)), "chunk of impossible size"),
    "index-huge-chunk": (changed(sizes=(10, 1 << 40)), "chunk of impossible size"),
    "index-column-cut": (changed(index=b"\xff" * 12), "ends too early"),
    "index-size-not-shortest": (changed(index=b"\x85\x00\x05" + INDEX[2:]), "cannot be read"),
    "index-other-sum": (changed(sizes=(5, 6)), "does not fit its chunks"),
    "index-age-too-great": (changed(ages=b"\x40\x02"), "impossible generations"),
    "index-age-empty-run": (changed(ages=b"\x00\x00\x00\x02"), "impossible generations"),
    "index-age-run-too-long": (changed(ages=b"\x00\x03"), "impossible generations"),
    "index-age-split-run": (changed(ages=b"\x00\x01\x00\x01"), "impossible generations"),
    "index-group-missing": (changed(index=INDEX[:-4]), "too few or too many groups"),
    "index-group-too-many": (changed(index=INDEX + bytes(4)), "too few or too many groups"),
    "group-hash-wrong": (changed(groups=(7,)), "group of chunks"),
    "chunk-flipped": (flipped(-1), "is damaged"),
    "chunk-hash-wrong": (changed(hashes=(1, 2)), "is damaged"),
    "chunk-form-cut": (lone_chunk(b"\x80"), "cannot be read"),
    "chunk-block-garbage": (lone_chunk(b"\x02garbage"), "cannot be unpacked"),
    "chunk-block-missing": (lone_chunk(b"\x03tail"), "no room"),
    "chunk-tail-too-long": (lone_chunk(b"\x7ftail"), "no room"),
    "chunk-tail-without-marker": (lone_chunk(TAILED), "digits of a chunk"),
    "chunk-frame-garbage": (lone_chunk(b"\x01garbage"), "cannot be unpacked"),
    "chunk-frame-cut": (lone_chunk(b"\x01" + FRAME[:-1]), "cut short"),
    "chunk-frame-with-rest": (lone_chunk(b"\x01" + FRAME + b"x"), "cut short or over"),
    "chunk-frame-bomb": (lone_chunk(b"\x01" + ZEROS), "over the limit"),
    "dictionary-flipped": (with_field(9, bytes(32)), "dictionary of"),
    "dictionary-garbage": (with_dictionary(b"garbage garbage"), "cannot be unpacked"),
    "dictionary-cut": (with_dictionary(zstd.compress(bytes(range(200)))[:-1]), "cut short"),
    "dictionary-with-rest": (with_dictionary(zstd.compress(bytes(range(200))) + b"x"), "cut short"),
    "dictionary-bomb": (with_dictionary(zstd.compress(bytes(17 << 20), 19)), "over the limit"),
    "dictionary-none": (
        with_dictionary(zstd.compress(b"\x37\xa4\x30\xec" + bytes(60))),
        "dictionary of the zrec file is invalid",
    ),
    "names-descending": (changed(chunks=(b"\x00a: 2", b"\x00a: 1")), "do not ascend"),
}


def main() -> None:
    for name, data in golden():
        (FOLDER / name).write_bytes(data)
    for name, (make, _) in BROKEN.items():
        (FOLDER / f"broken-{name}.zrec").write_bytes(make())


if __name__ == "__main__":
    main()

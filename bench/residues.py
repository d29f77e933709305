"""What other ways to code differences would give: the byte strings that packs hold, coded anew.

An archive is filled and compacted as in `bench/store.py`, its solid frames are opened, and what stands in them (newest
page, differences, shared text) goes through each idea. Sizes are those of all frames; `reads` is the CPU time of
decoding every frame once, as stored = 1. Nothing here can be read by a store: it tells what building it would pay.
PPMd takes part where `pyppmd` is installed.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from time import process_time

# As a script it starts in its own folder.
sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.storing.corpus import Document, arrivals, load
from letopis.archive import Archive
from letopis.config import load_settings
from letopis.store.backend import LocalBackend
from letopis.store.content_reader import PackReader
from letopis.store.pack_format import HEADER_BYTES, PackRecord, PackWalker, RecordKind, RecordMethod, parse_frame_head
from letopis.store.packs import Packs
from letopis.store.solid import frame_format, stream
from letopis.store.solid.frame_writer import encode_solid, frames_size

_ENDS = frame_format.TOKEN_END_SETS[0]
_DICTIONARY_BYTES = 1 << 16


@dataclass(frozen=True)
class Opened:
    """A frame behind its coder. `front` is what its readers have: shared text, and the newest page in later frames."""

    document: str
    front: bytes
    newest: bytes
    rest: bytes
    stored: int

    @property
    def parts(self) -> list[bytes]:
        """What the frame codes."""
        return [part for part in (self.newest, self.rest) if part]


def filled(corpus: Path, folder: Path) -> None:
    """An archive of the corpus, compacted; one that is there stays."""
    if folder.exists():
        return
    with Archive(folder, settings=load_settings(None, {})) as archive:
        for put in arrivals(load(corpus)):
            archive.put(put.url, put.body, put.at)
        archive.compact()


def opened(folder: Path, documents: Sequence[Document]) -> Iterator[Opened]:
    """All solid frames of an archive."""
    names = {body: document.name for document in documents for body in document.bodies}
    packs = Packs(LocalBackend(folder / "packs"))
    reader = PackReader(packs)
    for pack, size in packs.refresh().items():
        heads: dict[int, _Head] = {}
        for record in PackWalker(partial(packs.span, pack), pack, size).walk(HEADER_BYTES):
            if not isinstance(record, PackRecord) or record.method != RecordMethod.SOLID:
                continue
            if record.kind == RecordKind.FRAME and (back := parse_frame_head(record.head).back):
                yield _later(heads[record.offset - back], record)
            elif record.kind == RecordKind.FRAME:
                heads[record.offset], found = _first(reader, record, names)
                yield found


@dataclass(frozen=True)
class _Head:
    """What later frames of a document need of its first one."""

    document: str
    known: bytes
    newest: bytes


def _first(reader: PackReader, record: PackRecord, names: dict[bytes, str]) -> tuple[_Head, Opened]:
    head, at = stream.parse_head(record.body), parse_frame_head(record.head).text
    known = reader.texts.get(at) if at is not None and head.flags & stream.SolidFlags.KNOWN else b""
    text = stream.decode_whole_stream(record.body[head.start :], head.newest_length + head.residue_length, known)
    newest, rest = text[: head.newest_length], text[head.newest_length :]
    is_open = head.flags & stream.SolidFlags.OPENED
    name = names[stream.restored_body(newest) if is_open else newest]
    form = newest if is_open else stream.escape_marks(newest)
    return _Head(name, known, form), Opened(name, known, newest, rest, len(record.body))


def _later(first: _Head, record: PackRecord) -> Opened:
    head = stream.parse_head(record.body)
    text = b"".join(stream.decode_stream(record.body[head.start :], head.residue_length, first.known, first.newest))
    return Opened(first.document, first.known + first.newest, b"", text, len(record.body))


@dataclass(frozen=True)
class Found:
    """What an idea makes of frames: bytes, and a way to decode one of them."""

    size: int
    decode: Callable[[], object]


def _brotli(quality: int) -> Callable[[Opened], Found]:
    def coded(frame: Opened) -> Found:
        made = stream.encode_stream(frame.parts, frame.front, quality)
        length = sum(map(len, frame.parts))
        whole = b"".join(made)
        return Found(len(whole), lambda: stream.decode_whole_stream(whole, length, frame.front))

    return coded


def _behind(compress: Callable[[bytes], bytes], decompress: Callable[[bytes], bytes]) -> Callable[[Opened], Found]:
    """A coder that takes no known text: what that alone comes to is taken off, and readers code it anew."""

    def coded(frame: Opened) -> Found:
        made = compress(frame.front + b"".join(frame.parts))
        own = len(made) - (len(compress(frame.front)) if frame.front else 0)
        return Found(own, lambda: decompress(made))

    return coded


def _raw_xz() -> Callable[[Opened], Found]:
    way = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]
    return _behind(
        lambda text: lzma.compress(text, lzma.FORMAT_RAW, filters=way),
        lambda made: lzma.decompress(made, lzma.FORMAT_RAW, filters=way),
    )


def _ppmd(order: int) -> Callable[[Opened], Found]:
    coder = import_module("pyppmd")
    return _behind(
        lambda text: coder.compress(text, max_order=order, mem_size=128 << 20),
        lambda made: coder.decompress(made, max_order=order, mem_size=128 << 20),
    )


def _by(frames: Sequence[Opened], key: Callable[[Opened], str]) -> Iterator[list[Opened]]:
    groups: defaultdict[str, list[Opened]] = defaultdict(list)
    for frame in frames:
        groups[key(frame)].append(frame)
    return iter(groups.values())


def _document(frame: Opened) -> str:
    return frame.document


def _site(frame: Opened) -> str:
    return frame.document.partition("/")[0]


def _joined(frames: Sequence[Opened], key: Callable[[Opened], str]) -> int:
    """One stream for all frames of a document or site, whatever reading takes then."""
    return sum(
        len(b"".join(stream.encode_stream([part for one in group for part in one.parts], group[0].front, 10)))
        for group in _by(frames, key)
    )


def _with_dictionary(frames: Sequence[Opened]) -> int:
    """Tokens that several frames of a site insert, put into a text of their own, which is counted."""
    total = 0
    for group in _by(frames, _site):
        weights = Counter(token for frame in group for token in _inserted(frame))
        repeated = [token for token, count in weights.items() if count > 1]
        repeated.sort(key=lambda token: -weights[token] * len(token))
        text = b"".join(repeated)[:_DICTIONARY_BYTES]
        plain = sum(_brotli(10)(frame).size for frame in group)
        made = sum(len(b"".join(stream.encode_stream(frame.parts, text + frame.front, 10))) for frame in group)
        total += min(plain, made + len(stream.encode_stream([text])[0])) if text else plain
    return total


def _inserted(frame: Opened) -> set[bytes]:
    """Tokens of some length that the differences hold and nothing before them."""
    known = set(frame_format.split_tokens((frame.front + frame.newest).replace(b"\0", b""), _ENDS))
    held = frame_format.split_tokens(frame.rest.replace(b"\0", b""), _ENDS)
    return {token for token in held if len(token) > 8} - known


def _by_similarity(documents: Sequence[Document]) -> tuple[int, int]:
    """Frames of documents alone in the order of time, and with each version behind the most similar one before it."""
    plain = ordered = 0
    for document in documents:
        bodies = list(dict.fromkeys(reversed(document.bodies)))
        sets = [set(frame_format.cut_tokens(stream.opened_form(body), _ENDS)) for body in bodies]
        order, left = [0], set(range(1, len(bodies)))
        while left:
            last = sets[order[-1]]
            order.append(max(left, key=lambda index: (len(last & sets[index]) - len(last ^ sets[index]), -index)))
            left.remove(order[-1])
        plain += frames_size(encode_solid(bodies))
        ordered += frames_size(encode_solid([bodies[index] for index in order]))
    return plain, ordered


def _decoding(found: Sequence[Found]) -> float | None:
    """CPU time of decoding all; None where a coder cannot read what it wrote."""
    start = process_time()
    try:
        for one in found:
            one.decode()
    except ValueError:
        return None
    return process_time() - start


def _print(name: str, size: int, stored: int, reads: float | None = None) -> None:
    print(f"{name:<58} {size:>12,} {size / stored:>8.3f} {'' if reads is None else f'{reads:.2f}':>8}", flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True, help="folder of <site>/<document>/<NNNN>.html")
    parser.add_argument("--archive", type=Path, required=True, help="the archive; it is made where there is none")
    options = parser.parse_args(argv)
    filled(options.corpus, options.archive)
    documents = load(options.corpus)
    frames = list(opened(options.archive, documents))
    stored = sum(frame.stored for frame in frames)
    print(f"{'what':<58} {'bytes':>12} {'ratio':>8} {'reads':>8}")
    _print(f"as stored: {len(frames)} frames", stored, stored, 1.0)
    ways = {"brotli 10": _brotli(10), "brotli 11": _brotli(11), "xz -9e, lc 4, pb 0": _raw_xz()}
    try:
        ways |= {f"PPMd, order {order}": _ppmd(order) for order in (5, 12)}
    except ModuleNotFoundError:
        print("no pyppmd: PPMd is left out")
    base = 0.0
    for name, way in ways.items():
        found = [way(frame) for frame in frames]
        spent = _decoding(found)
        base = base or spent or 1.0
        _print(name, sum(one.size for one in found), stored, spent and spent / base)
    _print("one stream a document (brotli 10), no bound of reading", _joined(frames, _document), stored)
    _print("one stream a site (brotli 10), no bound of reading", _joined(frames, _site), stored)
    _print("token dictionary a site, counted (brotli 10)", _with_dictionary(frames), stored)
    plain, ordered = _by_similarity(documents)
    _print("documents alone, in the order of time", plain, stored)
    _print("documents alone, each behind the most similar version", ordered, stored)
    return 0


if __name__ == "__main__":
    sys.exit(main())

from __future__ import annotations

import contextlib
import os
import random
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from letopis.binary import sha256_digest
from letopis.errors import Damaged, LetopisError
from letopis.zrec import NoRanges, Traffic, ZrecReader, header, pack, published_file, sync, verify
from letopis.zrec.chunk_index import ChunkIndex, align_chunks, group_borders

FOLDER = Path(__file__).parents[1] / "formats" / "zrec"
ROUNDS = int(os.environ.get("LETOPIS_FUZZ") or (1_000_000 if os.environ.get("LETOPIS_LONG") else 1500))
"""`LETOPIS_FUZZ=20000 pytest tests/zrec/test_zrec_fuzz.py` runs as many rounds of both."""
MOST_MEMORY = 100 << 20


def _peak() -> int:
    """Most memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.fixture
def quick_folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: a million rounds should not wait for a disk."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def _mutated(data: bytes, rng: random.Random) -> bytes:
    many = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(many))
        kind = rng.randrange(4)
        if kind == 0:
            many[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            many[at] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            del many[at : at + rng.randrange(1, 4)]
        else:
            many[at:at] = rng.randbytes(rng.randrange(1, 4))
    return bytes(many)


def _resealed(data: bytes) -> bytes:
    """The mutated header with a right check, so that what lies behind the check is tried too."""
    with contextlib.suppress(Damaged):
        size = header.header_size(data[: header.HEADER_PREFIX])
        return data[: size - 16] + sha256_digest(data[: size - 16])[:16] + data[size:]
    return data


def _trusting(data: bytes) -> bytes:
    """The header's digest of the index made right, so that the index parser sees mutated columns."""
    try:
        head = header.parse_header(data)
    except Damaged:
        return data
    right = sha256_digest(data[head.index_at : head.dictionary_at])
    return _resealed(data.replace(head.index_digest, right, 1))


def test_any_mutation_is_read_or_refused(quick_folder: Path) -> None:
    golden = [path.read_bytes() for path in sorted(FOLDER.glob("golden-*.zrec"))]
    path = quick_folder / "fuzzed.zrec"
    refused, before = 0, _peak()
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        data = rng.choice(golden)
        cut = rng.choice((60, 200, len(data)))
        path.write_bytes(_trusting(_resealed(_mutated(data[:cut], rng) + data[cut:])))
        refused += _is_refused(path, thorough=seed % 50 == 0)
    assert refused > ROUNDS / 2
    assert _peak() - before < MOST_MEMORY


def _is_refused(path: Path, *, thorough: bool) -> bool:
    try:
        with ZrecReader(path) as reader:
            for number in range(0, len(reader.index), 7):
                reader.chunk(number)
            list(reader.find("x"))
            list(reader.starting(b"p"))
    except Damaged:
        return True
    finally:
        if thorough:
            verify(path)
    return False


class _Liar:
    """A published file and its release in memory; parts of the answers are lies."""

    def __init__(self, data: bytes, release: bytes, rng: random.Random) -> None:
        self._data = data
        self._release = release if rng.random() < 0.7 else None
        self._rng = rng
        self._lies = rng.choice((0.1, 0.3, 0.6))
        self._honest_release = rng.random() < 0.8
        self._honest_whole = rng.random() < 0.5
        self._ranges = rng.random() < 0.95
        self.traffic = Traffic()

    @property
    def proves(self) -> bool:
        """Whether the release that it hands out is the right one."""
        return self._release is not None and self._honest_release

    async def size(self) -> int:
        return len(self._data) if self._rng.random() > self._lies else self._rng.randrange(1 << 40)

    async def read(self, start: int, end: int) -> bytes:
        if not self._ranges:
            raise NoRanges("No ranges here; download the whole file.")
        return self._said(self._data[start:end])

    async def read_release(self) -> bytes | None:
        return self._release if self._honest_release or self._release is None else self._said(self._release)

    async def stream(self) -> AsyncIterator[bytes]:
        yield self._data if self._honest_whole else self._said(self._data)

    def _said(self, data: bytes) -> bytes:
        rng = self._rng
        if rng.random() > self._lies or not data:
            return data
        kind = rng.randrange(5)
        if kind == 0:
            return data[: rng.randrange(len(data))]
        if kind == 1:
            return rng.randbytes(len(data))
        if kind == 2:
            return _trusting(_resealed(_mutated(data, rng)))
        return _mutated(data, rng)


async def test_whatever_a_server_says_the_copy_is_right_or_untouched(
    quick_folder: Path,
    make_text: Callable[..., bytes],
    edited: Callable[[bytes, int, int], bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Small files, and no waiting for the disk: what is tried here is what the client believes."""
    text = make_text(30)
    for name, state, older in (("old", text, None), ("new", edited(text, 1, 4), quick_folder / "old.zrec")):
        pack(state, quick_folder / f"{name}.zrec", dict_from=older)
    monkeypatch.setattr(os, "fsync", lambda number: None)
    old, new = (quick_folder / "old.zrec").read_bytes(), (quick_folder / "new.zrec").read_bytes()
    release = (quick_folder / "new.zrec.release").read_bytes()
    out = quick_folder / "copy" / "out.zrec"
    out.parent.mkdir()
    ended: set[str] = set()
    before = _peak()
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        out.write_bytes(old)
        out.with_name("out.zrec.release").unlink(missing_ok=True)
        if rng.random() < 0.7:
            out.with_name("out.zrec.part").unlink(missing_ok=True)
        try:
            server = _Liar(new, release, rng)
            report = await sync(server, out)
            ended.add("fallback" if report.fallback else "synced")
            # Without a release that is right a whole file of lies cannot be told from a new one; it is whole, though.
            assert out.read_bytes() == new if server.proves else verify(out).sound, seed
        except LetopisError as wrong:
            ended.add(type(wrong).__name__)
            assert out.read_bytes() == old
    assert {"synced", "fallback", "Damaged", "Unavailable"} <= ended
    assert _peak() - before < MOST_MEMORY


@given(st.binary(max_size=200))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_fields_are_a_header_or_refused(fields: bytes) -> None:
    with contextlib.suppress(Damaged):
        header.parse_header(header.framed_header(fields))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_header_reads_what_it_wrote(data: st.DataObject) -> None:
    small, digests = st.integers(0, 1000), st.binary(min_size=32, max_size=32)
    rows = data.draw(st.lists(st.tuples(st.binary(min_size=16, max_size=16), small), max_size=5))
    chunks = data.draw(small)
    group = data.draw(st.sampled_from([1, 4]))
    head = header.sealed_header(
        header.ZrecHeader(
            ended=data.draw(st.booleans()),
            ordered=data.draw(st.booleans()),
            records=data.draw(st.integers(chunks, chunks * group)),
            chunks=chunks,
            text_size=data.draw(small),
            journals_size=sum(length for _, length in rows),
            index_size=chunks * 5 + data.draw(small),
            dictionary_size=data.draw(small),
            data_size=chunks + data.draw(small),
            index_digest=data.draw(digests),
            dictionary_digest=data.draw(digests),
            body_digest=data.draw(digests),
            separator=data.draw(st.binary(min_size=1, max_size=64)),
            group=group,
            name_rule=data.draw(st.none() | st.text(st.characters(codec="utf-8"), max_size=50)),
            history=tuple(rows),
        )
    )
    assert header.parse_header(header.encode_header(head)) == head


def test_a_hundred_thousand_chunks_align_in_a_second_or_two() -> None:
    rng = np.random.default_rng(1)
    old = rng.integers(0, 2**32, 100_000, dtype=np.uint32)
    keep = rng.random(100_000) > 0.02
    new = np.insert(old[keep], rng.integers(0, keep.sum(), 1000), rng.integers(0, 2**32, 1000, dtype=np.uint32))
    before = time.process_time()
    pairs = align_chunks(_index(old), _index(new))
    assert time.process_time() - before < 4
    assert keep.sum() - 5 <= len(pairs) <= keep.sum() + 5


def _index(hashes: np.typing.NDArray[np.uint32]) -> ChunkIndex:
    starts = group_borders(hashes)[:-1]
    ones = np.ones(len(hashes), np.int64)
    folded = np.bitwise_xor.reduceat(hashes, starts)
    return ChunkIndex(ones, ones, hashes, folded)


def test_a_release_with_an_endless_number_is_damaged() -> None:
    with pytest.raises(Damaged, match="cannot be read"):
        published_file.parse_release(
            b'{"format": "zrec-release", "version": 1, "name": "a", "time": "", "size": 1e999, "sha256": "", '
            b'"index_sha256": ""}'
        )

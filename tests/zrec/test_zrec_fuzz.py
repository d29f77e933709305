from __future__ import annotations

import contextlib
import os
import random
import time
import tracemalloc
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from letopis.errors import Damaged
from letopis.zrec import Reader, header
from letopis.zrec.align import align
from letopis.zrec.hashing import digest
from letopis.zrec.index import Index, borders

FOLDER = Path(__file__).parents[1] / "formats" / "zrec"
ROUNDS = 1_000_000 if os.environ.get("LETOPIS_LONG") else 1500


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
        size = header.size_of(data[: header.PREFIX])
        return data[: size - 16] + digest(data[: size - 16])[:16] + data[size:]
    return data


def _trusting(data: bytes) -> bytes:
    """The header's digest of the index made right, so that the index parser sees mutated columns."""
    try:
        head = header.parse(data)
    except Damaged:
        return data
    right = digest(data[head.index_at : head.dictionary_at])
    return _resealed(data.replace(head.index_digest, right, 1))


def test_any_mutation_is_read_or_refused(tmp_path: Path) -> None:
    golden = [path.read_bytes() for path in sorted(FOLDER.glob("golden-*.zrec"))]
    path = tmp_path / "fuzzed.zrec"
    refused = 0
    tracemalloc.start()
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        data = rng.choice(golden)
        cut = rng.choice((60, 200, len(data)))
        path.write_bytes(_trusting(_resealed(_mutated(data[:cut], rng) + data[cut:])))
        try:
            with Reader(path) as reader:
                for number in range(0, len(reader.index), 7):
                    reader.chunk(number)
                list(reader.find("x"))
        except Damaged:
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused > ROUNDS / 2
    assert peak < 100 << 20


@given(st.binary(max_size=200))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_fields_are_a_header_or_refused(fields: bytes) -> None:
    with contextlib.suppress(Damaged):
        header.parse(header.framed(fields))


@given(st.data())
@settings(max_examples=200)
def test_a_header_reads_what_it_wrote(data: st.DataObject) -> None:
    small, digests = st.integers(0, 1000), st.binary(min_size=32, max_size=32)
    rows = data.draw(st.lists(st.tuples(st.binary(min_size=16, max_size=16), small), max_size=5))
    chunks = data.draw(small)
    group = data.draw(st.sampled_from([1, 4]))
    head = header.sealed(
        header.Header(
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
    assert header.parse(header.write(head)) == head


def test_a_hundred_thousand_chunks_align_in_a_second_or_two() -> None:
    rng = np.random.default_rng(1)
    old = rng.integers(0, 2**32, 100_000, dtype=np.uint32)
    keep = rng.random(100_000) > 0.02
    new = np.insert(old[keep], rng.integers(0, keep.sum(), 1000), rng.integers(0, 2**32, 1000, dtype=np.uint32))
    before = time.process_time()
    pairs = align(_index(old), _index(new))
    assert time.process_time() - before < 4
    assert keep.sum() - 5 <= len(pairs) <= keep.sum() + 5


def _index(hashes: np.typing.NDArray[np.uint32]) -> Index:
    starts = borders(hashes)[:-1]
    ones = np.ones(len(hashes), np.int64)
    folded = np.bitwise_xor.reduceat(hashes, starts)
    return Index(ones, ones, hashes, folded)

"""Floors of solid frames on small generated data: lowering one needs a reason."""

import hashlib
import lzma
import random
import zlib

import pytest
from pacing import cpu, lowest

from letopis.store import solid
from letopis.store.solid.frame_writer import SolidOptions, encode_solid, frames_size

DIGEST = "120b48402d8fb86a19214a5a"
DOCUMENTS, VERSIONS = 4, 25


def words(rng, count):
    return " ".join("".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(count))


def history(seed):
    """Versions of a page, newest first: attributes, nonces, a clock, edited and moved paragraphs."""
    rng = random.Random(seed)
    blocks = [f'<div class="{words(rng, 2)}"><a href="/{words(rng, 1)}">{words(rng, 40)}</a></div>' for _ in range(60)]
    out = []
    for number in range(VERSIONS):
        blocks[rng.randrange(60)] = f'<div class="{words(rng, 2)}">{words(rng, 30)}</div>'
        blocks.insert(rng.randrange(60), blocks.pop(rng.randrange(60)))
        head = f'<meta name="token" content="{rng.randbytes(16).hex()}"><time>{1_700_000_000 - number * 3600}</time>'
        out.append("\n".join([head, *blocks]).encode())
    return out


def test_frames_stay_below_solid_xz_of_everything():
    documents = [history(seed) for seed in range(DOCUMENTS)]
    whole = b"".join(body for bodies in documents for body in reversed(bodies))
    assert hashlib.sha256(whole).hexdigest()[:24] == DIGEST
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME}]
    bar = len(lzma.compress(whole, format=lzma.FORMAT_XZ, filters=filters))
    frames = [encode_solid(bodies) for bodies in documents]
    # 0.921 when this was pinned.
    assert sum(map(frames_size, frames)) <= 0.93 * bar
    for bodies, made in zip(documents, frames, strict=True):
        assert [body for frame in made for body in solid.decode_all(frame.data, bodies[0])] == bodies


def test_reading_makes_a_bounded_amount_of_coder_output():
    bodies = history(9)
    frames = encode_solid(bodies, bound=100_000)
    newest = solid.decode(frames[0].data, 0)
    sizes = iter(bodies)
    for frame in frames:
        outside = newest.body if solid.needs_newest(frame.data) else None
        for slot in range(frame.count):
            made = solid.decode(frame.data, slot, outside).decoded_bytes + newest.decoded_bytes * bool(outside)
            assert made <= max(100_000, 8 * len(next(sizes)))


@pytest.mark.parametrize(("seed", "most"), [(3, 1.0), (40, 1.005)])
def test_no_level_of_differences_beats_the_contest_of_levels(seed, most):
    """The contest estimates (decision 24): the second history is the one of fifty that it judges worst."""
    bodies = history(seed)
    best = frames_size(encode_solid(bodies))
    assert best <= most * min(frames_size(encode_solid(bodies, way=SolidOptions(level=level))) for level in (1, 2, 3))


@pytest.mark.timed
def test_q23_frames_cost_less_than_ten_times_gzip():
    bodies = history(3)

    def share():
        return cpu(lambda: encode_solid(bodies), 1) / cpu(lambda: [zlib.compress(body, 9) for body in bodies], 3)

    # 7 when this was pinned.
    assert lowest(share, 10.0) <= 10.0

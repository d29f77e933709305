"""Known texts: what the documents of a site share is stored once."""

import random

import pytest

from letopis.errors import Damaged
from letopis.store import solid
from letopis.store.solid import stream
from letopis.store.solid.known import shared_text
from letopis.store.solid.site import encode_site
from letopis.store.solid.writing import encode, size_of


def words(rng, count):
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randint(3, 9))) for _ in range(count))


def site(documents=3, versions=4, seed=2):
    """Documents with a common frame of navigation and footer."""
    rng = random.Random(seed)
    navigation = "\n".join(f'<a href="/{words(rng, 1)}">{words(rng, 3)}</a>' for _ in range(60))
    out = []
    for _ in range(documents):
        own = [words(rng, 30) for _ in range(6)]
        history = []
        for _ in range(versions):
            own[rng.randrange(6)] = words(rng, 30)
            history.append(f"<nav>{navigation}</nav>\n<p>{'</p><p>'.join(own)}</p>\n".encode())
        out.append(history)
    return out


def test_site_reads_back_exactly_with_its_known_text():
    documents = site()
    made = encode_site(documents)
    known = solid.decode_known(made.known)
    for bodies, frames in zip(documents, made.frames, strict=True):
        assert [body for frame in frames for body in solid.decode_all(frame.data, bodies[0], known)] == bodies
        assert solid.decode(frames[0].data, 2, known=known).body == bodies[2]


def test_site_is_smaller_than_its_documents_alone():
    documents = site()
    made = encode_site(documents)
    together = len(made.known) + sum(map(size_of, made.frames))
    assert together < 0.7 * sum(size_of(encode(bodies)) for bodies in documents)


def test_documents_that_share_nothing_get_no_known_text():
    rng = random.Random(3)
    made = encode_site([[words(rng, 200).encode()] for _ in range(3)])
    assert made.known == b""
    assert not any(solid.needs_known(frame.data) for frames in made.frames for frame in frames)


def test_reading_with_another_known_text_raises_damaged():
    made = encode_site(site())
    leaning = next(frame for frames in made.frames for frame in frames if solid.needs_known(frame.data))
    for other in (b"", b"something else"):
        with pytest.raises(Damaged):
            solid.decode(leaning.data, 0, known=other)


def test_known_text_counts_as_coder_output():
    bodies = site()[0]
    known = shared_text(site())
    read = solid.decode(encode(bodies, known=known)[0].data, 0, known=known)
    assert read.decoded_bytes == len(bodies[0]) + stream.overhead(known)


@pytest.mark.parametrize("size", [1, 255, 65_110, 65_111, 65_112, 70_000, 1_048_600, 17_000_000])
def test_known_texts_of_any_size_stand_before_the_stream(size):
    known = random.Random(size).randbytes(min(size, 5000)) * (size // 5000 + 1)
    known = known[:size]
    text = b"<p>a page</p>" + known[:200] + b"</p>"
    part = stream.parts([text], known, quality=5)[0]
    assert stream.text_of(part, len(text), known) == text

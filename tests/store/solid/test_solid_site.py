"""Known texts: what the documents of a site share is stored once."""

import random

import pytest

from letopis.errors import Damaged
from letopis.store import solid
from letopis.store.solid import stream
from letopis.store.solid.frame_writer import (
    best_shared_text,
    encode_shared_text,
    encode_solid,
    frames_size,
    paying_shared_text,
    shared_text,
)


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


def newest(documents):
    return [bodies[0] for bodies in documents]


def test_documents_read_back_exactly_with_the_text_of_their_site():
    documents = site()
    known = paying_shared_text(newest(documents), [])
    for bodies in documents:
        frames = encode_solid(bodies, known=known)
        assert [body for frame in frames for body in solid.decode_all(frame.data, bodies[0], known)] == bodies
        assert solid.decode(frames[0].data, 2, known=known).body == bodies[2]


def test_documents_and_their_text_are_smaller_than_documents_alone():
    documents = site()
    known = paying_shared_text(newest(documents), [])
    together = len(encode_shared_text(known)) + sum(
        frames_size(encode_solid(bodies, known=known)) for bodies in documents
    )
    assert together < 0.7 * sum(frames_size(encode_solid(bodies)) for bodies in documents)


def test_a_text_may_lean_on_another_one():
    known = paying_shared_text(newest(site()), [])
    leaning = encode_shared_text(known, known[:2000])
    assert len(leaning) < len(encode_shared_text(known))
    assert solid.decode(leaning, 0, known=known[:2000]).body == known


def test_documents_that_share_nothing_get_no_text():
    rng = random.Random(3)
    assert paying_shared_text([words(rng, 200).encode() for _ in range(3)], []) == b""


def test_a_text_that_is_there_already_leaves_no_need_for_another():
    pages = newest(site())
    assert paying_shared_text(pages, [paying_shared_text(pages, [])]) == b""


def test_a_page_leans_on_the_text_that_serves_it_best():
    page, other = newest(site())[0], newest(site(seed=7))[0]
    assert best_shared_text(page, [b"", other, page]) == 2
    assert best_shared_text(page, [b"", random.Random(1).randbytes(3000)]) == 0


def test_reading_with_another_known_text_raises_damaged():
    leaning = encode_solid(site()[0], known=shared_text(site()))[0]
    assert solid.needs_known(leaning.data)
    for other in (b"", b"something else"):
        with pytest.raises(Damaged):
            solid.decode(leaning.data, 0, known=other)


def test_known_text_counts_as_coder_output():
    bodies = site()[0]
    known = shared_text(site())
    read = solid.decode(encode_solid(bodies, known=known)[0].data, 0, known=known)
    assert read.decoded_bytes == len(bodies[0]) + stream.stream_overhead(known)


@pytest.mark.parametrize("size", [1, 255, 65_110, 65_111, 65_112, 70_000, 1_048_600, 17_000_000])
def test_known_texts_of_any_size_stand_before_the_stream(size):
    known = random.Random(size).randbytes(min(size, 5000)) * (size // 5000 + 1)
    known = known[:size]
    text = b"<p>a page</p>" + known[:200] + b"</p>"
    part = stream.encode_stream([text], known, quality=5)[0]
    assert stream.decode_whole_stream(part, len(text), known) == text

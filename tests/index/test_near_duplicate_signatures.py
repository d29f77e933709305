from __future__ import annotations

import random

from letopis.change.fingerprints import fingerprint
from letopis.change.profiles import HostProfile
from letopis.index.near_duplicates import (
    band_keys,
    candidate_groups,
    estimated_similarity,
    exact_similarity,
    shingles,
    signature,
)
from letopis.model import Block, BlockKind, Page


def page(*texts: str) -> Page:
    return Page("http://example.test/", "text/html", blocks=tuple(Block(BlockKind.PARAGRAPH, text) for text in texts))


def text(seed: int, size: int = 400) -> list[str]:
    rand = random.Random(seed)
    return [" ".join(f"w{rand.randrange(4000)}" for _ in range(20)) for _ in range(size // 20)]


def test_the_estimate_is_near_the_truth() -> None:
    for share in (0, 5, 10, 18, 20):
        one, two = text(1), text(1)[:share] + text(2)[share:]
        first, second = shingles(page(*one)), shingles(page(*two))
        truth = exact_similarity(first, second)
        assert abs(estimated_similarity(signature(first), signature(second)) - truth) < 0.15


def test_near_copies_share_a_band_and_strangers_do_not() -> None:
    found = 0
    for seed in range(50):
        original = text(seed)
        copy = [*original[:-1], "an ending of its own with other words in it"]
        keys = [set(band_keys(signature(shingles(page(*body))))) for body in (original, copy, text(1000 + seed))]
        found += bool(keys[0] & keys[1])
        assert not keys[0] & keys[2]
    assert found == 50


def test_groups_join_copies_under_many_addresses() -> None:
    bodies = {"a": text(1), "b": text(1), "c": text(2), "d": [*text(1)[:-1], "other end"], "e": text(3)}
    rows = [(name, band_keys(signature(shingles(page(*body))))) for name, body in bodies.items()]
    assert candidate_groups(rows) == [["a", "b", "d"]]


def test_the_frame_of_a_host_does_not_make_its_pages_alike() -> None:
    frame = text(77)
    host = HostProfile()
    for seed in range(10):
        host.observe(fingerprint(page(*frame, *text(seed, 60))))
    one, two = page(*frame, *text(1, 60)), page(*frame, *text(2, 60))
    assert exact_similarity(shingles(one), shingles(two)) > 0.5
    assert exact_similarity(shingles(one, host), shingles(two, host)) == 0


def test_keys_fit_a_signed_column() -> None:
    assert all(-(1 << 63) <= key < 1 << 63 for key in band_keys(signature(shingles(page(*text(4))))))


def test_empty_and_tiny_pages_are_handled() -> None:
    none, word = shingles(page()), shingles(page("word"))
    assert exact_similarity(none, none) == 1
    assert exact_similarity(none, word) == 0
    assert estimated_similarity(signature(none), signature(none)) == 1
    assert len(word) == 1

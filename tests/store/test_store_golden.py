"""Packs of each version of the format. Every later release must read them; a change of the format makes new files.

`store` is version 1. `store2` is version 2, where pages lean on the known
text of their site and on the one that comes with Letopis.
"""

import shutil
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from letopis.binary import sha1_digest
from letopis.config.settings import StoreSettings
from letopis.store import LocalBackend, Store
from letopis.store.pack_format import RecordKind, parse_frame_head

GOLDEN = Path(__file__).parent.parent / "formats" / "store"


def page(number, version):
    paragraphs = (f"<p>paragraph {i} of page {number}{', edited' if i < version else ''}</p>\n" for i in range(12))
    return f"<html><title>page {number}</title><body>{''.join(paragraphs)}</body></html>".encode()


@pytest.fixture
def store(tmp_path):
    shutil.copytree(GOLDEN, tmp_path / "store")
    with Store.open(LocalBackend(tmp_path / "store"), StoreSettings(), write=True) as opened:
        yield opened


def test_golden_packs_are_sound(store):
    assert not list(store.verify())


def test_golden_packs_tell_every_version(store):
    told = {(fact.key, fact.time, fact.digest) for fact in store.scan()}
    for number in (1, 2):
        for version in range(6):
            time = 1_700_000_000_000 + version * 3_600_000
            assert (b"https://example.org/%d" % number, time, sha1_digest(page(number, version))) in told
    assert sum(key == b"https://example.org/mirror" for key, _, _ in told) == 3


def test_golden_packs_give_every_content(store):
    pages = {sha1_digest(page(number, version)): page(number, version) for number in (1, 2) for version in range(6)}
    methods = Counter()
    for fact in store.scan():
        if fact.place is not None:
            found = store.read(fact.place)
            assert found.body == pages[fact.digest]
            assert (fact.raw_bytes, fact.method) == (len(found.body), found.method)
            methods[found.method] += 1
    assert set(methods) == {"zstd", "run", "solid"}


def site_page(number, version):
    """A page with the navigation of its site, the same in all of them."""
    links = (f"<a href='/{sha256(b'%d' % i).hexdigest()[:24]}'>chapter {i}</a>\n" for i in range(40))
    return f"<nav>{''.join(links)}</nav>".encode() + page(number, version)


@pytest.fixture
def second(tmp_path):
    shutil.copytree(GOLDEN.with_name("store2"), tmp_path / "second")
    with Store.open(LocalBackend(tmp_path / "second"), StoreSettings(), write=False) as opened:
        yield opened


def test_golden_packs_of_version_2_give_every_content(second):
    pages = {sha1_digest(site_page(n, v)): site_page(n, v) for n in range(3) for v in range(3)}
    assert not list(second.verify())
    facts = list(second.scan())
    assert {(fact.key, fact.time, fact.digest) for fact in facts} == {
        (b"https://example.org/%d" % n, 1_700_000_000_000 + v, sha1_digest(site_page(n, v)))
        for n in range(3)
        for v in range(3)
    }
    for fact in facts:
        if fact.place is not None:
            assert second.read(fact.place).body == pages[fact.digest]


def test_golden_packs_of_version_2_lean_on_texts_here_and_elsewhere(second):
    leaning = set()
    for pack, size in second.sizes().items():
        for record in second._facts.records(pack, size):
            if record.kind == RecordKind.FRAME and (at := parse_frame_head(record.head).text):
                leaning.add((pack, at.pack))
    assert any(pack == text for pack, text in leaning)
    assert any(pack > text > 0 for pack, text in leaning)

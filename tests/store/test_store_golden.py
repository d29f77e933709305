"""Packs written by the first release. Every later release must read them; a change of the format makes new files."""

import shutil
from collections import Counter
from pathlib import Path

import pytest

from letopis.config.sections import StoreSettings
from letopis.store import LocalBackend, Store, sha1_digest

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

"""On a disk that takes nothing more, what is archived can be read and asked as far as it was taken in."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from letopis import Archive
from letopis.errors import NotReady
from letopis.model.rights import OWN, READ, WRITE
from letopis.operations.context import Context
from letopis.operations.links import LinksQuery, RankQuery, links, rank
from letopis.operations.pages import GetQuery, get
from letopis.operations.words import PhraseQuery, SearchQuery, search, when

ONE, TWO = "http://127.0.0.1:9/one", "http://127.0.0.1:9/two"
PAGE = b'<title>Ferry</title><p>The ferry leaves at noon. <a href="/two">times</a>'


class Heard:
    """Progress that keeps what is remarked."""

    def __init__(self) -> None:
        self.remarks: list[str] = []

    def show(self, done: int, what: str = "", of: int = 0) -> None:
        """Not kept."""

    def remark(self, sentence: str) -> None:
        self.remarks.append(sentence)

    def cancelled(self) -> bool:
        return False


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process grows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with Archive(tmp_path / "a") as archive:
        asked = Context(archive, rights=READ | WRITE | OWN, private_ok=True, progress=Heard())
        archive.put(ONE, PAGE)
        assert list(search(asked, SearchQuery(query="ferry")))
        assert list(rank(asked, RankQuery()))
        assert list(links(asked, LinksQuery(url=ONE)))
        archive.put(TWO, PAGE)
        yield asked


def test_questions_are_answered_from_what_the_indexes_hold(context: Context) -> None:
    with full_disk():
        found = [row.url for row in search(context, SearchQuery(query="ferry"))]
        first = when(context, PhraseQuery(phrase="leaves at noon")).value
        linked = [row.target for row in links(context, LinksQuery(url=ONE))]
        ranked = list(rank(context, RankQuery()))
    assert (found, linked, len(ranked), first.versions) == ([ONE], [TWO], 1, 1)
    assert isinstance(context.progress, Heard)
    assert all("answered from what is here" in remark for remark in context.progress.remarks)
    assert len(list(search(context, SearchQuery(query="ferry")))) == 2
    assert not list((context.archive.folder / "index").glob("weights.*"))


def test_a_version_is_printed_where_its_page_cannot_be_checked(context: Context) -> None:
    with full_disk():
        for asked in (GetQuery(url=ONE), GetQuery(url=ONE, last_available=True), GetQuery(url=ONE, offline=True)):
            assert b"".join(get(context, asked).bytes()) == PAGE
        with pytest.raises(NotReady):
            get(context, GetQuery(url="http://127.0.0.1:9/never"))

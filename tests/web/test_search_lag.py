"""A search does not wait for a large index to catch up: it says how far it is behind, and the rest comes by itself."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import until
from served_archive import at, running

import letopis.web.search as web_search
from letopis.archive import Archive
from letopis.model import Put
from letopis.operations import Context
from letopis.operations.words import SearchQuery, search, take_in_by_batches, word_index

MANY = 400


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Archive]:
    """More versions than a search takes in while somebody waits."""
    with Archive(tmp_path / "archive", clock=lambda: at(9999)) as archive:
        texts = (b"<title>Page</title><p>A page about the quagga number %d.</p>" % number for number in range(MANY))
        puts = [Put(f"http://a.example/{number}", text, at(number)) for number, text in enumerate(texts)]
        assert len(list(archive.put_many(puts))) == MANY
        yield archive


def test_a_search_that_does_not_wait_takes_nothing_in_and_tells_how_far_behind_it_is(recorded: Archive) -> None:
    context = Context(recorded, rights=1)
    found = search(context, SearchQuery(query="quagga", fresh=False))
    assert (found.about["total"], found.about["behind"], list(found)) == (0, MANY, [])
    assert word_index(recorded).lag() == MANY
    assert take_in_by_batches(context) == MANY
    found = search(context, SearchQuery(query="quagga", fresh=False))
    assert (found.about["total"], found.about["behind"]) == (MANY, 0)


def test_a_search_that_does_not_wait_is_answered_while_somebody_writes_the_index(recorded: Archive) -> None:
    context, found = Context(recorded, rights=1), []
    assert take_in_by_batches(context) == MANY
    question = SearchQuery(query="quagga", fresh=False)
    asking = threading.Thread(target=lambda: found.append(search(context, question).about["total"]), daemon=True)
    with (recorded.folder / "index" / "words" / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asking.start()
        until(lambda: bool(found))
    assert found == [MANY]


def test_all_hits_are_taken_along_however_many_one_search_gives(
    recorded: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_search, "MAX_HITS", MANY // 3)
    assert take_in_by_batches(Context(recorded, rights=1)) == MANY
    with running(recorded) as web:
        rows = web.get("/search?q=quagga&as=csv").text.splitlines()[1:]
        assert len({row.partition(",")[0] for row in rows}) == len(rows) == MANY
        assert "First seen on" in web.get("/search?q=quagga").text
        # Of what must not be there nobody wants to know when it was.
        assert "First seen on" not in web.get("/search?q=-quagga").text


def test_the_page_shows_the_lag_until_the_index_has_caught_up(recorded: Archive) -> None:
    with running(recorded) as web:
        end = time.monotonic() + 300
        while f"{MANY} pages" not in (text := web.get("/search?q=quagga").text):
            assert "still being indexed" in text
            assert time.monotonic() < end
        assert "still being indexed" not in web.get("/search?q=quagga").text

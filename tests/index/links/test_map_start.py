"""Where a map begins without a home page, which pages moved on it, and what rules leave out of the lists of links."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from letopis.archive import OWN, READ, WRITE, Archive
from letopis.archive.index_facts import set_url_rules
from letopis.cli import main
from letopis.crawl import CrawlOptions, enqueue_seeds
from letopis.errors import NotFound
from letopis.operations import Context, bind
from letopis.operations.links import broken, links, rank, site_events, site_map
from letopis.operations.words import near

HOST = "x.example"


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Pages without a home page; on the third day one of them hangs under another."""
    with Archive(tmp_path / "a", clock=lambda: day(10)) as opened:
        put(opened, "/a", 1)
        put(opened, "/start", 1, "/a", "/b", "/c")
        put(opened, "/b", 1, "/d")
        put(opened, "/c", 1, "/e")
        put(opened, "/d", 1)
        put(opened, "/e", 1)
        put(opened, "/b", 3)
        put(opened, "/c", 3, "/e", "/d")
        yield opened


def put(archive: Archive, path: str, number: int, *targets: str) -> None:
    body = f"<title>{path}</title>" + "".join(f'<a href="{target}">to {target}</a>' for target in targets)
    archive.put(f"http://{HOST}{path}", body.encode(), day(number))


def ask(archive: Archive, operation: Any, **values: Any) -> Any:
    context = Context(archive, rights=READ | WRITE | OWN)
    return operation(context, bind(operation.parameters, values, archive.clock(), strict=True))


def lines_of(archive: Archive) -> list[str]:
    return b"".join(ask(archive, site_map, site=HOST).bytes()).decode().splitlines()


def test_without_a_home_page_the_map_begins_where_most_can_be_reached(archive: Archive) -> None:
    lines = lines_of(archive)
    assert lines[0].startswith("/start ")
    assert len(lines) == 6


def test_without_a_home_page_the_map_begins_at_a_seed(archive: Archive) -> None:
    enqueue_seeds(archive, CrawlOptions((f"http://{HOST}/c",)))
    assert lines_of(archive)[0].startswith("/c ")


def test_pages_that_nothing_on_the_map_leads_to_are_told_below_it(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--archive", str(archive.folder), "map", HOST]) == 0
    assert capsys.readouterr().err == ""
    put(archive, "/alone", 4)
    assert main(["--archive", str(archive.folder), "map", HOST]) == 0
    told = capsys.readouterr()
    assert "alone" not in told.out
    assert "no page of the map leads to 1 further page of the site: 'letopis map report x.example'" in told.err


def test_a_page_that_hangs_under_another_one_has_moved(archive: Archive) -> None:
    found = ask(archive, site_events, site=HOST, **{"from": day(2), "to": day(4)})
    rows = [row for row in found if row.event == "moved"]
    assert [(row.url, row.parent_before, row.parent) for row in rows] == [
        (f"http://{HOST}/d", f"http://{HOST}/b", f"http://{HOST}/c")
    ]


def test_links_that_rules_ignore_are_not_listed(archive: Archive) -> None:
    target = f"http://{HOST}/d"
    assert [row.source for row in ask(archive, links, url=target, direction="in")] == [f"http://{HOST}/c"]
    rules = f'<urltransform><varlist base="{HOST}/d"><var name="id"/></varlist></urltransform>'
    set_url_rules(archive, {HOST: rules})
    listed = list(ask(archive, links, url=target, direction="in"))
    assert listed == []


@pytest.mark.parametrize("operation", [site_map, broken, rank, links])
def test_an_unknown_site_is_the_same_answer_to_every_question(archive: Archive, operation: Any) -> None:
    name = "url" if operation is links else "site"
    with pytest.raises(NotFound, match=r"no page of nosuch\.example is in the archive"):
        ask(archive, operation, **{name: "nosuch.example"})


def test_an_unknown_word_is_told(archive: Archive) -> None:
    with pytest.raises(NotFound, match="no archived page has the word 'zebra'"):
        ask(archive, near, word="zebra")

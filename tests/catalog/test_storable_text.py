"""No character of a page keeps it out of the catalogue, whichever engine holds that."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_site import ScriptedSite

from letopis import Archive, Monitor, Put
from letopis.catalog.database import storable_text, storable_values
from letopis.config import DatabaseSettings, Settings
from letopis.errors import BadUrl
from letopis.model import Outcome

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ODD = "a\0b\ud800c"
PLAIN = "a\ufffdb\ufffdc"


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Settings:
    if request.param == "sqlite":
        return Settings()
    new_database: Callable[[], str] = request.getfixturevalue("new_database")
    return Settings(database=DatabaseSettings(url=new_database()))


@given(st.text(st.characters(codec=None), max_size=20))
@settings(max_examples=200, deadline=None)
def test_any_text_becomes_storable_and_stays_so(text: str) -> None:
    made = storable_text(text)
    made.encode()
    assert "\0" not in made
    assert storable_text(made) is made
    assert len(made) <= len(text)


def test_plain_text_and_rows_are_passed_on_as_they_are() -> None:
    row = (1, "plain", "žluťoučký \U0001f40e", b"\0", None)
    assert storable_values(row) is row
    assert storable_values((1, ODD, b"\0")) == (1, PLAIN, b"\0")


def test_every_way_into_the_catalogue_takes_such_text(engine: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=engine) as archive:
        database = archive.catalog.database
        with database.transaction() as cursor:
            cursor.run("INSERT INTO meta (name, value) VALUES ('one', ?)", (ODD,))
            cursor.run_many("INSERT INTO meta (name, value) VALUES (?, ?)", iter([("two", ODD), ("three", ODD)]))
            cursor.bulk("meta", ("name", "value"), [["four", ODD]])
            cursor.one("INSERT INTO meta (name, value) VALUES ('five', ?) RETURNING name", (ODD,))
        rows = database.all("SELECT name FROM meta WHERE value = ?", (ODD,))
        assert {row[0] for row in rows} == {"one", "two", "three", "four", "five"}
        assert set(database.stream("SELECT value FROM meta WHERE value = ?", (ODD,))) == {(PLAIN,)}


def test_a_page_with_such_a_title_and_such_headers_is_recorded(
    engine: Settings, tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    body = b"<title>a\0b &#0; &#xd800;</title><p>text \0 of the page <a href='/x%00y'>n\0xt</a>"
    url = scripted_site.set("/page", body, X_Odd="a\x01b", ETag='"\xff\xfe"')
    with Archive(tmp_path / "a", settings=engine) as archive, Monitor(archive, uid="m\0e") as monitor:
        assert monitor.get(url).check().outcome is Outcome.NEW
        assert archive.get(url).body == body
        assert list(archive.verify()) == []


def test_addresses_with_a_nul_are_known_again(engine: Settings, tmp_path: Path) -> None:
    with Archive(tmp_path / "a", settings=engine) as archive:
        list(archive.put_many([Put("http://example.org/a\0b", b"one", NOON), Put("http://example.org/a%00b", b"two")]))
        assert len(archive.versions("http://example.org/a%00b")) == 2
        with pytest.raises(BadUrl):
            archive.put("http://exa\0mple.org/", b"x")

"""The page of the settings: found by words, with where each was set."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from served_archive import WebClient, running
from signed_in import Person, add_people

from letopis.archive import Archive
from letopis.archive.audit import audit_entries
from letopis.archive.edited_settings import edited_settings_of
from letopis.config import Settings, load_settings, settings_table
from letopis.config.editable import EDITABLE, with_edited


@pytest.fixture
def loaded(tmp_path: Path) -> Settings:
    file = tmp_path / "letopis.toml"
    file.write_text("[crawl]\ndelay = 2.0\n[fetch]\nmax_bytes = '5MiB'\n[store]\nchain = 20\n")
    environ = {"LETOPIS_SERVE_CHECKS_A_DAY": "7", "LETOPIS_FETCH_MAX_BYTES": "6MiB"}
    return load_settings(file, environ, {"archive.path": str(tmp_path / "archive")})


@pytest.fixture
def web(loaded: Settings) -> Iterator[WebClient]:
    with Archive.open(loaded) as archive, running(archive) as client:
        yield client


def test_what_was_loaded_last_is_where_a_setting_comes_from(loaded: Settings) -> None:
    names = ("crawl.delay", "fetch.max_bytes", "serve.checks_a_day", "archive.path", "store.level", "store.chain")
    assert [loaded.source_of(name) for name in names] == [
        "file", "environment", "environment", "command line", "default", "file",
    ]  # fmt: skip
    assert Settings().source_of("crawl.delay") == "default"


def test_where_it_comes_from_makes_no_settings_different(tmp_path: Path) -> None:
    file = tmp_path / "letopis.toml"
    file.write_text("[crawl]\ndelay = 2.0\n")
    assert load_settings(file, {}, {}) == load_settings(None, {}, {"crawl.delay": 2.0})
    assert hash(load_settings(file, {}, {})) == hash(load_settings(None, {}, {"crawl.delay": 2.0}))


def test_settings_are_found_by_words_and_by_being_set(web: WebClient) -> None:
    everything = web.get("/settings").text
    assert everything.count('class="badge changed"') == 5
    for place in ("in the file", "in the environment", "on the command line"):
        assert place in everything
    assert "LETOPIS_SERVE_CHECKS_A_DAY" in everything
    found = web.get("/settings?q=checks+a+day").text
    assert "serve.checks_a_day" in found
    assert "crawl.delay" not in found
    only = web.get("/settings?only=set").text
    assert "crawl.delay" in only
    assert "store.level" not in only
    assert "No matches" in web.get("/settings?q=zzzz").text


def test_settings_are_found_by_the_words_in_which_they_are_explained(web: WebClient) -> None:
    found = web.get("/settings?q=p%C5%99esm%C4%9Brov%C3%A1n%C3%AD", Accept_Language="cs").text
    assert "fetch.max_hops" in found
    assert "crawl.delay" not in found
    assert "fetch.max_hops" not in web.get("/settings?q=p%C5%99esm%C4%9Brov%C3%A1n%C3%AD").text


def test_programs_are_told_where_a_setting_comes_from(web: WebClient) -> None:
    rows = {row["name"]: row["source"] for row in web.get("/api/v1/settings").json()["settings"]}
    assert (rows["crawl.delay"], rows["store.level"]) == ("file", "default")


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Archive]:
    file = tmp_path / "letopis.toml"
    file.write_text("[crawl]\ndelay = 2.0\n")
    given = {"archive.path": str(tmp_path / "archive")}
    with Archive.open(load_settings(file, {}, given)) as archive:
        add_people(archive)
        yield archive


def reopened(archive: Archive) -> Settings:
    """The settings that a process has which opens the archive now."""
    given = {"archive.path": archive.settings.archive.path}
    with Archive.open(load_settings(None, {}, given)) as again:
        return again.settings


def test_an_owner_changes_a_setting_which_holds_from_the_next_start_and_the_log_says_who(owned: Archive) -> None:
    with running(owned) as web:
        olga = Person(web, "olga")
        assert olga.send("/settings", name="monitor.every", value="6h") == (
            303, "/settings?q=monitor.every&done=changed",
        )  # fmt: skip
        page = olga.see("/settings?q=monitor.every&done=changed")
        assert "It takes effect when the service is restarted" in page
        assert "from the next start: 6 h" in page
        assert owned.settings.monitor.every == 3600
        later = reopened(owned)
        assert (later.monitor.every, later.source_of("monitor.every")) == (21600.0, "archive")
        assert [(row.who, row.action, row.subject) for row in audit_entries(owned, 1)] == [
            ("olga", "setting changed", "monitor.every = 6h"),
        ]  # fmt: skip
        assert olga.send("/settings", name="monitor.every", action="reset")[0] == 303
        assert reopened(owned).monitor.every == 3600


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("monitor.every", "soon", "soon is not a duration"),
        ("monitor.every", "1s", "must be between"),
        ("monitor.concurrency", "100000", "must be between"),
        ("change.threshold", "nan", "must be between 0 and 1"),
        ("change.threshold", "-1", "must be between 0 and 1"),
        ("change.count", "everything", "allowed are"),
        ("schedule.min", "9y", "in this order"),
        ("crawl.delay", "9s", "is set in the file"),
        ("fetch.private", "always", "is not changed here"),
        ("serve.host", "0.0.0.0", "is not changed here"),
        ("fetch.chromium", "/bin/sh", "is not changed here"),
        ("store.secret_key", "x", "is not changed here"),
        ("monitor.title", "a\x1b[0m", "control characters"),
        ("no.such", "1", "here is no setting 'no.such'"),
    ],
)
def test_what_does_not_fit_or_is_not_for_browsers_is_refused_and_nothing_is_kept(
    owned: Archive, name: str, value: str, why: str
) -> None:
    with running(owned) as web:
        status, shown = Person(web, "olga").send("/settings", name=name, value=value)
        assert (status, why in unescape(shown)) == (422, True), shown
    assert edited_settings_of(owned).all() == {}


def test_a_value_that_is_refused_stays_in_its_field(owned: Archive) -> None:
    with running(owned) as client:
        status, shown = Person(client, "olga").send("/settings", name="monitor.delay", value="soon & later")
    assert status == 422
    field = shown.partition('name="name" value="monitor.delay"')
    assert 'value="soon &amp; later"' in field[2].partition("</form>")[0]
    assert field[0].rpartition("<details")[2].startswith(' class="ask calm" open>')


def test_sizes_are_shown_and_changed_in_the_words_in_which_people_write_them(owned: Archive) -> None:
    with running(owned) as web:
        olga = Person(web, "olga")
        assert 'value="10 MiB"' in olga.see("/settings?q=fetch.max_bytes")
        for text, size, shown in (
            ("20 MB", 20_000_000, "20 MB"),
            ("16777216", 2**24, "16 MiB"),
            ("4097", 4097, "4097"),
        ):
            assert olga.send("/settings", name="fetch.max_bytes", value=text)[0] == 303
            assert reopened(owned).fetch.max_bytes == size
            page = olga.see("/settings?q=fetch.max_bytes")
            assert f'value="{shown}"' in page
            assert f"from the next start: {shown}" in page
        for nonsense, why in (("10 apples", "write a size as 4096, 64KiB"), ("2 GiB", "between 1 KiB and 1 GiB")):
            status, page = olga.send("/settings", name="fetch.max_bytes", value=nonsense)
            assert (status, why in unescape(page)) == (422, True), page


def test_a_setting_of_a_few_values_is_chosen_and_a_duration_stands_as_it_is_written(owned: Archive) -> None:
    with running(owned) as web:
        olga = Person(web, "olga")
        yes = '<option value="true" selected>yes</option><option value="false">no</option>'
        assert yes in olga.see("/settings?q=capture.scroll")
        assert '<option value="meaningful" selected>meaningful</option>' in olga.see("/settings?q=change.count")
        assert olga.send("/settings", name="capture.scroll", value="false")[0] == 303
        assert '<option value="false" selected>no</option>' in olga.see("/settings?q=capture.scroll")
        for text, shown in (("90s", "90s"), ("120s", "2m"), ("48h", "2d"), ("0.5h", "30m")):
            assert olga.send("/settings", name="monitor.every", value=text)[0] == 303
            assert f'name="value" value="{shown}"' in olga.see("/settings?q=monitor.every")
        status, page = olga.send("/settings", name="monitor.every", value="soon")
        assert (status, "soon is not a duration: write 10m, 1h or 7d." in page) == (422, True)


def test_sections_are_folded_until_somebody_looks_for_a_setting(owned: Archive) -> None:
    with running(owned) as web:
        assert web.get("/settings").text.count('<details class="doing" data-open-wide>') > 9
        assert '<details class="doing" data-open-wide open>' in web.get("/settings?q=fetch").text


def test_only_owners_change_settings(owned: Archive) -> None:
    with running(owned) as web:
        uwe = Person(web, "uwe")
        assert uwe.send("/settings", name="monitor.every", value="6h")[0] == 403
        assert 'action="/settings"' not in uwe.see("/settings").replace('role="search" action="/settings"', "")
        answer = web.ask("PUT", "/api/v1/settings/monitor.every", '{"value": "6h"}', Content_Type="application/json")
        assert answer.status == 401
    assert edited_settings_of(owned).all() == {}


def test_nothing_that_gives_rights_on_the_machine_can_be_changed_here() -> None:
    words = (
        "path", "url", "host", "port", "key", "secret", "proxy", "headers", "file", "chromium", "private", "robots",
        "public", "two_factor", "cors", "packages", "affixes", "log", "keep_versions", "address", "origin",
    )  # fmt: skip
    assert [name for name in EDITABLE if name.partition(".")[2] in words] == []
    assert set(EDITABLE) <= set(settings_table())
    for name, bounds in EDITABLE.items():
        assert (bounds is not None) == isinstance(settings_table()[name].default, int | float) or isinstance(
            settings_table()[name].default, bool
        ), name


def test_what_the_machine_says_wins_and_what_fits_no_more_is_left_out() -> None:
    texts = {"monitor.every": "6h", "crawl.delay": "7s", "change.count": "gone", "serve.port": "1"}
    found = with_edited(load_settings(None, {"LETOPIS_CRAWL_DELAY": "3"}, {}), texts)
    assert (found.monitor.every, found.crawl.delay, found.change.count, found.serve.port) == (
        21600.0, 3.0, "meaningful", 8080,
    )  # fmt: skip


def test_a_limit_that_is_off_is_told_in_the_words_of_the_page_about_storage(web: WebClient) -> None:
    told = {name: web.get(f"/settings?q={name}").text for name in ("store.keep_versions", "store.max_bytes")}
    assert "<div>all" in told["store.keep_versions"]
    assert "<div>no limit" in told["store.max_bytes"]
    assert "<div>bez omezení" in web.get("/settings?q=store.max_bytes", Accept_Language="cs").text

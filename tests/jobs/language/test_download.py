"""Downloads against a site whose pages the test writes: rules, levels, domains, modes, stops, private addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from asking import QUICK, Told, ask, with_packages
from scripted_site import ScriptedSite

from letopis.archive import READ, WRITE, Archive, RecordedCapture
from letopis.archive.audit import usage_of
from letopis.archive.jobs import Requester
from letopis.catalog import Cursor
from letopis.config import CrawlSettings, DatabaseSettings, ServeSettings, Settings
from letopis.crawl import CrawlSelection, LevelHooks, crawl_levels
from letopis.errors import NotReady, QuotaUsedUp, Refused, UsageError
from letopis.model import to_millis
from letopis.operations import Cancelled
from letopis.operations.job_files import parse_job_file, refuse_steps
from letopis.urls.scope import Scope

GOOD = "/pub/index.php?idpage=1&language=cz&version=1"


def page(*links: str, title: str = "A page", words: str = "") -> bytes:
    listed = "".join(f'<li><a href="{link}">to {link.replace("&", " and ")}</a></li>' for link in links)
    return f"<title>{title}</title><h1>{title}</h1><p>{words}</p><ul>{listed}</ul>".replace("&", "&amp;").encode()


def rules(host: str) -> str:
    return f"""<urltransform>
      <redirect base="{host}/pub/index.html">{host}/pub/index.php</redirect>
      <varlist base="{host}/pub/index.php">
        <var name="idpage"/>
        <var name="language"><value>cz</value><value>en</value></var>
        <var name="version"><value>1</value></var>
        <var name="include">optional</var>
      </varlist>
    </urltransform>"""


def asked(site: ScriptedSite) -> list[str]:
    return [path for _, path, _ in site.log if path != "/robots.txt"]


@pytest.fixture
def host(scripted_site: ScriptedSite) -> str:
    return scripted_site.url("").removeprefix("http://")


@pytest.fixture
def archive(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Archive(tmp_path / "a", settings=QUICK) as opened:
        yield opened


def test_the_four_results_of_the_documents_rules(archive: Archive, scripted_site: ScriptedSite, host: str) -> None:
    links = (
        "/pub/index.html?idpage=1&language=cz&version=1",
        "/pub/index.php?idpage=1&language=us&version=1",
        "/pub/index.php?idpage=1&language=cz",
        "/pub/index.php?idpage=2&language=cz&version=1&menu=12",
    )
    scripted_site.set("/", page(*links, title="Home"))
    scripted_site.set(GOOD, page(title="One"))
    scripted_site.set("/pub/index.php?idpage=2&language=cz&version=1", page(title="Two"))
    # The rules stand behind the download and hold for it all the same.
    result = ask(
        archive,
        f'<query><download maxlevel="2"><url>{host}/</url></download>{rules(host)}'
        f'<crawler mode="full"><url>{host}/</url></crawler><map site="{host}"/><pagerank site="{host}"/>'
        f'<links url="{host}/"/><broken site="{host}"/></query>',
    )
    assert asked(scripted_site) == ["/", GOOD, "/pub/index.php?idpage=2&language=cz&version=1"]
    told = result.find("urltransform")
    assert (told.get("redirected"), told.get("ignored")) == ("2", "2")
    assert sorted(one.get("why") for one in told.iter("ignored")) == ["bad-value", "missing"]
    moved = {one.get("url"): one.get("to") for one in told.iter("redirected")}
    assert moved[scripted_site.url(links[0])] == scripted_site.url(GOOD)
    # In the index a link to another spelling is a link to the page, so it hangs under the home page and has a rank.
    home = result.find("map/page")
    assert [child.get("title") for child in home] == ["One", "Two"]
    assert len(result.find("pagerank")) == 3
    assert len(result.find("broken")) == 0


def test_rules_hold_in_the_index_until_a_query_brings_others(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page("/a?x=1&menu=2", title="Home"))
    scripted_site.set("/a?x=1", page(title="Under A"))
    one = f'<urltransform><varlist base="{host}/a"><var name="x"/></varlist></urltransform>'
    steps = f'<download maxlevel="1"><url>{host}/</url></download>' + "{}<crawler><url>" + host + "/</url></crawler>"
    ask(archive, f"<query>{steps.format(one)}</query>")
    mapped = f'<query><map site="{host}"/></query>'
    assert len(ask(archive, mapped).findall("map//page")) == 2
    scripted_site.set("/a?menu=2&x=1", page(title="Another"))
    ask(archive, f"<query>{steps.format('')}</query>")
    assert {found.get("title") for found in ask(archive, mapped).iter("page")} == {"Home", "Another"}


def test_an_ignored_start_page_is_told_and_not_fetched(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    result = ask(
        archive,
        f"<query>{rules(host)}<download><url>{host}/pub/index.php</url></download>"
        f"<crawler><url>{host}/pub/index.php</url></crawler></query>",
    )
    assert asked(scripted_site) == []
    assert result.find("crawler/page").get("state") == "ignored"
    assert "idpage" in result.find("crawler/page").get("reason")


def test_each_level_can_be_asked_about_before_the_next_begins(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page("/1"))
    scripted_site.set("/1", page("/2"))
    scripted_site.set("/2", page("/3"))
    scripted_site.set("/3", page())
    seen: list[tuple[int, int]] = []

    def look(line: str) -> None:
        if line.startswith("level"):
            seen.append((len(asked(scripted_site)), archive.stats().versions))

    told = Told(on_log=look)
    result = ask(archive, f'<query><download maxlevel="2"><url>{host}/</url></download></query>', told)
    assert seen == [(1, 1), (2, 2), (3, 3)]
    assert [level.get("pages") for level in result.iter("level")] == ["1", "1", "1"]
    assert asked(scripted_site) == ["/", "/1", "/2"]
    assert told.shares == sorted(told.shares)


def test_redirects_stay_on_their_level_and_loops_end(archive: Archive, scripted_site: ScriptedSite, host: str) -> None:
    scripted_site.redirect("/", "/home")
    scripted_site.set("/home", page("/loop", "/one"))
    scripted_site.redirect("/loop", "/loop")
    scripted_site.set("/one", page("/two"))
    result = ask(archive, f'<query><download maxlevel="1"><url>{host}/</url></download></query>')
    assert asked(scripted_site) == ["/", "/home", "/loop", "/one"]
    assert [level.get("pages") for level in result.iter("level")] == ["2", "2"]


def test_unchanged_pages_still_lead_on(archive: Archive, scripted_site: ScriptedSite, host: str) -> None:
    scripted_site.set("/", page("/1"), validates=True, ETag='"1"')
    scripted_site.set("/1", page("/2"))
    query = f'<query><download maxlevel="1"><url>{host}/</url></download></query>'
    ask(archive, query)
    scripted_site.log.clear()
    result = ask(archive, query)
    assert asked(scripted_site) == ["/", "/1"]
    assert scripted_site.log[1][2].get("if-none-match", '"1"') == '"1"'
    assert result.find("download").get("unchanged") == "2"


def test_domains_are_allowed_and_denied(archive: Archive, scripted_site: ScriptedSite, host: str) -> None:
    other = host.replace("127.0.0.1", "localhost")
    scripted_site.set("/", page(f"http://{other}/x", "/y"))
    scripted_site.set("/x", page())
    scripted_site.set("/y", page())
    start = f'<download maxlevel="1"><url>{host}/</url>'
    ask(archive, f"<query>{start}</download></query>")
    assert asked(scripted_site) == ["/", "/y"]
    scripted_site.log.clear()
    ask(archive, f"<query>{start}<allow>localhost</allow></download></query>")
    assert asked(scripted_site) == ["/", "/x"]
    scripted_site.log.clear()
    anywhere = start.replace("<download", '<download scope="any"')
    ask(archive, f"<query>{anywhere}<deny>localhost</deny></download></query>")
    assert asked(scripted_site) == ["/", "/y"]
    scripted_site.log.clear()
    ask(archive, f"<query><copyfromcache><domain>localhost</domain></copyfromcache>{start}</download></query>")
    assert sorted(asked(scripted_site)) == ["/", "/x", "/y"]


def test_patterns_choose_addresses_and_one_that_never_ends_is_stopped(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page("/keep/1", "/keep/2", "/other", "/" + "a" * 40 + "!"))
    start = f'<download maxlevel="1"><url>{host}/</url>'
    ask(archive, f"<query>{start}<include>/keep/</include><exclude>2$</exclude></download></query>")
    assert asked(scripted_site) == ["/", "/keep/1"]
    with pytest.raises(UsageError, match="takes too long"):
        ask(archive, f"<query>{start}<include>(a|aa)+$</include></download></query>")


def test_private_addresses_are_refused_where_they_are_not_allowed(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page())
    query = f"<query><download><url>{host}/</url></download><check><url>{host}/</url></check></query>"
    result = ask(archive, query, private=False)
    assert scripted_site.log == []
    assert result.find("download/failure").get("kind") == "forbidden-address"
    assert result.find("check/page").get("outcome") == "refused"


def test_a_cancelled_download_stops_between_pages_and_keeps_what_it_has(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page(*(f"/{number}" for number in range(50))))
    for number in range(50):
        scripted_site.set(f"/{number}", page())
    told = Told()
    told.on_log = lambda line: setattr(told, "stopped", True)
    with pytest.raises(Cancelled):
        ask(archive, f'<query><download maxlevel="1"><url>{host}/</url></download><cleaner/></query>', told)
    assert asked(scripted_site) == ["/"]
    assert archive.stats().versions == 1
    assert [name for _, _, name in told.steps] == ["download"]


def test_a_limit_bounds_the_addresses(archive: Archive, scripted_site: ScriptedSite, host: str) -> None:
    scripted_site.set("/", page(*(f"/{number}" for number in range(50))))
    ask(archive, f'<query><download maxlevel="1" limit="5"><url>{host}/</url></download></query>')
    assert len(asked(scripted_site)) == 5


def test_basic_mode_leaves_pages_at_their_titles_until_a_full_one_comes(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page("/next", title="Chronicle", words="the quick brown fox"))
    scripted_site.set("/next", page(title="Next"))
    start = f'<download maxlevel="1"><url>{host}/</url></download>'
    crawler = f'<crawler mode="{{}}"><url>{host}/</url></crawler>'
    found = '<query><search>"fox"</search><search>"chronicle"</search></query>'
    basic = ask(archive, f"<query>{start}{crawler.format('basic')}<map site='{host}'/></query>")
    assert basic.find("crawler").get("words") is None
    assert len(basic.findall("map//page")) == 2
    assert [step.get("count") for step in ask(archive, found)] == ["0", "1"]
    full = ask(archive, f"<query>{start}{crawler.format('benchmark')}</query>")
    assert float(full.find("crawler").get("words_seconds")) >= 0
    assert [step.get("count") for step in ask(archive, found)] == ["1", "1"]


def test_a_catalogue_on_postgresql_keeps_rules_and_modes_alike(
    tmp_path: Path, scripted_site: ScriptedSite, host: str, new_database: Callable[[], str]
) -> None:
    scripted_site.set("/", page("/a?x=1&menu=2", title="Home", words="the quick brown fox"))
    scripted_site.set("/a?x=1", page(title="Under A"))
    rule = f'<urltransform><varlist base="{host}/a"><var name="x"/></varlist></urltransform>'
    query = f'<query><download maxlevel="1"><url>{host}/</url></download>{rule}<crawler mode="{{}}"><url>{host}/</url>'
    query += f'</crawler><map site="{host}"/><search>"fox"</search></query>'
    settings = replace(QUICK, database=DatabaseSettings(url=new_database()))
    with Archive(tmp_path / "a", settings=settings) as archive:
        basic, full = (ask(archive, query.format(mode)) for mode in ("basic", "full"))
    assert [len(result.findall("map//page")) for result in (basic, full)] == [2, 2]
    assert [result.find("search").get("count") for result in (basic, full)] == ["0", "1"]


def test_basic_mode_takes_nothing_from_pages_that_were_there_before(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page(title="Chronicle", words="the quick brown fox"))
    start = f'<download maxlevel="0"><url>{host}/</url></download>'
    ask(archive, f"<query>{start}</query>")
    ask(archive, f'<query>{start}<crawler mode="basic"><url>{host}/</url></crawler></query>')
    assert ask(archive, '<query><search>"fox"</search></query>').find("search").get("count") == "1"


def test_what_stops_a_commit_in_the_midst_of_a_level_is_told_as_it_is(
    tmp_path: Path, scripted_site: ScriptedSite
) -> None:
    def full(cursor: Cursor, done: list[RecordedCapture]) -> None:
        raise NotReady("the disk is full")

    scripted_site.set("/", page())
    settings = Settings(crawl=CrawlSettings(delay=0.0, commit_every=0.0))
    with Archive(tmp_path / "a", settings=settings) as archive, pytest.raises(NotReady, match="the disk is full"):
        asyncio.run(crawl_levels(archive, [scripted_site.url("/")], CrawlSelection(Scope()), LevelHooks(extend=full)))
    with Archive(tmp_path / "a") as archive:
        assert archive.stats().versions == 0


def test_a_download_is_charged_to_whoever_asked_and_keeps_what_it_fetched(
    tmp_path: Path, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page(*(f"/{number}" for number in range(6))))
    for number in range(6):
        scripted_site.set(f"/{number}", page(title=f"Page {number}"))
    settings = replace(QUICK, serve=replace(ServeSettings(), checks_a_day=3))
    anna = Requester("anna", READ | WRITE, "http")
    query = f'<query><download maxlevel="1"><url>{host}/</url></download></query>'
    with Archive(tmp_path / "a", settings=settings) as archive:
        with pytest.raises(QuotaUsedUp, match="step 1, <download>: 'anna' has used up the 3 checks of today"):
            ask(archive, query, requester=anna)
        recorded = archive.stats().documents
        assert 3 <= recorded < 7
        assert usage_of(archive).spent("anna", "checks", to_millis(archive.clock())) == 3
        # Owners have no limit.
        assert ask(archive, query).find("download") is not None
        assert {"/", *(f"/{number}" for number in range(6))} == set(asked(scripted_site))
        assert archive.stats().documents > recorded


def test_a_step_needs_the_rights_of_whoever_asked_also_when_a_package_makes_it(tmp_path: Path) -> None:
    folder = tmp_path / "packages" / "sly"
    folder.mkdir(parents=True)
    (folder / "query.xsl").write_text(
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
        '<xsl:template match="/"><query><cleaner/></query></xsl:template></xsl:stylesheet>'
    )
    settings = with_packages(tmp_path / "packages")
    sly = '<query package="sly"><anything/></query>'
    with Archive(tmp_path / "a", settings=settings) as archive:
        with pytest.raises(Refused, match="<cleaner> needs more rights"):
            ask(archive, sly, requester=Requester("anna", READ | WRITE, "http"))
        query = parse_job_file(sly.encode(), settings)
        with pytest.raises(Refused, match="<cleaner> needs more rights"):
            refuse_steps(query, READ | WRITE, settings)
        assert ask(archive, sly).find("cleaner").get("jobs") == "0"


def test_a_download_asks_for_nothing_more_after_its_bytes_or_its_time(
    archive: Archive, scripted_site: ScriptedSite, host: str
) -> None:
    scripted_site.set("/", page("/a", "/b", "/c", title="Home"))
    for name in "abc":
        scripted_site.set(f"/{name}", page(title=name))
    query = '<query><download maxlevel="2" {}><url>{}/</url></download></query>'
    result = ask(archive, query.format('max_bytes="1"', host))
    assert (result.find("download").get("fetched"), asked(scripted_site)) == ("1", ["/"])
    ask(archive, query.format('max_bytes="1MiB" max_time="1h"', host))
    assert len(asked(scripted_site)) == 1 + 4
    with pytest.raises(UsageError, match="max_time of <download>"):
        ask(archive, query.format('max_time="soon"', host))

"""Packages: folders that users made, those of other distributions, and the stylesheets of results."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import feedparser
import pytest
from asking import QUICK, Told, Web, ask, demo_web, with_packages
from lxml import etree, html

from letopis.archive import Archive
from letopis.archive.jobs import COMMAND_LINE
from letopis.errors import NotFound, UsageError
from letopis.jobs import JobContext
from letopis.jobs.language.interpreter import run_query
from letopis.jobs.packages import STYLESHEETS, packages, stylesheet_of, transform_result
from letopis.operations.job_files import parse_job_file

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "jobs.md"


def shown(name: str) -> str:
    """A file as the guide shows it."""
    found = re.search(rf"`{re.escape(name)}`:\n\n```xml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found, name
    return found[1]


@dataclass
class Known:
    web: Web
    folder: Path
    host: str


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """A site that was downloaded on two days."""
    folder = tmp_path_factory.mktemp("known") / "a"
    with demo_web(hosts=1, pages=30) as web:
        host = web.world.hosts[0]
        query = f'<query><download maxlevel="5"><url>{host}/</url><exclude>/busy</exclude></download></query>'
        with Archive(folder, settings=QUICK, clock=web.clock) as archive:
            ask(archive, query)
            web.now = web.now.replace(day=20)
            ask(archive, query)
        yield Known(web, folder, host)


def answered(archive: Archive, text: str) -> tuple[bytes, bytes | str | None]:
    """The result of a query with its root, and its stylesheet."""
    query = parse_job_file(text.encode(), archive.settings)
    context = JobContext(archive, archive.settings, Told(), COMMAND_LINE, True, None, archive.clock)
    style = stylesheet_of(query.package, query.xml, archive.settings)
    return b"<result>" + run_query(query, context) + b"</result>", style


def news_folder(place: Path) -> Path:
    """The package of the guide, as a folder."""
    folder = place / "news"
    folder.mkdir(parents=True)
    (folder / "query.xsl").write_text(shown("packages/news/query.xsl"))
    (folder / "query.xsd").write_text(shown("packages/news/query.xsd"))
    (folder / "result.xsl").write_text(shown("packages/news/result.xsl"))
    return folder


def test_the_news_package_of_the_guide_turns_a_site_into_a_map_diff_and_rss(known: Known, tmp_path: Path) -> None:
    news_folder(tmp_path / "packages")
    settings = with_packages(tmp_path / "packages")
    with Archive(known.folder, settings=settings, clock=known.web.clock) as archive:
        result, stylesheet = answered(archive, f'<query package="news"><news site="{known.host}"/></query>')
        mapped = ask(archive, f'<query><mapdiff site="{known.host}" from="7 days ago"/></query>')
        assert stylesheet is not None
        feed = feedparser.parse(transform_result(result, stylesheet))
    events = mapped.findall("mapdiff/event")
    appeared = [event for event in events if event.get("event") in ("appeared", "renamed", "moved", "changed")]
    assert feed.bozo == 0
    assert feed.version == "rss20"
    assert len(feed.entries) == len(appeared) > 0
    assert {entry.link for entry in feed.entries} == {event.get("to") or event.get("url") for event in appeared}
    with pytest.raises(UsageError, match=r"line 1: Element 'news'.*'site'"):
        parse_job_file(b'<query package="news"><news/></query>', settings)


def test_packages_of_all_origins_are_listed(tmp_path: Path) -> None:
    folder = news_folder(tmp_path / "packages")
    (folder / "package.toml").write_text('description = "What is new on a site"\n')
    known = packages(with_packages(tmp_path / "packages"))
    assert list(known) == ["downloader", "sengine", "mapgenerator", "news"]
    assert known["news"].description == "What is new on a site"
    assert known["news"].origin == str(folder)


def test_packages_lie_in_the_archive_unless_a_setting_says_otherwise(tmp_path: Path) -> None:
    news_folder(tmp_path / "a" / "packages")
    with Archive(tmp_path / "a") as archive:
        assert "news" in packages(archive.settings)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "has no query.xsl"),
        ({"query.xsl": "<broken"}, "query.xsl of package 'mine': .*cannot be used"),
        ({"query.xsl": "<a/>"}, "cannot be used"),
        ({"query.xsl": "GOOD", "query.xsd": "<a/>"}, "is not a usable XML Schema"),
        ({"query.xsl": "GOOD", "package.toml": "a = "}, "not valid TOML"),
        ({"query.xsl": "GOOD", "package.toml": "colour = 'red'"}, "'colour' in .* has no meaning"),
        ({"query.xsl": "GOOD", "package.toml": "query = '../query.xsl'"}, "must be the plain name of a file"),
        ({"query.xsl": "GOOD", "package.toml": "result = 'absent.xsl'"}, "is named in package.toml but does not exist"),
        ({"query.xsl": "WRONG"}, "the output of query.xsl of package 'mine', line 2: <dance> is not a step"),
    ],
)
def test_a_package_that_cannot_be_used_says_why(files: dict[str, str], told: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text.replace("GOOD", sheet("<cleaner/>")).replace("WRONG", sheet("<dance/>")))
    with pytest.raises(UsageError, match=told):
        parse_job_file(b'<query package="mine"><anything/></query>', with_packages(tmp_path))


def sheet(steps: str) -> str:
    return (
        '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">'
        f'<xsl:template match="/"><query>{steps}</query></xsl:template></xsl:stylesheet>'
    )


def test_unknown_doubled_and_misnamed_packages_are_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="unknown package 'nowhere'; choose one of downloader"):
        parse_job_file(b'<query package="nowhere"><x/></query>', with_packages(tmp_path))
    shutil.copytree(news_folder(tmp_path / "first"), tmp_path / "second" / "sengine")
    with pytest.raises(UsageError, match="there are two packages 'sengine'"):
        packages(with_packages(tmp_path / "second"))
    (tmp_path / "third" / "My Package").mkdir(parents=True)
    with pytest.raises(UsageError, match="'My Package' is not a package name"):
        packages(with_packages(tmp_path / "third"))


def test_a_package_of_another_distribution_does_its_own_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "site"
    facts = place / "greeter-1.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[letopis.packages]\ngreet = greeter_of_a_test:perform\n")
    (place / "greeter_of_a_test.py").write_text(
        "def perform(query, around):\n    return f'<hello to=\"{around.user}\"/>'.encode()\n"
    )
    monkeypatch.syspath_prepend(place)
    with Archive(tmp_path / "a") as archive:
        assert packages(archive.settings)["greet"].description == "provided by greeter"
        assert ask(archive, '<query package="greet"><anybody/></query>').find("hello").get("to") == "tester"


def test_the_stylesheet_of_a_result_is_the_querys_own_else_its_packages(tmp_path: Path) -> None:
    folder = news_folder(tmp_path / "packages")
    (folder / "other.xsl").write_text(sheet("<other/>"))
    settings = with_packages(tmp_path / "packages")

    def chosen(attributes: str) -> bytes | str | None:
        query = parse_job_file(f"<query {attributes}><news site='x.example'/></query>".encode(), settings)
        return stylesheet_of(query.package, query.xml, settings)

    assert chosen("package='news'") == (folder / "result.xsl").read_bytes()
    assert chosen("package='news' xslt='other.xsl'") == (folder / "other.xsl").read_bytes()
    assert chosen("package='news' xslt='text'") == "text"
    with pytest.raises(UsageError, match="xslt of <query>: unknown stylesheet 'absent'"):
        chosen("package='news' xslt='absent'")
    (folder / "other.xsl").unlink()
    query = parse_job_file(b"<query package='news' xslt='other.xsl'><news site='x.example'/></query>")
    with pytest.raises(UsageError, match=r"unknown stylesheet 'other\.xsl' in package 'news'"):
        stylesheet_of(query.package, query.xml, settings)
    assert stylesheet_of("downloader", b"<query><cleaner/></query>", settings) is None


def test_the_packaged_stylesheets_make_pages_feeds_and_text(known: Known) -> None:
    with Archive(known.folder, settings=QUICK, clock=known.web.clock) as archive:
        steps = (
            f'<map site="{known.host}"/><mapdiff site="{known.host}" from="7 days ago"/><broken site="{known.host}"/>'
        )
        result, _ = answered(archive, f"<query>{steps}</query>")
    found = etree.fromstring(result)
    made = {name: transform_result(result, name) for name in STYLESHEETS}

    listed = html.fromstring(made["map-page"])
    assert len(listed.findall(".//li")) == len(list(found.find("map").iter("page")))
    assert made["map-page"].startswith(b"<!DOCTYPE html")

    namespace = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    places = [loc.text for loc in etree.fromstring(made["sitemap"]).iter(f"{namespace}loc")]
    assert places == [page.get("url") for page in found.find("map").iter("page")]

    feed = feedparser.parse(made["news-rss"])
    assert (feed.bozo, len(feed.entries)) == (0, len(found.findall("mapdiff/event")))
    assert feed.entries[0].published_parsed[:3] == tuple(known.web.now.timetuple()[:3])

    table = html.fromstring(made["broken-page"])
    assert len(table.findall(".//tbody/tr")) == len(found.findall("broken/link")) > 0

    assert made["text"].decode().count("\n    page") + made["text"].decode().count("\n      page") > 10


def test_stylesheets_take_results_that_lack_what_they_show() -> None:
    for name in STYLESHEETS:
        assert transform_result(b'<result state="failed"><error>no</error></result>', name)

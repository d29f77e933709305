"""A page with what it refers to, without a browser: which resources, under whose rules, tied by which set."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis import Archive, Monitor
from letopis.config import CaptureSettings, CrawlSettings, MonitorSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, crawl
from letopis.look.resources import PageResources, RecentResources, requisite_kind
from letopis.model import Link, LinkType, Outcome, Request, Response

PAGE = b"""<!doctype html><link rel=stylesheet href=/style.css><link rel=canonical href=/other>
<link rel=icon href=/icon.png><img src=/a.png srcset="/b.png 2x"><script src=/app.js></script>
<video src=/film.mp4></video><iframe src=/frame.html></iframe><a href=/next.html>next</a>"""


def served(site: ScriptedSite) -> str:
    site.set("/style.css", b"@import '/more.css'; p { background: url(/back.png) }", Content_Type="text/css")
    site.set("/more.css", b"@font-face { src: url(/font.woff2) }", Content_Type="text/css")
    site.set("/frame.html", b"<img src=/inside.png>")
    for name in ("icon", "a", "b", "back", "inside"):
        site.set(f"/{name}.png", b"picture " + name.encode(), Content_Type="image/png")
    site.set("/font.woff2", b"font", Content_Type="font/woff2")
    site.set("/app.js", b"go()", Content_Type="text/javascript", ETag='"1"', validates=True)
    site.set("/film.mp4", b"film" * 100, Content_Type="video/mp4")
    site.set("/next.html", b"<img src=/a.png>next page")
    return site.set("/", PAGE)


@pytest.fixture
async def archive(tmp_path: Path) -> AsyncIterator[Archive]:
    settings = Settings(crawl=CrawlSettings(delay=0), monitor=MonitorSettings(min_interval=0))
    with Archive(tmp_path / "a", settings=settings) as opened:
        yield opened


def names(archive: Archive, url: str) -> set[str]:
    (found,) = archive.sets.of(url)[-1:]
    return {member.url.rpartition("/")[2] for member in archive.sets.members(found)}


EVERYTHING = {
    "style.css", "more.css", "icon.png", "a.png", "b.png", "back.png", "app.js", "film.mp4", "frame.html", "font.woff2",
    "inside.png",
}  # fmt: skip


def checked(archive: Archive, url: str, **options: bool) -> None:
    with Monitor(archive) as monitor:
        monitor.look([url], monitor.options._replace(now=True, requisites=True, **options))


def test_a_check_with_requisites_is_a_set_of_all_that_the_page_refers_to(
    archive: Archive, scripted_site: ScriptedSite
) -> None:
    url = served(scripted_site)
    checked(archive, url)
    assert names(archive, url) == EVERYTHING
    assert archive.get(scripted_site.url("/back.png")).body == b"picture back"
    assert "/other" not in {path for _, path, _ in scripted_site.log}


def test_a_second_look_asks_with_conditions_and_costs_no_second_copy(
    archive: Archive, scripted_site: ScriptedSite
) -> None:
    url = served(scripted_site)
    checked(archive, url)
    before = archive.stats().contents
    checked(archive, url)
    assert archive.stats().contents == before
    assert [one.members for one in archive.sets.of(url)] == [len(EVERYTHING)] * 2
    asked = [fields.get("if-none-match") for _, path, fields in scripted_site.log if path == "/app.js"]
    assert asked == [None, '"1"']
    assert [check.outcome for check in archive.history(scripted_site.url("/app.js"))] == [
        Outcome.NEW, Outcome.UNCHANGED,
    ]  # fmt: skip


def test_a_page_that_stayed_the_same_is_whole_as_well(archive: Archive, scripted_site: ScriptedSite) -> None:
    served(scripted_site)
    url = scripted_site.set("/", PAGE, ETag='"p"', validates=True)
    checked(archive, url)
    checked(archive, url)
    assert archive.history(url)[-1].status == 304
    assert names(archive, url) == EVERYTHING


@pytest.mark.parametrize(("take", "left"), [(("images",), "app.js"), (("scripts", "styles"), "film.mp4")])
def test_settings_say_what_is_taken(
    tmp_path: Path, scripted_site: ScriptedSite, take: tuple[str, ...], left: str
) -> None:
    url = served(scripted_site)
    with Archive(tmp_path / "b", settings=Settings(capture=CaptureSettings(take=take))) as archive:
        checked(archive, url)
        assert left not in names(archive, url)
        assert names(archive, url)


def test_resources_are_bounded_in_number_and_size(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    with Archive(tmp_path / "b", settings=Settings(capture=CaptureSettings(resources=4, media_bytes=100))) as archive:
        checked(archive, url)
        assert len(names(archive, url)) == 4
    with Archive(tmp_path / "c", settings=Settings(capture=CaptureSettings(media_bytes=100))) as archive:
        checked(archive, url)
        assert archive.history(scripted_site.url("/film.mp4"))[-1].outcome is Outcome.TOO_LARGE


async def test_a_crawl_asks_once_for_what_its_pages_share(archive: Archive, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    options = CrawlOptions((url,), requisites=True, limits=CrawlLimits(once=True))
    await crawl(archive, options)
    asked = [path for _, path, _ in scripted_site.log]
    assert asked.count("/a.png") == 1
    assert names(archive, scripted_site.url("/next.html")) == {"a.png"}
    assert names(archive, url) == EVERYTHING
    first, second = (archive.sets.of(one)[0] for one in (url, scripted_site.url("/next.html")))
    picture = next(one for one in archive.sets.members(first) if one.url.endswith("/a.png"))
    assert archive.sets.members(second) == (picture,)


async def test_robots_txt_holds_for_each_resource_of_a_crawl(archive: Archive, scripted_site: ScriptedSite) -> None:
    url = served(scripted_site)
    scripted_site.set("/robots.txt", b"User-agent: *\nDisallow: /film.mp4\n", Content_Type="text/plain")
    await crawl(archive, CrawlOptions((url,), depth=0, requisites=True, limits=CrawlLimits(once=True)))
    assert "/film.mp4" not in {path for _, path, _ in scripted_site.log}
    assert names(archive, url) == EVERYTHING - {"film.mp4"}
    assert archive.history(scripted_site.url("/film.mp4"))[-1].failure == "robots"


async def test_a_host_gets_its_pauses_between_resources(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    url = scripted_site.set("/", b"<img src=/1.png><img src=/2.png><img src=/3.png>")
    with Archive(tmp_path / "b", settings=Settings(crawl=CrawlSettings(delay=0.2))) as archive:
        await crawl(archive, CrawlOptions((url,), depth=0, requisites=True, limits=CrawlLimits(once=True)))
    times = [
        at for at, (_, path, _) in zip(scripted_site.times, scripted_site.log, strict=True) if path != "/robots.txt"
    ]
    assert len(times) == 4
    assert min(later - before for before, later in itertools.pairwise(times)) >= 0.19


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        (Link("http://a/x", LinkType.LINK, rel="alternate stylesheet"), "styles"),
        (Link("http://a/x", LinkType.LINK, rel="canonical"), ""),
        (Link("http://a/x.ico", LinkType.LINK, rel="shortcut icon"), "images"),
        (Link("http://a/x.woff2?v=1", LinkType.CSS), "fonts"),
        (Link("http://a/x.PNG", LinkType.CSS), "images"),
        (Link("http://a/x.css", LinkType.CSS), "styles"),
        (Link("http://a/x", LinkType.A), ""),
        (Link("http://a/x", LinkType.IMG, rel="cite"), ""),
    ],
)
def test_references_are_of_a_kind(link: Link, kind: str) -> None:
    assert requisite_kind(link) == kind


def test_recent_resources_grow_old_and_give_way(archive: Archive) -> None:
    clock = [0.0]
    recent = RecentResources(10, lambda: clock[0])
    now = archive.clock()
    answers = [Response(f"http://a/{n}", "", 200, (), bytes(30 << 20), now) for n in range(3)]
    for one in answers:
        recent.add(one, now)
    assert [recent.get(one.url) is not None for one in answers] == [False, True, True]
    clock[0] = 11.0
    assert recent.get("http://a/2") is None
    assert RecentResources(0).get("http://a/2") is None


@pytest.mark.parametrize(("ip", "allowed"), [("93.184.216.34", False), ("127.0.0.1", True), ("192.168.1.5", True)])
async def test_a_public_page_has_no_business_with_private_addresses(archive: Archive, ip: str, allowed: bool) -> None:
    asked: list[Request] = []

    async def ask(request: Request) -> Response:
        asked.append(request)
        return Response(request.url, request.url, 200, (), b"x", archive.clock())

    page = Response("http://public.example/", "http://public.example/", 200, (), b"", archive.clock(), ip=ip)
    resources = PageResources(archive, page, ask, RecentResources(0), private_ok=True)
    await resources.ask(Request("http://10.0.0.1/secret"))
    assert [request.private_ok for request in asked] == [allowed]


async def test_what_a_page_posts_is_kept_by_method_and_body(archive: Archive) -> None:
    async def ask(request: Request) -> Response:
        return Response(request.url, request.url, 200, (), request.body, archive.clock())

    page = Response("http://a.example/", "http://a.example/", 200, (), b"", archive.clock())
    resources = PageResources(archive, page, ask, RecentResources(0), private_ok=True)
    form = (("Content-Type", "application/x-www-form-urlencoded"),)
    for body in (b"q=1", b"q=2"):
        await resources.ask(Request("http://a.example/find", "POST", form, body=body))
    await resources.ask(Request("http://a.example/find", "PUT"))
    assert [one.url for one in resources.loaded().resources] == [
        "http://a.example/find?__wb_method=POST&q=1",
        "http://a.example/find?__wb_method=POST&q=2",
        "http://a.example/find?__wb_method=PUT",
    ]

"""Pages that the archive has before a crawl first meets them: their links are followed like those of any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.cli.main import main


def three_pages(site: ScriptedSite, **manner: object) -> str:
    site.set("/a", b"<p>a <a href='/b'>b</a>", **manner)  # type: ignore[arg-type]
    site.set("/b", b"<p>b", **manner)  # type: ignore[arg-type]
    return site.set("/", b"<p>home <a href='/a'>a</a>", **manner)  # type: ignore[arg-type]


def asked(site: ScriptedSite) -> list[str]:
    return [path for _, path, _ in site.log if path in ("/", "/a", "/b")]


def crawl(folder: Path, seed: str, *words: str) -> None:
    base = ["--archive", str(folder / "archive"), "-q", "crawl", seed, "--once", "--delay", "0"]
    assert main([*base, *words]) == 0


@pytest.mark.parametrize("manner", [{}, {"validates": True, "ETag": '"1"'}], ids=["same bytes", "not modified"])
def test_a_page_that_was_checked_before_leads_a_crawl_on(
    tmp_path: Path, scripted_site: ScriptedSite, manner: dict[str, object]
) -> None:
    seed = three_pages(scripted_site, **manner)
    assert main(["--archive", str(tmp_path / "archive"), "-q", "check", seed]) == 0
    crawl(tmp_path, seed)
    assert asked(scripted_site) == ["/", "/", "/a", "/b"]


@pytest.mark.parametrize("agents", ["1", "2"])
def test_pages_on_the_way_that_were_checked_before_lead_on_too(
    tmp_path: Path, scripted_site: ScriptedSite, agents: str
) -> None:
    seed = three_pages(scripted_site)
    for url in (scripted_site.url("/a"), scripted_site.set("/elsewhere", b"<p>nobody links here")):
        assert main(["--archive", str(tmp_path / "archive"), "-q", "check", url]) == 0
    crawl(tmp_path, seed, "--agents", agents)
    assert asked(scripted_site) == ["/a", "/", "/a", "/b"]
    assert [path for _, path, _ in scripted_site.log].count("/elsewhere") == 1
    crawl(tmp_path, seed, "--agents", agents)
    assert asked(scripted_site) == ["/a", "/", "/a", "/b"]


def test_a_wider_crawl_goes_on_from_pages_that_stayed_the_same(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    seed = three_pages(scripted_site, validates=True, ETag='"1"')
    crawl(tmp_path, seed, "--depth", "1")
    assert asked(scripted_site) == ["/", "/a"]
    crawl(tmp_path, seed, "--revisit-now")
    assert sorted(asked(scripted_site)) == ["/", "/", "/a", "/a", "/b"]


def test_a_page_that_leads_nowhere_by_its_own_wish_does_not(tmp_path: Path, scripted_site: ScriptedSite) -> None:
    seed = three_pages(scripted_site)
    scripted_site.set("/", b"<meta name=robots content=nofollow><a href='/a'>a</a>")
    assert main(["--archive", str(tmp_path / "archive"), "-q", "check", seed]) == 0
    crawl(tmp_path, seed)
    assert asked(scripted_site) == ["/", "/"]


def test_a_crawl_that_has_nothing_to_do_says_what_could_be_done(
    tmp_path: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = three_pages(scripted_site)
    crawl(tmp_path, seed)
    capsys.readouterr()
    assert main(["--archive", str(tmp_path / "archive"), "crawl", seed, "--once", "--delay", "0"]) == 0
    assert "nothing was due; fetch now with 'letopis crawl URL --revisit-now'" in capsys.readouterr().err
    assert asked(scripted_site) == ["/", "/a", "/b"]


@pytest.fixture
def old_site() -> Iterator[ScriptedSite]:
    site = ScriptedSite()
    yield site
    site.close()


@pytest.mark.parametrize("agents", ["1", "2"])
def test_a_site_that_moved_to_another_host_is_crawled_there(
    tmp_path: Path, scripted_site: ScriptedSite, old_site: ScriptedSite, agents: str
) -> None:
    seed = old_site.redirect("/", three_pages(scripted_site), 301)
    crawl(tmp_path, seed, "--agents", agents)
    assert sorted(asked(scripted_site)) == ["/", "/a", "/b"]
    scripted_site.set("/b", b"<p>b <a href='/c'>c</a>")
    scripted_site.set("/c", b"<p>c <a href='http://127.0.0.3:9/'>elsewhere</a>")
    crawl(tmp_path, seed, "--revisit-now", "--agents", agents)
    assert [path for _, path, _ in scripted_site.log].count("/c") == 1


def test_pages_behind_a_seed_that_leads_elsewhere_are_still_chosen_by_pattern(
    tmp_path: Path, scripted_site: ScriptedSite, old_site: ScriptedSite
) -> None:
    seed = old_site.redirect("/", three_pages(scripted_site))
    crawl(tmp_path, seed, "--exclude", "/b$")
    assert sorted(asked(scripted_site)) == ["/", "/a"]


def test_only_seeds_take_a_crawl_to_another_host(
    tmp_path: Path, scripted_site: ScriptedSite, old_site: ScriptedSite
) -> None:
    elsewhere = three_pages(scripted_site)
    old_site.redirect("/away", elsewhere)
    crawl(tmp_path, old_site.set("/", b"<a href='/away'>away</a>"))
    assert [path for _, path, _ in old_site.log if path in ("/", "/away")] == ["/", "/away"]
    assert asked(scripted_site) == []


def test_a_crawl_tells_what_kept_it_from_pages(
    tmp_path: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted_site.set("/robots.txt", b"User-agent: *\nDisallow: /a\n", Content_Type="text/plain")
    seed = scripted_site.set("/", b"<a href='/a'>a</a> <a href='/gone'>gone</a>")
    assert main(["--archive", str(tmp_path / "archive"), "crawl", seed, "--once", "--delay", "0"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("2 pages in ")
    assert said.rstrip().endswith("1 failed (404 1); 1 not asked (robots 1)")
    alone = ["--archive", str(tmp_path / "alone"), "crawl", scripted_site.url("/a"), "--once", "--delay", "0"]
    assert main(alone) == 0
    assert capsys.readouterr().err == "no due page was fetched; see 'letopis history URL'\n"


def test_the_kinds_of_failures_add_up_to_all_of_them(
    tmp_path: Path, scripted_site: ScriptedSite, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = (400, 402, 403, 404, 405, 410)
    for status in kinds:
        scripted_site.set(f"/{status}", b"", status)
    seed = scripted_site.set("/", "".join(f"<a href='/{status}'>x</a>" for status in kinds).encode())
    assert main(["--archive", str(tmp_path / "archive"), "crawl", seed, "--once", "--delay", "0"]) == 0
    said = capsys.readouterr().out
    assert said.rstrip().endswith(" 1, others 2)"), said
    assert "6 failed (" in said

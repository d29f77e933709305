"""Pages that the archive has before a crawl first meets them: their links are followed like those of any other."""

from __future__ import annotations

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
    assert "nothing was due; --revisit-now asks at once" in capsys.readouterr().err
    assert asked(scripted_site) == ["/", "/a", "/b"]

"""A crawl about some key words leaves chains of pages that are about something else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.config import CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, CrawlSelection, LevelHooks, crawl, crawl_levels
from letopis.urls.scope import Scope, ScopeKind

SETTINGS = Settings(crawl=CrawlSettings(delay=0.0, keywords=("castle",), robots=False, sitemaps=False))
ABOUT = "<title>The castle</title><p>" + "The castle of the town. " * 20


def chained_site(site: ScriptedSite) -> str:
    """A good page, behind it a chain of others, and one that is named in a link."""
    for number in range(1, 6):
        links = f"<a href=/off{number + 1}>on</a>" + ("<a href=/named>to the castle</a>" if number == 2 else "")
        site.set(f"/off{number}", f"<title>Recipes</title><p>{'cake and bread ' * 2000}{links}".encode())
    site.set("/named", ABOUT.encode())
    return site.set("/", f"{ABOUT}<a href=/off1>on</a>".encode())


@pytest.mark.parametrize("by_levels", [False, True])
def test_links_are_followed_one_page_beyond_the_last_good_one(
    tmp_path: Path, scripted_site: ScriptedSite, by_levels: bool
) -> None:
    seed = chained_site(scripted_site)
    with Archive(tmp_path / "a", settings=SETTINGS) as archive:
        if by_levels:
            scope = CrawlSelection(Scope(ScopeKind.HOST, (seed,)), 9)
            asyncio.run(crawl_levels(archive, [seed], scope, LevelHooks(), private_ok=True))
        else:
            asyncio.run(crawl(archive, CrawlOptions((seed,), limits=CrawlLimits(once=True))))
    asked = {path for _, path, _ in scripted_site.log}
    assert asked == {"/", "/off1", "/off2", "/named"}


def linked_site(site: ScriptedSite) -> str:
    """Forty pages that the home page names, each with a page of its own, and one that all of them link to."""
    names = [f"{number:02}" for number in range(40)]
    for name in names:
        site.set(f"/near-{name}", f"<a href=/much-linked>all</a><a href=/far-{name}>own</a>".encode())
        site.set(f"/far-{name}", b"")
    site.set("/much-linked", b"")
    return site.set("/", "".join(f"<a href=/near-{name}>{name}</a>" for name in names).encode())


@pytest.mark.parametrize("order", ["breadth", "rank"])
def test_pages_that_links_say_most_for_come_first_where_that_is_asked_for(
    tmp_path: Path, scripted_site: ScriptedSite, order: Literal["breadth", "rank"]
) -> None:
    seed = linked_site(scripted_site)
    chosen = CrawlSettings(delay=0.02, commit_every=0.0, robots=False, order=order)
    with Archive(tmp_path / "a", settings=Settings(crawl=chosen)) as archive:
        asyncio.run(crawl(archive, CrawlOptions((seed,), limits=CrawlLimits(once=True))))
    asked = [path for _, path, _ in scripted_site.log]
    nearer = sum(path.startswith("/near") for path in asked[: asked.index("/much-linked")])
    assert len(asked) == len(set(asked)) == 82
    assert nearer == 40 if order == "breadth" else nearer < 40

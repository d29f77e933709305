"""A crawl about some key words leaves chains of pages that are about something else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scripted_site import ScriptedSite

from letopis.archive import Archive
from letopis.config import CrawlSettings, Settings
from letopis.crawl import CrawlLimits, CrawlOptions, CrawlSelection, LevelHooks, crawl, crawl_levels
from letopis.urls import Scope, ScopeKind

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

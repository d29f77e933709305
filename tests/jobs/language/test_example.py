"""The complete example of the document, run against the simulated web, and the questions after it."""

from __future__ import annotations

from pathlib import Path

from asking import QUICK, Told, ask, demo_web

from letopis.archive import Archive
from letopis.model import to_millis

EXAMPLE = Path(__file__).with_name("two-sites.xml")


def test_two_sites_are_downloaded_indexed_and_answer_map_ranks_and_neighbours(tmp_path: Path) -> None:
    told = Told()
    with demo_web(hosts=3) as web, Archive(tmp_path / "a", settings=QUICK, clock=web.clock) as archive:
        first, second, third = web.world.hosts
        text = EXAMPLE.read_text().replace("FIRST", first).replace("SECOND", second)
        result = ask(archive, text, told)
        steps = [child.tag for child in result]
        assert steps == ["copyfromcache", "download", "copytocache", "urltransform", "crawler"]
        assert [name for _, _, name in told.steps] == steps

        download = result.find("download")
        assert [level.get("number") for level in download.iter("level")][:2] == ["0", "1"]
        assert len(list(download.iter("level"))) <= 5
        living = {url for host in (first, second) for url in web.world.urls(host) if _alive(web.world, url, web.now)}
        stored = {row.url for row in archive.catalog.resources.all() if row.versions}
        assert living <= stored
        assert not [url for url in stored if third in url]
        assert f"http://{first}/index.html" not in {row.url for row in archive.catalog.resources.all()}
        assert [page.get("state") for page in result.find("crawler")] == ["indexed", "indexed"]

        later = ask(
            archive,
            f'<query package="mapgenerator"><map site="{first}"/><pagerank coefficient="0.85" site="{first}"/>'
            '<wordprefix between="5">katedra</wordprefix></query>',
        )
        mapped = {page.get("url") for page in later.find("map").iter("page")}
        assert {url for url in living if first in url} <= mapped
        ranks = [float(page.get("rank")) for page in later.find("pagerank")]
        assert ranks == sorted(ranks, reverse=True)
        assert 0.8 < sum(ranks) / len(ranks) <= 1.0
        near = [row.get("word") for row in later.find("wordprefix")]
        assert {"informatika", "matematika", "fyzika"} <= set(near[:5])

        again = ask(archive, text)
        assert int(again.find("copyfromcache").get("pages")) >= len(stored)
        assert int(again.find("download").get("new")) == 0
        assert int(again.find("download").get("fetched")) == int(download.get("fetched"))


def _alive(world, url, now) -> bool:  # type: ignore[no-untyped-def]
    plan = world.plan(url)
    return plan.born <= to_millis(now) < min(plan.dies, plan.moves)

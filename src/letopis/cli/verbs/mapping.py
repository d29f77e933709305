"""Verbs that answer from links: map (and map diff), links, broken, rank. All as of any date."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import click

from letopis.archive import Archive
from letopis.archive.spreading import Spread, tasks_at_once
from letopis.cli.cluster import CLUSTER, spread_over, use_cluster
from letopis.cli.cluster import cluster as cluster_at
from letopis.cli.context import Given, verb
from letopis.cli.files import read_file, write_out
from letopis.cli.progress import Progress
from letopis.errors import UsageError
from letopis.graph import (
    MAP_FORMATS,
    Graph,
    LinkIndex,
    Ranked,
    SiteMap,
    Snapshot,
    broken_links,
    flow_on,
    keep_ranks,
    links_asked,
    rank_rows,
    rank_site,
    report,
    site_difference,
    site_map,
    sitemap_files,
    transform,
)
from letopis.model import to_millis
from letopis.urls import site

_AT = click.option("--at", metavar="TIME", help="As of this time; default: now.")


@contextmanager
def _graph(given: Given) -> Iterator[tuple[Archive, Graph]]:
    """The links of the archive, brought up to date first, the pages read here or by a cluster that sees them."""
    with given.open(create=False) as archive, spread_over(archive.settings, where_shared=True) as spread:
        index = LinkIndex(archive)
        with Progress("versions", quiet=given.quiet) as bar:
            _catch_up(archive, index, spread, bar)
        yield archive, index.graph()


def _catch_up(archive: Archive, index: LinkIndex, spread: Spread | None, bar: Progress) -> None:
    if spread is None:
        index.catch_up(bar.show)
    else:
        # Loaded late on purpose: pages are mostly read already, and their parsers take a while to start.
        from letopis.graph.prereading import catch_up_with  # noqa: PLC0415

        catch_up_with(spread, archive, index, bar.show)


def _millis(archive: Archive, moment: datetime | None) -> int:
    return to_millis(moment or archive.clock())


@verb(
    "map",
    "letopis map example.org",
    "letopis map example.org --at 2024-01-31 --format html > map.html",
    "letopis map example.org --format sitemap -o sitemap.xml",
    "letopis map example.org --xslt mine.xsl",
    "letopis map example.org --cluster tcp://scheduler.example:8786",
    "letopis map diff example.org 2024-01-01 2024-02-01",
)
@click.argument("words", nargs=-1, required=True, metavar="SITE | diff SITE T1 T2")
@_AT
@click.option("--depth", type=click.IntRange(min=0), help="Levels below the home page.")
@click.option(
    "--format", "form", type=click.Choice(list(MAP_FORMATS)), default="text", show_default=True, help="How to show it."
)
@click.option("--xslt", type=click.Path(path_type=Path), metavar="FILE", help="Turn the XML into what you like.")
@click.option("--all", "errors", is_flag=True, help="Show pages that answer with an error too.")
@click.option("--report", "findings", is_flag=True, help="Orphans, redirect chains, duplicates and depths instead.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="Write to a file.")
@CLUSTER
def map_verb(
    given: Given, words: tuple[str, ...], at: str | None, depth: int | None, form: str, xslt: Path | None,
    errors: bool, findings: bool, target: Path | None, cluster: str | None,
) -> None:  # fmt: skip
    """Show the hierarchical map of SITE, or what happened to it between two times.

    A page hangs under the first page, breadth first from the home page, that links to it.
    """
    use_cluster(given, cluster)
    if words[0] == "diff" and len(words) == 4:
        _show_difference(given, *words[1:])
        return
    if len(words) != 1 or words == ("diff",):
        raise UsageError("write 'letopis map SITE' or 'letopis map diff SITE T1 T2'")
    form = "xml" if xslt else "json" if given.as_json and form == "text" else form
    depth = MAP_FORMATS[form].depth if depth is None else depth
    with _graph(given) as (archive, graph):
        found = site_map(graph, words[0], _millis(archive, given.moment(at)), depth=depth, errors=errors)
        if findings:
            given.output.rows([row._asdict() for row in report(found)], ("finding", "detail", "urls"))
        else:
            _write_map(given, found, form, xslt, target)


def _write_map(given: Given, found: SiteMap, form: str, xslt: Path | None, target: Path | None) -> None:
    if form == "sitemap" and target is not None:
        for file in sitemap_files(found, target.name):
            write_out(given, file.text.encode(), target.with_name(file.name))
        return
    data = "".join(MAP_FORMATS[form].write(found)).encode("utf-8", "replace")
    write_out(given, transform(data, read_file(xslt)) if xslt else data, target)


def _show_difference(given: Given, where: str, first: str, second: str) -> None:
    with _graph(given) as (archive, graph):
        times = (_millis(archive, given.moment(text)) for text in (first, second))
        rows = site_difference(graph, where, *times)
    given.output.rows([row.row() for row in rows], ("event", "url", "title", "to", "before"))


@verb(
    "links",
    "letopis links https://example.org/",
    "letopis links https://example.org/ --in --at 2024-01-31 --json",
    "letopis links example.org",
)
@click.argument("url", metavar="URL|SITE")
@click.option("--in", "inward", is_flag=True, help="Links that lead to it.")
@click.option("--out", "outward", is_flag=True, help="Links that stand on it (the default).")
@_AT
def links_verb(given: Given, url: str, inward: bool, outward: bool, at: str | None) -> None:
    """List the links of a page, the links to it, or all links of a site."""
    with _graph(given) as (archive, graph):
        time = _millis(archive, given.moment(at))
        rows = links_asked(graph, url, time, inward=inward, outward=outward)
    given.output.rows([row._asdict() for row in rows], ("source", "target", "type", "text"))


@verb("broken", "letopis broken example.org", "letopis broken example.org --at 2024-01-31 --json")
@click.argument("where", metavar="SITE")
@_AT
def broken_verb(given: Given, where: str, at: str | None) -> None:
    """List links of SITE that lead to an error: where they stand, since when, when it was last good."""
    name = site(where)
    with _graph(given) as (archive, graph):
        rows = [row._asdict() for row in broken_links(graph.as_of(_millis(archive, given.moment(at)), name), name)]
    given.output.rows(rows, ("source", "target", "status", "since", "text", "last_good"))


@verb(
    "rank", "letopis rank example.org --top 20", "letopis rank --at 2024-01-31", "letopis rank example.org --external"
)
@click.argument("where", metavar="[SITE]", required=False)
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the N highest.")
@click.option("--external", is_flag=True, help="Rank the addresses on other hosts that the pages link to as well.")
@CLUSTER
@_AT
def rank_verb(
    given: Given, where: str | None, top: int | None, external: bool, cluster: str | None, at: str | None
) -> None:
    """Rank pages by the links between them (PageRank, 0.85, mean about 1).

    The ranks of all pages as of now are kept: search puts well-linked pages first with them.
    """
    given.set("cluster.address", cluster)
    name = site(where) if where else None
    with _graph(given) as (archive, graph):
        moment = graph.as_of(_millis(archive, given.moment(at)), name)
        ranked = _ranked(given, moment, name, external)
        rows = rank_rows(moment, ranked, top)
        if name is None and at is None and not external:
            keep_ranks(archive, moment, ranked)
    given.output.rows([row._asdict() for row in rows], ("rank", "url"))


def _ranked(given: Given, moment: Snapshot, name: str | None, external: bool) -> Ranked:
    """Here, or with the links spread over a cluster."""
    address = given.settings().cluster.address
    if not address:
        return rank_site(moment, name, external=external)
    with cluster_at(address) as client:
        return rank_site(moment, name, external=external, make_flow=flow_on(client, tasks_at_once(client)))

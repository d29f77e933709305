"""Verbs that answer from words: search, near, when, categories; and duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from letopis.archive import Archive
from letopis.archive.cluster import spread_over
from letopis.cli.cluster import CLUSTER_OPTION, use_cluster
from letopis.cli.context import CliContext, verb
from letopis.cli.output import ProgressLine
from letopis.errors import UnknownUrl, UsageError
from letopis.index.near_duplicates import duplicates_in_site, duplicates_of_page
from letopis.index.query_language import WordQuery, parse_word_query
from letopis.index.search_ranking import SearchHit, hit_row
from letopis.index.search_results import project_resources, search, search_facets
from letopis.index.word_analysis import PageCategory, nearby_words, phrase_lifetime, site_categories
from letopis.index.word_index import WordIndex
from letopis.model import BlockKind, rfc3339
from letopis.urls import parse_user_url

_AT = click.option("--at", metavar="TIME", help="As of this time; default: now.")
_SITE = click.option("--site", "sites", multiple=True, metavar="SITE", help="Only this host or the host of this URL.")
_LANG = click.option("--lang", "languages", multiple=True, metavar="CODE", help="Only pages in this language.")


@contextmanager
def _current_words(given: CliContext, *, rebuild: bool = False) -> Iterator[WordIndex]:
    """The index of words, brought up to date first."""
    with given.open(create=False) as archive, spread_over(archive.settings, where_shared=True) as spread:
        index = WordIndex(archive, spread)
        with ProgressLine("versions", quiet=given.quiet) as bar:
            if rebuild:
                index.rebuild(bar.show)
            else:
                index.catch_up(bar.show)
        yield index


@verb(
    "search",
    "letopis search katedra",
    "letopis search '\"exact phrase\" prefix* site:example.org'",
    "letopis search archive --at 2024-01-31 --lang en --block h1",
    "letopis search -- 'archive -wayback'",
    "letopis search --rebuild --cluster tcp://scheduler.example:8786",
)
@click.argument("query", required=False, default="")
@_SITE
@click.option("--project", metavar="NAME", help="Only pages of this project.")
@click.option(
    "--block", "blocks", multiple=True, type=click.Choice([kind.value for kind in BlockKind]), metavar="KIND",
    help="Only in this kind of block: title, h1, paragraph, item, cell, link, alt ...",
)  # fmt: skip
@_LANG
@_AT
@click.option("--from", "start", metavar="TIME", help="Whatever stood at this time or later.")
@click.option("--to", "end", metavar="TIME", help="Whatever stood at this time or earlier.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Most pages.")
@click.option("--offset", type=click.IntRange(0, 10_000), default=0, help="Pages to pass over.")
@click.option("--facets", "faceted", is_flag=True, help="Count sites, languages and types of the answer instead.")
@click.option("--explain", is_flag=True, help="Tell how each score comes about.")
@click.option("--rebuild", is_flag=True, help="Build the index anew first.")
@CLUSTER_OPTION
def search_verb(
    given: CliContext, query: str, sites: tuple[str, ...], project: str | None, blocks: tuple[str, ...],
    languages: tuple[str, ...], at: str | None, start: str | None, end: str | None, limit: int, offset: int,
    faceted: bool, explain: bool, rebuild: bool, cluster: str | None,
) -> None:  # fmt: skip
    """Find pages by their words, best first.

    Plain words are found in all their forms, "words in quotes" as they stand. Further: prefix*, -not, OR, site:HOST,
    lang:CODE, type:MEDIA/TYPE, and title:word or h1:"a phrase" for a kind of block.
    """
    use_cluster(given, cluster)
    with _current_words(given, rebuild=rebuild) as index:
        if rebuild and not query:
            return
        resources = project_resources(index.archive, project) if project else None
        question = parse_word_query(
            query, sites=sites, languages=languages, blocks=blocks, at=given.moment(at), since=given.moment(start),
            until=given.moment(end), resources=resources,
        )  # fmt: skip
        if faceted:
            given.output.rows((asdict(facet) for facet in search_facets(index, question)), ("field", "value", "count"))
        else:
            _show_hits(given, search(index, question, limit, offset, explain=explain), explain)
            _show_lag(given, index.names_lag() if explain else 0)


def _show_hits(given: CliContext, hits: list[SearchHit], explain: bool) -> None:
    for hit in hits:
        given.output.row(_row(hit, explain), _shown(hit, explain))
    if not hits:
        given.output.remark("nothing found; try fewer words, another date, or a prefix*")


def _show_lag(given: CliContext, behind: int) -> None:
    if behind:
        given.output.remark(f"what links call pages is {behind} versions behind; --rebuild takes it in now")


def _row(hit: SearchHit, explain: bool) -> dict[str, Any]:
    row = hit_row(hit)
    return {**row, "why": {**hit.why._asdict(), "found_as": hit.snippet.hits}} if explain else row


def _shown(hit: SearchHit, explain: bool) -> str:
    bold = hit.snippet.marked(click.style("", bold=True, reset=False), click.style(""))
    lines = [click.style(hit.title or hit.url, bold=True), f"  {hit.url}  {rfc3339(hit.time)}  version {hit.version}"]
    if explain:
        why = hit.why
        fit = f"(words {why.words:.3f} + links {why.links:.3f})" if why.links else f"words {why.words:.3f}"
        called = f', called "{why.named}" by links' if why.links else ""
        lines.append(
            f"  {hit.score:.3f} = {fit} x freshness {why.freshness:.3f} x rank {why.rank:.3f}; "
            f"found as {', '.join(hit.snippet.hits) or 'nothing in the text'}{called}"
        )
    return "\n".join([*lines, f"  {bold}", ""])


@verb("near", "letopis near katedra", "letopis near system --distance 3 --site example.org --at yesterday")
@click.argument("word")
@click.option("--distance", type=click.IntRange(1, 100), default=5, show_default=True, help="Words away at most.")
@_SITE
@_LANG
@_AT
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Most words.")
def near_verb(
    given: CliContext, word: str, distance: int, sites: tuple[str, ...], languages: tuple[str, ...], at: str | None,
    limit: int,
) -> None:  # fmt: skip
    """List the words that stand near WORD in one block, in base forms.

    The relevance of a word is the sum of 1 / distance over all places where both stand.
    """
    with _current_words(given) as index:
        asked = parse_word_query(word, sites=sites, languages=languages, at=given.moment(at))
        question = WordQuery(limits=asked.limits, at=asked.at)
        rows = nearby_words(index, word, distance, question, limit)
        given.output.rows((row._asdict() for row in rows), ("word", "relevance"))


@verb("when", "letopis when 'terms of service'", "letopis when katedra --site example.org")
@click.argument("phrase")
@click.option("--site", default="", metavar="SITE", help="Only on this host or the host of this URL.")
def when_verb(given: CliContext, phrase: str, site: str) -> None:
    """Tell when PHRASE first and last stood on any page, over all versions."""
    with _current_words(given) as index:
        stood = phrase_lifetime(index, phrase, site)
    ends = f"gone by {rfc3339(stood.gone)}" if stood.gone else "still there at the last look"
    given.output.row(
        asdict(stood),
        f"first {rfc3339(stood.first)}  {stood.first_url}\nlast  {rfc3339(stood.last)}  {stood.last_url}\n"
        f"{ends}; {stood.versions} versions of {stood.pages} pages",
    )


@verb("categories", "letopis categories example.org", "letopis categories example.org --at 2024-01-31 --json")
@click.argument("site")
@_AT
@click.option("--depth", type=click.IntRange(1, 5), default=2, show_default=True, help="Levels of the tree.")
def categories_verb(given: CliContext, site: str, at: str | None, depth: int) -> None:
    """Sort the pages of SITE into a tree by their key words.

    A page is in a category because the category's name is among its own key words.
    """
    with _current_words(given) as index:
        for category in site_categories(index, site, given.moment(at), depth):
            given.output.row(asdict(category), "\n".join(_branch(category, 0)))


def _branch(category: PageCategory, level: int) -> Iterator[str]:
    indent = "  " * level
    words = f" ({', '.join(category.words)})" if category.words else ""
    yield f"{indent}{category.name or 'other'}: {len(category.pages)} pages{words}"
    if category.children:
        for child in category.children:
            yield from _branch(child, level + 1)
    else:
        yield from (f"{indent}  {url}" for url in category.pages)


@verb(
    "duplicates",
    "letopis duplicates https://example.org/page",
    "letopis duplicates example.org --json",
    "letopis duplicates example.org --cluster tcp://scheduler.example:8786",
)
@click.argument("what", metavar="URL|SITE")
@click.option("--least", type=click.FloatRange(0.1, 1.0), default=0.8, show_default=True, help="Likeness that counts.")
@CLUSTER_OPTION
def duplicates_verb(given: CliContext, what: str, least: float, cluster: str | None) -> None:
    """Find other addresses with the same or nearly the same document: of one page, or within a site."""
    use_cluster(given, cluster)
    with given.open(create=False) as archive, ProgressLine("pages", quiet=given.quiet) as bar:
        find = duplicates_of_page if _is_page(archive, what) else duplicates_in_site
        with spread_over(archive.settings, where_shared=True) as spread:
            found = find(archive, what, least, bar.show, spread)
    if not given.output.rows((asdict(pair) for pair in found), ("url", "other", "likeness", "exact")):
        given.output.remark("no duplicates found")


def _is_page(archive: Archive, what: str) -> bool:
    """An address that is a known page is meant as a page, everything else as a site."""
    if "/" in what.partition("://")[2].rstrip("/") or ("://" not in what and "/" in what):
        return True
    try:
        archive.get(parse_user_url(what))
    except (UnknownUrl, UsageError):
        return False
    return "://" in what

"""The audit of a site as webmasters know it: each page with what search engines and readers see of it, and its issues.

Facts of links come from the map of the site, those of a page from the version that was valid then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from selectolax.lexbor import LexborHTMLParser

from letopis import extract
from letopis.archive import Archive
from letopis.errors import LetopisError
from letopis.index.link_reports import SiteFinding, site_findings
from letopis.index.site_maps import MapPage, SiteMap, document_pages, image_counts, map_page
from letopis.model import BlockKind, Version
from letopis.tuples import NamedTuple
from letopis.urls import join

LONGEST_TITLE = 60
LONGEST_DESCRIPTION = 160
LARGEST_PAGE = 1_000_000
DEEPEST = 4
"""Clicks from the home page from which a page is called deep."""
_MOST_TEXT = 300
_LOADED = "img[src], script[src], iframe[src], video[src], audio[src], source[src], embed[src], link[rel~=stylesheet]"
_MARKUP = ("text/html", "application/xhtml+xml")

AUDIT_ISSUES = (
    "error", "noindex", "nofollow", "title-missing", "title-long", "title-duplicate", "description-missing",
    "description-long", "description-duplicate", "heading-missing", "headings-several", "canonical-missing",
    "canonical-elsewhere", "hreflang-not-mutual", "image-without-alt", "mixed-content", "large", "deep", "orphan",
    "unreachable", "redirect-chain", "redirect-loop", "content-duplicate",
)  # fmt: skip
"""What an audit may find, the gravest of each kind first."""
_OF_FINDINGS = {
    "orphan": "orphan", "unreachable": "unreachable", "chain": "redirect-chain", "loop": "redirect-loop",
    "duplicate-content": "content-duplicate",
}  # fmt: skip


class PageMarkup(NamedTuple):
    """What the markup of a page contains besides its text."""

    title: str = ""
    description: str = ""
    headings: tuple[str, ...] = ()
    canonical: str = ""
    languages: tuple[tuple[str, str], ...] = ()
    images: int = 0
    without_alt: int = 0
    insecure: int = 0
    robots: tuple[str, ...] = ()
    words: int = 0


class AuditedPage(NamedTuple):
    """One page of a site; `depth` counts clicks from the home page, null where no way leads to it.

    `insecure` counts parts that a page on https loads without it, `alternates` its versions in other languages.
    `robots` is what the page or its headers (X-Robots-Tag) ask of search engines, `words` counts those of its text.
    """

    url: str
    status: int
    depth: int | None
    title: str
    description: str
    heading: str
    headings: int
    canonical: str
    alternates: int
    bytes: int
    images: int
    without_alt: int
    insecure: int
    robots: str
    words: int
    issues: tuple[str, ...]

    @property
    def indexable(self) -> bool:
        """Whether search engines may list it under this address."""
        return not {"error", "noindex", "canonical-elsewhere"}.intersection(self.issues)


def read_markup(version: Version) -> PageMarkup:
    """The markup of a version; of what is no page only what its headers say."""
    page = extract.read_page(version.body, version.url, version.headers, detect_language=False)
    robots, words = tuple(sorted(page.robots)), sum(len(block.text.split()) for block in page.blocks)
    if page.content_type not in _MARKUP:
        return PageMarkup(page.title, robots=robots, words=words)
    source = LexborHTMLParser(extract.decode(version.body, page.charset).text)
    images = source.css("img")
    alternates = [
        (str(node.attributes.get("hreflang") or ""), join(version.url, str(node.attributes.get("href") or "")))
        for node in source.css("link[rel~=alternate][hreflang]")
    ]
    loaded = [str(node.attributes.get("src") or node.attributes.get("href") or "") for node in source.css(_LOADED)]
    secure = version.url.startswith("https:")
    return PageMarkup(
        page.title, page.description, tuple(block.text for block in page.blocks if block.kind is BlockKind.H1),
        page.canonical, tuple((language, target) for language, target in alternates if target), len(images),
        sum("alt" not in node.attributes for node in images),
        sum(one.startswith("http:") for one in loaded) if secure else 0, robots, words,
    )  # fmt: skip


class MarkupReader:
    """The markup of pages as they were at some time; a version that was read for one time is not read for another."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._read: dict[tuple[str, int], PageMarkup] = {}

    def at(self, page: MapPage, when: datetime) -> PageMarkup:
        """Of an error, and of a version that cannot be read, only what the map knows."""
        if _is_error(page):
            return PageMarkup(page.title)
        try:
            version = self._archive.get(page.url, at=when)
        except LetopisError:
            return PageMarkup(page.title)
        key = (page.url, version.number)
        if key not in self._read:
            self._read[key] = read_markup(version)
        return self._read[key]


def audit_site(
    reader: MarkupReader, found: SiteMap, most: int, progress: Callable[[int, int], None] = lambda done, of: None
) -> Iterator[AuditedPage]:
    """Every page of a map, in its order, then those that no way leads to; at most so many. Lists for programs and parts
    of pages are none, wherever they are linked.

    Each page is read once; what is compared between pages is known after the last, so rows come then.
    """
    placed = _placed_pages(found, most)
    markups = []
    for number, (page, _) in enumerate(placed):
        markups.append(reader.at(page, found.at))
        progress(number + 1, len(placed))
    titles = Counter(markup.title for markup in markups)
    descriptions = Counter(markup.description for markup in markups)
    graph_issues = _graph_issues(found)
    alternates = {
        page.url: {target for _, target in markup.languages} for (page, _), markup in zip(placed, markups, strict=True)
    }
    for (page, depth), markup in zip(placed, markups, strict=True):
        issues = set(graph_issues.get(page.url, ()))
        issues |= set(_issues_of_page(page, depth, markup))
        issues |= {"title-duplicate"} if markup.title and titles[markup.title] > 1 else set()
        issues |= {"description-duplicate"} if markup.description and descriptions[markup.description] > 1 else set()
        known = [target for target in alternates[page.url] if target in alternates and target != page.url]
        issues |= {"hreflang-not-mutual"} if any(page.url not in alternates[target] for target in known) else set()
        yield _row(page, depth, markup, [issue for issue in AUDIT_ISSUES if issue in issues])


def _placed_pages(found: SiteMap, most: int) -> list[tuple[MapPage, int | None]]:
    moment = found.moment
    audited = ~moment.live
    audited[document_pages(moment, moment.live)] = True
    placed: list[tuple[MapPage, int | None]] = [
        (page, node.depth) for node, page in found.pages() if audited[node.page]
    ]
    pictures = image_counts(found.moment)
    outside = [
        map_page(found.moment, number, int(pictures[number]))
        for finding in site_findings(found)
        if finding.finding in ("orphan", "unreachable")
        for number in finding.pages
    ]
    known = {page.url for page, _ in placed}
    return (placed + [(page, None) for page in outside if page.url not in known])[:most]


def _graph_issues(found: SiteMap) -> dict[str, set[str]]:
    issues: dict[str, set[str]] = {}
    for finding in site_findings(found):
        name = _OF_FINDINGS.get(finding.finding)
        if name is not None:
            for page in _blamed(finding):
                issues.setdefault(found.moment.url(page), set()).add(name)
    return issues


def _blamed(finding: SiteFinding) -> Sequence[int]:
    """Of a chain the page where it starts; of all else every page."""
    return finding.pages[-1:] if finding.finding == "chain" else finding.pages


def _is_error(page: MapPage) -> bool:
    """Whether a page of the map answered with an error, or not at all: only what is there has a version."""
    return page.time is None


def _issues_of_page(page: MapPage, depth: int | None, markup: PageMarkup) -> Iterator[str]:
    if _is_error(page):
        yield "error"
        return
    yield from (issue for issue in ("noindex", "nofollow") if issue in markup.robots)
    if page.type not in _MARKUP:
        return
    findings = {
        "title-missing": not markup.title,
        "title-long": len(markup.title) > LONGEST_TITLE,
        "description-missing": not markup.description,
        "description-long": len(markup.description) > LONGEST_DESCRIPTION,
        "heading-missing": not markup.headings,
        "headings-several": len(markup.headings) > 1,
        "canonical-missing": not markup.canonical,
        "canonical-elsewhere": bool(markup.canonical) and markup.canonical != page.url,
        "image-without-alt": markup.without_alt > 0,
        "mixed-content": markup.insecure > 0,
        "large": page.bytes > LARGEST_PAGE,
        "deep": depth is not None and depth >= DEEPEST,
    }
    yield from (name for name, holds in findings.items() if holds)


def _row(page: MapPage, depth: int | None, markup: PageMarkup, issues: Sequence[str]) -> AuditedPage:
    heading = markup.headings[0] if markup.headings else ""
    return AuditedPage(
        page.url, page.status, depth, markup.title[:_MOST_TEXT], markup.description[:_MOST_TEXT],
        heading[:_MOST_TEXT], len(markup.headings), markup.canonical, len(markup.languages), page.bytes,
        markup.images, markup.without_alt, markup.insecure, ", ".join(markup.robots)[:_MOST_TEXT], markup.words,
        tuple(issues),
    )  # fmt: skip

"""The HTML of a page, from its plan and its state."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from letopis_demo.languages import fill_pattern, make_paragraph, make_title
from letopis_demo.plans import PagePlan, PageState, WorldShape, articles_from, birth_of
from letopis_demo.sites import BRANCH, SHOP, SiteKind, kind_of, mirrored_host, page_path, parent_page
from letopis_demo.streams import draw_bits, pick, random_source

_SHOWN = 12
"""How many of the newest articles stand on the front page of a news site."""


def title_of(shape: WorldShape, host: int, page: int, renamed: bool = False) -> str:
    """The title of a page, before or after its renaming."""
    kind = kind_of(host)
    if page == 0:
        return kind.brand
    if page <= BRANCH:
        return kind.sections[page - 1][1]
    return make_title(kind.language, random_source(shape.seed, host, page, "title", int(renamed)))


def reference_word(host: int, page: int) -> str:
    """A word that stands on this page and on no other."""
    return f"LT{host:04d}X{page:07d}"


def _link(shape: WorldShape, host: int, page: int) -> str:
    return f'<a href="{page_path(kind_of(host), page)}">{title_of(shape, host, page)}</a>'


def _head(shape: WorldShape, plan: PagePlan, state: PageState, kind: SiteKind) -> Iterator[str]:
    name = title_of(shape, plan.host, plan.page, state.renamed)
    about = fill_pattern(
        kind.language, kind.language.patterns[0], random_source(shape.seed, plan.host, plan.page, "about")
    )
    yield f'<!DOCTYPE html>\n<html lang="{kind.language.code}">\n<head>\n<meta charset="{kind.charset}">'
    yield f"<title>{name}{'' if plan.page == 0 else ' | ' + kind.brand}</title>"
    yield f'<meta name="description" content="{about}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<link rel="stylesheet" href="/static/style.css">'
    yield f'<link rel="alternate" type="application/atom+xml" title="{kind.brand}" href="/feed.atom">'
    yield "</head>"


def _navigation(shape: WorldShape, plan: PagePlan, kind: SiteKind) -> Iterator[str]:
    count = max(0, min(BRANCH, shape.pages - 1))
    yield f'<body class="{kind.name}">\n<header><p class="brand"><a href="/">{kind.brand}</a></p>\n<nav><ul>'
    yield f'<li><a href="/">{kind.language.home}</a></li>'
    for number, (slug, label) in enumerate(kind.sections[:count], 1):
        mark = ' class="here"' if number == plan.page else ""
        yield f'<li{mark}><a href="/{slug}/">{label}</a></li>'
    yield "</ul></nav></header>"
    if plan.page > BRANCH:
        yield f'<p class="up">&#8593; {_link(shape, plan.host, parent_page(plan.page))}</p>'


def _paragraphs(shape: WorldShape, plan: PagePlan, state: PageState, kind: SiteKind) -> Iterator[str]:
    """The text. Paragraph n + 1 belongs to slot n: the time of its last change is part of its key."""
    key = (shape.seed, plan.host, plan.content, "text")
    count = max(5, int((5 + draw_bits(*key) % 10) * shape.bulk))
    for number in range(count):
        stamp = state.slots[number - 1] if 0 < number <= len(state.slots) else 0
        chance = random_source(*key, number, stamp)
        if number % 4 == 3:
            yield f"<h2>{make_title(kind.language, chance)}</h2>"
        yield f"<p>{make_paragraph(kind.language, chance)}</p>"


def _price(shape: WorldShape, plan: PagePlan, state: PageState) -> str:
    """A table with the price, which changes with the first slot."""
    chance = random_source(shape.seed, plan.host, plan.content, "price", state.slots[0] if state.slots else 0)
    cents, stock = 199 + int(chance.random() * 40_000), int(chance.random() * 60)
    return (
        "<table><tr><th>Price</th><th>In stock</th></tr>"
        f'<tr><td class="price">EUR {cents // 100}.{cents % 100:02d}</td><td>{stock}</td></tr></table>'
    )


def _article(shape: WorldShape, plan: PagePlan, state: PageState, kind: SiteKind) -> Iterator[str]:
    yield f"<main>\n<h1>{title_of(shape, plan.host, plan.page, state.renamed)}</h1>"
    picture = draw_bits(shape.seed, plan.host, plan.page, "picture")
    if picture % 10 < 3:
        yield f'<p><img src="/static/picture-{picture % 7}.png" alt="{kind.brand}" width="64" height="48"></p>'
    if kind is SHOP and plan.page > BRANCH:
        yield _price(shape, plan, state)
    yield from _paragraphs(shape, plan, state, kind)
    if plan.flip:
        chance = random_source(shape.seed, plan.host, plan.page, "flip", int(state.flipped))
        yield f'<p class="state">{make_paragraph(kind.language, chance)}</p>'
    yield f'<p class="reference">{reference_word(plan.host, plan.page)}</p>'


def _lists(shape: WorldShape, plan: PagePlan, state: PageState) -> Iterator[str]:
    if state.newest:
        newest = articles_from(shape) + state.newest - 1
        yield '<ol class="newest">'
        for page in range(newest, max(newest - _SHOWN, articles_from(shape) - 1), -1):
            yield f"<li>{_link(shape, plan.host, page)}</li>"
        yield "</ol>"
    if state.listed:
        yield '<ul class="below">'
        for page in state.listed:
            yield f"<li>{_link(shape, plan.host, page)}</li>"
        yield "</ul>"


def chain_of(shape: WorldShape, plan: PagePlan) -> str:
    """The first address of the redirect chain that the page links to."""
    chance = random_source(shape.seed, plan.host, plan.page, "chain")
    return f"/r/{int(chance.random() * min(shape.pages, BRANCH + 1))}/{1 + int(chance.random() * 5)}"


def _elsewhere(shape: WorldShape, plan: PagePlan, authorities: tuple[str, ...], chance: Random) -> Iterator[str]:
    """A link to another host, on about a third of the pages."""
    if chance.random() >= 0.35 or len(authorities) < 2:
        return
    host = int(chance.random() * len(authorities))
    page = pick(chance, range(min(shape.pages, 2 * BRANCH)))
    if birth_of(shape, mirrored_host(host), page) == shape.start:
        name = title_of(shape, mirrored_host(host), page)
        yield f'<li><a href="http://{authorities[host]}{page_path(kind_of(host), page)}" rel="external">{name}</a></li>'


def _related(shape: WorldShape, plan: PagePlan, kind: SiteKind, authorities: tuple[str, ...]) -> Iterator[str]:
    chance = random_source(shape.seed, plan.host, plan.page, "related")
    yield f'<aside><h2>{kind.language.more}</h2>\n<ul class="related">'
    for page in dict.fromkeys(((plan.page + 1) % shape.pages, int(chance.random() * shape.pages))):
        if birth_of(shape, plan.host, page) == shape.start and page != plan.page:
            yield f"<li>{_link(shape, plan.host, page)}</li>"
    yield from _elsewhere(shape, plan, authorities, chance)
    if plan.chain:
        yield f'<li><a href="{chain_of(shape, plan)}">{reference_word(plan.host, plan.page)}-R</a></li>'
    if plan.broken:
        yield f'<li><a href="/missing/{plan.page}.html">{reference_word(plan.host, plan.page)}-B</a></li>'
    yield "</ul></aside>\n</main>"


def _noise(shape: WorldShape, plan: PagePlan, state: PageState, kind: SiteKind) -> str:
    """A clock, a counter or an advertisement: bytes that change while nothing does."""
    if plan.noise == "clock":
        seconds = state.tick % 86400
        return f'<p class="clock">{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}</p>'
    if plan.noise == "counter":
        return f'<p class="counter">{10_000 + state.tick - shape.start // 60_000}</p>'
    if plan.noise == "ad":
        chance = random_source(shape.seed, plan.host, plan.page, "ad", state.tick)
        return (
            f'<div class="ad"><a href="/ad/{int(chance.random() * 1e6)}">{make_title(kind.language, chance)}</a></div>'
        )
    return ""


def _footer(plan: PagePlan, kind: SiteKind) -> Iterator[str]:
    yield f"<footer><p>{kind.footer}</p>"
    if plan.page == 0:
        yield '<ul><li><a href="/private/notes.html">private</a></li><li><a href="/busy.html">busy</a></li>'
        yield '<li><a href="/r/loop/a">loop</a></li><li><a href="/sitemap.xml">sitemap</a></li></ul>'
    yield "</footer>\n</body>\n</html>\n"


def render_page(shape: WorldShape, plan: PagePlan, state: PageState, authorities: tuple[str, ...]) -> bytes:
    """The bytes of a page in the charset of its site. Links to other hosts go to the given authorities."""
    kind = kind_of(plan.host)
    parts = [
        *_head(shape, plan, state, kind),
        *_navigation(shape, plan, kind),
        *_article(shape, plan, state, kind),
        *_lists(shape, plan, state),
        *_related(shape, plan, kind, authorities),
        _noise(shape, plan, state, kind),
        *_footer(plan, kind),
    ]
    return "\n".join(parts).encode(kind.charset, "xmlcharrefreplace")
